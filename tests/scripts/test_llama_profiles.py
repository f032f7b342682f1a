"""Build profiles: flags that are safe and fast on the processor at hand, told apart by a key."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

children: Any = importlib.import_module("children")
compilers: Any = importlib.import_module("compilers")
profiles: Any = importlib.import_module("llama_profiles")

GCC_12_SAYS = "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
CLANG_19_SAYS = "Debian clang version 19.1.7 (3+b1)\n"
GCC_12 = compilers.Compiler("c++", "gcc", (12, 2, 0))
GCC_13 = compilers.Compiler("c++", "gcc", (13, 3, 0))
GCC_14 = compilers.Compiler("c++", "gcc", (14, 2, 1))
CLANG_16 = compilers.Compiler("c++", "clang", (16, 0, 6))
CLANG_19 = compilers.Compiler("c++", "clang", (19, 1, 7))
NAMED_CLANG_19 = replace(CLANG_19, command="/opt/clang++-19", c_command="/opt/clang-19")
NO_OPENMP = replace(NAMED_CLANG_19, missing="OpenMP (`apt install libomp-19-dev`)")

SSE = "fpu sse sse2 ssse3 sse4_1 sse4_2"
HASWELL = f"{SSE} avx f16c fma avx2 bmi1 bmi2"
SKYLAKE = f"{HASWELL} avx512f avx512dq avx512cd avx512bw avx512vl"
SAPPHIRE = f"{SKYLAKE} avx512vbmi avx512_vnni avx512_bf16 amx_bf16 amx_tile amx_int8"


def machine(
    features: str, compiler: Any = GCC_12, architecture: str = "x86_64", more: tuple[Any, ...] = ()
) -> Any:
    found = frozenset(features.split())
    return profiles.Machine(architecture, found, "glibc 2.36", compiler, more)


def names(found: Any, **options: Any) -> list[str]:
    return [profile.name for profile in profiles.ladder(found, **options)]


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


def test_another_compiler_that_gets_amx_right_builds_the_native_profile_alone() -> None:
    found = profiles.ladder(machine(SAPPHIRE, GCC_12, more=(NAMED_CLANG_19,)))
    assert [profile.name for profile in found] == ["native", "avx512", "avx2", "baseline"]
    assert [profile.compiler for profile in found] == [NAMED_CLANG_19, None, None, None]


def test_the_users_own_compiler_goes_before_others_and_each_version_is_tried_once() -> None:
    found = machine(SAPPHIRE, GCC_14, more=(NAMED_CLANG_19, replace(GCC_14, command="g++-14")))
    natives = [one.compiler for one in profiles.ladder(found) if one.name == "native"]
    assert natives == [GCC_14, NAMED_CLANG_19]


def test_a_compiler_without_openmp_is_passed_over() -> None:
    assert names(machine(SAPPHIRE, GCC_12, more=(NO_OPENMP,))) == ["avx512", "avx2", "baseline"]


@pytest.mark.parametrize(
    ("features", "more", "expected"),
    [
        (HASWELL, (), ["native", "avx2", "baseline"]),
        (SAPPHIRE, (), ["avx512", "avx2", "baseline"]),
        (SAPPHIRE, (NAMED_CLANG_19,), ["native", "avx512", "avx2", "baseline"]),
    ],
)
def test_a_comparison_has_native_wherever_it_is_sound(
    features: str, more: tuple[Any, ...], expected: list[str]
) -> None:
    assert names(machine(features, more=more), every=True) == expected


def test_compilers_are_looked_for_only_where_there_is_amx(
    tmp_path: Path, put_compiler: Callable[..., Path]
) -> None:
    put_compiler("c++", GCC_12_SAYS)
    put_compiler("clang++-19", CLANG_19_SAYS)
    put_compiler("clang-19", CLANG_19_SAYS)
    environ = {"CXX": str(tmp_path / "bin" / "c++"), "PATH": str(tmp_path / "bin")}
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags\t: {SAPPHIRE}\n")
    found = profiles.this_machine(environ, cpuinfo)
    assert str(found.compiler) == "gcc 12.2.0"
    assert [str(one) for one in found.for_amx] == ["clang 19.1.7"]
    cpuinfo.write_text(f"flags\t: {SKYLAKE}\n")
    assert profiles.this_machine(environ, cpuinfo).more == ()


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


def test_wheels_of_earlier_set_ups_keep_their_keys() -> None:
    assert keys(machine(SAPPHIRE, GCC_14)) == {
        "native": "0.3.36-native-ddf5123d035b",
        "avx512": "0.3.36-avx512-116bfac4ae6e",
        "avx2": "0.3.36-avx2-76c271487f78",
        "baseline": "0.3.36-baseline-39467a3a7118",
    }
    assert keys(machine("fp asimd", GCC_14, "aarch64")) == {
        "native": "0.3.36-native-adfadb6cd9e0",
        "portable": "0.3.36-portable-16713aa8dc48",
    }


def test_a_key_is_that_of_the_compiler_not_of_how_it_is_called() -> None:
    by_default = keys(machine(SAPPHIRE, CLANG_19))
    assert keys(machine(SAPPHIRE, GCC_12, more=(NAMED_CLANG_19,))) == by_default


def test_only_features_that_are_used_are_in_a_key() -> None:
    assert keys(machine(SAPPHIRE))["avx2"] == keys(machine(HASWELL))["avx2"]
