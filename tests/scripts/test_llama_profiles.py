"""Build profiles: flags that are safe and fast on the processor at hand, told apart by a key."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

children: Any = importlib.import_module("children")
profiles: Any = importlib.import_module("llama_profiles")

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

SSE = "fpu sse sse2 ssse3 sse4_1 sse4_2"
HASWELL = f"{SSE} avx f16c fma avx2 bmi1 bmi2"
SKYLAKE = f"{HASWELL} avx512f avx512dq avx512cd avx512bw avx512vl"
SAPPHIRE = f"{SKYLAKE} avx512vbmi avx512_vnni avx512_bf16 amx_bf16 amx_tile amx_int8"


def machine(features: str, compiler: str | None = GCC_12, architecture: str = "x86_64") -> Any:
    found = profiles.parse_compiler("c++", compiler) if compiler else None
    return profiles.Machine(architecture, frozenset(features.split()), "glibc 2.36", found)


def names(found: Any, **options: str) -> list[str]:
    return [profile.name for profile in profiles.ladder(found, **options)]


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
    compiler = profiles.parse_compiler("c++", text)
    assert (compiler.name, compiler.version, compiler.good_for_amx) == (name, version, good)


def test_an_unknown_compiler_is_none_of_ours() -> None:
    assert profiles.parse_compiler("icc", "icc (ICC) 2021.7.1 20221019") is None


@pytest.mark.parametrize("key", ["flags\t\t", "Features\t"])
def test_cpu_features_are_those_of_the_first_processor(key: str) -> None:
    text = f"processor\t: 0\nvmx flags\t: vnmi\n{key}: one two\n\nprocessor\t: 1\n{key}: three\n"
    assert profiles.cpu_features(text) == {"one", "two"}
    assert profiles.cpu_features("nothing known") == frozenset()


@pytest.mark.parametrize(
    ("features", "compiler", "expected"),
    [
        (SAPPHIRE, GCC_12, ["avx512", "avx2", "baseline"]),
        (SAPPHIRE, GCC_13, ["avx512", "avx2", "baseline"]),
        (SAPPHIRE, None, ["avx512", "avx2", "baseline"]),
        (SAPPHIRE, GCC_14, ["native", "avx512", "avx2", "baseline"]),
        (SAPPHIRE, CLANG_16, ["avx512", "avx2", "baseline"]),
        (SAPPHIRE, CLANG_19, ["native", "avx512", "avx2", "baseline"]),
        (SKYLAKE, GCC_14, ["avx512", "avx2", "baseline"]),
        (f"{HASWELL} avx512f avx512cd", GCC_14, ["avx2", "baseline"]),
        (HASWELL, GCC_12, ["avx2", "baseline"]),
        (f"{SSE} avx f16c", GCC_12, ["baseline"]),
        ("fpu sse sse2", GCC_12, ["baseline"]),
    ],
)
def test_the_ladder_on_x86(features: str, compiler: str | None, expected: list[str]) -> None:
    assert names(machine(features, compiler)) == expected


def test_the_ladder_elsewhere() -> None:
    assert names(machine("fp asimd", GCC_12, "aarch64")) == ["native", "portable"]


def test_flags_of_the_profiles() -> None:
    native, avx512, avx2, baseline = profiles.ladder(machine(SAPPHIRE, GCC_14))
    assert "-DGGML_NATIVE=ON" in native.cmake_args
    for profile in (avx512, avx2, baseline):
        assert "-DGGML_NATIVE=OFF" in profile.cmake_args
    for profile in (native, avx512, avx2, baseline):
        assert "-DLLAMA_BUILD_TESTS=OFF" in profile.cmake_args
    assert {"-DGGML_AVX512=ON", "-DGGML_AVX512_VBMI=ON", "-DGGML_AVX512_BF16=ON"} <= set(
        avx512.cmake_args
    )
    assert not any("AVX512" in flag for flag in avx2.cmake_args)
    assert "-DGGML_AVX2=OFF" in baseline.cmake_args
    assert "-DGGML_SSE42=OFF" not in baseline.cmake_args


def test_flags_are_never_for_features_that_the_processor_lacks() -> None:
    (avx512, *_) = profiles.ladder(machine(f"{SKYLAKE} avx512_vnni"))
    assert "-DGGML_AVX512_VNNI=ON" in avx512.cmake_args
    assert "-DGGML_AVX512_VBMI=ON" not in avx512.cmake_args
    assert "-DGGML_AVX512_BF16=ON" not in avx512.cmake_args
    (baseline,) = profiles.ladder(machine("fpu sse sse2"))
    assert "-DGGML_SSE42=OFF" in baseline.cmake_args


def test_a_profile_can_be_forced_and_given_more_flags() -> None:
    (native,) = profiles.ladder(
        machine(SAPPHIRE, GCC_12), forced="native", extra="-DGGML_CUDA=ON '-DX=a b'"
    )
    assert native.name == "native"
    assert native.cmake_args[-2:] == ("-DGGML_CUDA=ON", "-DX=a b")


@pytest.mark.parametrize("forced", ["avx512", "turbo"])
def test_a_forced_profile_must_be_one_that_can_run(forced: str) -> None:
    with pytest.raises(children.SetupError, match=rf"native, avx2, baseline.*found '{forced}'"):
        profiles.ladder(machine(HASWELL), forced=forced)


def test_the_compiler_of_the_users_cmake_flags_counts(tmp_path: Path) -> None:
    fake = tmp_path / "clang++-19"
    fake.write_text(f"#!/bin/sh\ncat <<'END'\n{CLANG_19}END\n")
    fake.chmod(0o755)
    by_flag = {"RUNNER_CMAKE_ARGS": f"-DCMAKE_CXX_COMPILER={fake}", "CXX": "/nowhere/g++"}
    assert profiles.this_machine(by_flag).compiler.name == "clang"
    assert profiles.this_machine({"CXX": str(fake)}).compiler.version == (19, 1, 7)
    assert profiles.this_machine({"CXX": "/nowhere/g++"}).compiler is None


def keys(found: Any, *, version: str = "0.3.36", extra: str = "") -> dict[str, str]:
    ladder = profiles.ladder(found, extra=extra)
    return {profile.name: profiles.cache_key(version, profile, found) for profile in ladder}


def test_a_key_names_version_and_profile() -> None:
    found = keys(machine(SAPPHIRE))["avx512"]
    assert found.startswith("0.3.36-avx512-")
    assert len(found) == len("0.3.36-avx512-") + 12
    assert found == keys(machine(SAPPHIRE))["avx512"]


def test_keys_differ_where_wheels_would() -> None:
    first = keys(machine(SAPPHIRE, GCC_14))
    assert keys(machine(SAPPHIRE, GCC_14), version="0.3.37")["avx2"] != first["avx2"]
    assert keys(machine(SAPPHIRE, GCC_14), extra="-DGGML_CUDA=ON")["avx2"] != first["avx2"]
    assert keys(machine(f"{SKYLAKE} avx512_vnni"))["avx512"] != first["avx512"]
    assert keys(machine(SAPPHIRE.replace("amx_bf16", ""), GCC_14))["native"] != first["native"]
    other_libc = replace(machine(SAPPHIRE, GCC_14), libc="glibc 2.28")
    assert keys(other_libc)["avx2"] != first["avx2"]


def test_only_the_native_key_depends_on_the_compiler() -> None:
    gcc, clang = keys(machine(SAPPHIRE, GCC_14)), keys(machine(SAPPHIRE, CLANG_19))
    assert gcc["native"] != clang["native"]
    assert gcc["avx512"] == clang["avx512"] == keys(machine(SAPPHIRE, None))["avx512"]


def test_only_features_that_are_used_are_in_a_key() -> None:
    assert keys(machine(SAPPHIRE))["avx2"] == keys(machine(HASWELL))["avx2"]
