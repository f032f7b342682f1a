"""Build profiles of llama.cpp: which compiler flags are safe and fast on which processor."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from children import SetupError

SETTING_PROFILE = "RUNNER_BUILD_PROFILE"
SETTING_CMAKE_ARGS = "RUNNER_CMAKE_ARGS"

# The library alone: its programs, tests and image models are not used and cost build time.
_LIBRARY_ONLY = (
    "-DLLAVA_BUILD=OFF",
    "-DLLAMA_BUILD_TOOLS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_OPENSSL=OFF",
)
_PORTABLE = "-DGGML_NATIVE=OFF"
_AVX2 = ("avx2", "fma", "f16c", "bmi2")
_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd")
_AVX512_MORE = {
    "avx512vbmi": "-DGGML_AVX512_VBMI=ON",
    "avx512_vnni": "-DGGML_AVX512_VNNI=ON",
    "avx512_bf16": "-DGGML_AVX512_BF16=ON",
}
_BASELINE = tuple(f"-DGGML_{part}=OFF" for part in ("AVX", "AVX2", "FMA", "F16C", "BMI2"))
_INSTRUCTION_SETS = ("sse", "ssse", "avx", "amx", "fma", "f16c", "bmi", "gfni", "vaes", "vpclmul")
_X86 = ("x86_64", "amd64")
# Older ones lose most of the AMX tile configuration that llama.cpp keeps on the stack (GCC before
# 13.3/14): such a build dies at the first decode of 8 or more tokens.
_GOOD_FOR_AMX = {"gcc": 14, "clang": 17}


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: how it is called, ``gcc`` or ``clang``, and its version."""

    command: str
    name: str
    version: tuple[int, ...]

    @property
    def good_for_amx(self) -> bool:
        return self.version[0] >= _GOOD_FOR_AMX.get(self.name, 10_000)

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"


@dataclass(frozen=True)
class Machine:
    """What a build depends on: architecture, processor features, C library, compiler."""

    architecture: str
    features: frozenset[str]
    libc: str = ""
    compiler: Compiler | None = None


@dataclass(frozen=True)
class Profile:
    """Flags for one build, and the processor features that its code may use."""

    name: str
    cmake_args: tuple[str, ...]
    features: tuple[str, ...] = ()


def this_machine(environ: Mapping[str, str]) -> Machine:
    """The machine that this runs on, with the compiler that cmake will use."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text("utf-8", "replace") if cpuinfo.is_file() else ""
    libc = " ".join(platform.libc_ver())
    return Machine(platform.machine(), cpu_features(text), libc, _find_compiler(environ))


def cpu_features(cpuinfo: str) -> frozenset[str]:
    """The features of the first processor in the text of `/proc/cpuinfo`."""
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def parse_compiler(command: str, version_text: str) -> Compiler | None:
    """Read what a compiler prints for ``--version``; None when it is neither GCC nor clang."""
    clang = re.search(r"clang version (\d+(?:\.\d+)*)", version_text)
    # Vendors put versions of their packages in brackets: `g++ (Debian 12.2.0-14) 12.2.0`.
    first = re.sub(r"\([^)]*\)", "", version_text.partition("\n")[0])
    gcc = re.search(r"\s(\d+(?:\.\d+)+)", first) if "Free Software" in version_text else None
    match = clang or gcc
    if match is None:
        return None
    version = tuple(int(part) for part in match[1].split("."))
    return Compiler(command, "clang" if clang else "gcc", version)


def _find_compiler(environ: Mapping[str, str]) -> Compiler | None:
    """The compiler that cmake takes: its own setting, then $CXX, then the usual names."""
    setting = re.search(r"-DCMAKE_CXX_COMPILER=(\S+)", environ.get(SETTING_CMAKE_ARGS, ""))
    chosen = setting[1] if setting else environ.get("CXX")
    for command in [chosen] if chosen else ["c++", "g++", "clang++"]:
        try:
            done = subprocess.run(
                [*shlex.split(command), "--version"], capture_output=True, text=True
            )
        except OSError:
            continue
        compiler = parse_compiler(command, done.stdout)
        if compiler is not None:
            return compiler
    return None


def ladder(machine: Machine, *, forced: str = "", extra: str = "") -> list[Profile]:
    """The profiles to try on a machine, best first.

    Parameters
    ----------
    forced
        Name of the only profile to try.
    extra
        More arguments for cmake, as one would write them in a shell.

    Raises
    ------
    SetupError
        The forced profile does not exist or needs features that the processor lacks.
    """
    able = [p for p in _profiles(machine) if machine.features.issuperset(p.features)]
    if forced:
        names = ", ".join(profile.name for profile in able)
        able = [profile for profile in able if profile.name == forced]
        if not able:
            raise SetupError(
                f"expected a build profile that this processor can run ({names}), "
                f"found {forced!r} (from --profile or ${SETTING_PROFILE})"
            )
    elif not _native_is_best(machine):
        able = [profile for profile in able if profile.name != "native"]
    tail = (*_LIBRARY_ONLY, *shlex.split(extra))
    return [replace(profile, cmake_args=profile.cmake_args + tail) for profile in able]


def _native_is_best(machine: Machine) -> bool:
    if machine.architecture.lower() not in _X86:
        return True
    return amx_is_usable(machine) is True


def amx_is_usable(machine: Machine) -> bool | None:
    """Whether the compiler builds sound code for the processor's AMX; None without AMX."""
    if "amx_tile" not in machine.features:
        return None
    return machine.compiler is not None and machine.compiler.good_for_amx


def _profiles(machine: Machine) -> list[Profile]:
    if machine.architecture.lower() not in _X86:
        every = tuple(sorted(machine.features))
        return [Profile("native", ("-DGGML_NATIVE=ON",), every), Profile("portable", (_PORTABLE,))]
    sets = tuple(sorted(f for f in machine.features if f.startswith(_INSTRUCTION_SETS)))
    more = tuple(feature for feature in _AVX512_MORE if feature in machine.features)
    avx512 = (_PORTABLE, "-DGGML_AVX512=ON", *(_AVX512_MORE[feature] for feature in more))
    # Some virtual processors do not even show SSE 4.2, which llama.cpp takes for granted.
    sse = () if "sse4_2" in machine.features else ("-DGGML_SSE42=OFF",)
    return [
        Profile("native", ("-DGGML_NATIVE=ON",), sets),
        Profile("avx512", avx512, _AVX2 + _AVX512 + more),
        Profile("avx2", (_PORTABLE,), _AVX2),
        Profile("baseline", (_PORTABLE, *_BASELINE, *sse)),
    ]


def cache_key(version: str, profile: Profile, machine: Machine) -> str:
    """Name of the cache folder for a build: equal only where the wheel is as good as a new one."""
    compiler = machine.compiler if profile.name == "native" else None
    parts = [
        version,
        list(profile.cmake_args),
        list(profile.features),
        [machine.architecture, machine.libc],
        [compiler.name, compiler.version[0]] if compiler else None,
    ]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{version}-{profile.name}-{digest[:12]}"
