"""Compilers are found by name, read by version, and proven with tiny programs."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

compilers: Any = importlib.import_module("compilers")

GCC_12 = (
    "g++ (Debian 12.2.0-14+deb12u1) 12.2.0\n"
    "Copyright (C) 2022 Free Software Foundation, Inc.\nThis is free software\n"
)
GCC_13 = GCC_12.replace("Debian 12.2.0-14+deb12u1) 12.2.0", "Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0")
GCC_14 = GCC_12.replace(
    "(Debian 12.2.0-14+deb12u1) 12.2.0", "(GCC) 14.2.1 20250110 (Red Hat 14.2.1-7)"
)
CLANG_19 = "Debian clang version 19.1.7 (3+b1)\nTarget: x86_64-pc-linux-gnu\n"
CLANG_16 = "clang version 16.0.6\nTarget: x86_64-pc-linux-gnu\n"


@pytest.mark.parametrize(
    ("text", "name", "version", "good"),
    [
        (GCC_12, "gcc", (12, 2, 0), False),
        (GCC_13, "gcc", (13, 3, 0), False),
        (GCC_14, "gcc", (14, 2, 1), True),
        (CLANG_16, "clang", (16, 0, 6), False),
        (CLANG_19, "clang", (19, 1, 7), True),
    ],
)
def test_compiler_versions_are_read(
    text: str, name: str, version: tuple[int, ...], good: bool
) -> None:
    compiler = compilers.parse_compiler("c++", text)
    assert (compiler.name, compiler.version, compiler.good_for_amx) == (name, version, good)


def test_an_unknown_compiler_is_none_of_ours() -> None:
    assert compilers.parse_compiler("icc", "icc (ICC) 2021.7.1 20221019") is None


@pytest.fixture
def found(tmp_path: Path) -> Callable[..., list[Any]]:
    """The compilers for AMX of a machine that has only what was put into `bin`."""

    def look(**environ: str) -> list[Any]:
        return list(compilers.compilers_for_amx({"PATH": str(tmp_path / "bin"), **environ}))

    return look


def test_the_compiler_of_the_users_cmake_flags_counts(put_compiler: Callable[..., Path]) -> None:
    fake = put_compiler("clang++-19", CLANG_19)
    by_flag = {"RUNNER_CMAKE_ARGS": f"-DCMAKE_CXX_COMPILER={fake}", "CXX": "/nowhere/g++"}
    assert compilers.default_compiler(by_flag).name == "clang"
    assert compilers.default_compiler({"CXX": str(fake)}).version == (19, 1, 7)
    assert compilers.default_compiler({"CXX": "/nowhere/g++"}) is None


def test_no_other_compiler_is_looked_for_beside_that_of_the_cmake_flags(
    put_compiler: Callable[..., Path], found: Callable[..., list[Any]]
) -> None:
    for name in ("clang++-19", "clang-19"):
        put_compiler(name, CLANG_19)
    assert len(found()) == 1
    assert found(RUNNER_CMAKE_ARGS="-DX=1 -DCMAKE_CXX_COMPILER=/usr/bin/g++-12") == []


def test_newer_clangs_go_before_gcc_and_each_version_is_there_once(
    put_compiler: Callable[..., Path], found: Callable[..., list[Any]]
) -> None:
    for name in ("clang++-19", "clang-19", "clang++", "clang"):
        put_compiler(name, CLANG_19)
    for name in ("g++-14", "gcc-14"):
        put_compiler(name, GCC_14)
    assert [Path(one.command).name for one in found()] == ["clang++-19", "g++-14"]


def test_a_compiler_is_named_to_cmake_with_its_c_compiler(
    put_compiler: Callable[..., Path], found: Callable[..., list[Any]]
) -> None:
    cxx, c = put_compiler("g++-14", GCC_14), put_compiler("gcc-14", GCC_14)
    (gcc,) = found()
    assert gcc.cmake_args == (f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}")
    cxx, c = put_compiler("clang++", CLANG_19), put_compiler("clang", CLANG_19)
    clang, gcc = found()
    assert clang.cmake_args == (f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}")


def test_a_compiler_that_gets_amx_wrong_is_no_candidate(
    put_compiler: Callable[..., Path], found: Callable[..., list[Any]]
) -> None:
    for name in ("clang++", "clang"):
        put_compiler(name, CLANG_16)
    assert found() == []


@pytest.mark.parametrize(
    ("name", "says", "refuses", "missing"),
    [
        ("clang++-19", CLANG_19, "omp.h", "OpenMP (`apt install libomp-19-dev`)"),
        ("clang++", CLANG_19, "omp.h", "OpenMP (`apt install libomp-19-dev`)"),
        ("g++-14", GCC_14, "omp.h", "OpenMP (`apt install libgcc-14-dev`)"),
        ("clang++-19", CLANG_19, "vector", "a C++ library that it can use (`apt install g++`)"),
    ],
)
def test_what_a_compiler_lacks_is_named_and_it_is_not_used(
    put_compiler: Callable[..., Path],
    found: Callable[..., list[Any]],
    name: str,
    says: str,
    refuses: str,
    missing: str,
) -> None:
    put_compiler(name, says, refuses=refuses)
    put_compiler(name.replace("clang++", "clang").replace("g++", "gcc"), says)
    (compiler,) = found()
    assert compiler.missing == missing
    assert compiler.knows_amx and not compiler.good_for_amx


def test_a_compiler_without_its_c_compiler_is_not_used(
    put_compiler: Callable[..., Path], found: Callable[..., list[Any]]
) -> None:
    put_compiler("clang++-18", CLANG_19.replace("19.1.7", "18.1.8"))
    (compiler,) = found()
    assert compiler.missing == "its C compiler (`apt install clang-18`)"


def test_the_tiny_programs_are_sound() -> None:
    gcc = shutil.which("g++")
    if gcc is None:
        pytest.skip("there is no g++")
    compiler = compilers.default_compiler({**os.environ, "CXX": gcc})
    assert compilers.proven(compiler).missing == ""
