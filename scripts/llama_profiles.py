"""Build profiles of llama.cpp: which compiler flags are safe and fast on which processor."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from children import SetupError
from compilers import Compiler, compilers_for_amx, default_compiler, proven

SETTING_PROFILE = "RUNNER_BUILD_PROFILE"

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


@dataclass(frozen=True)
class Machine:
    """What a build depends on: architecture, processor features, C library, compilers.

    ``compiler`` is the one that cmake takes by itself; ``more`` are others that get AMX right, best
    first, looked for only where the processor has AMX.
    """

    architecture: str
    features: frozenset[str]
    libc: str = ""
    compiler: Compiler | None = None
    more: tuple[Compiler, ...] = ()

    @property
    def has_amx(self) -> bool:
        return "amx_tile" in self.features

    @property
    def for_amx(self) -> tuple[Compiler, ...]:
        """The compilers that can build for AMX, each kind and major version once, best first."""
        able = [one for one in (self.compiler, *self.more) if one and one.good_for_amx]
        first = {one.short: one for one in reversed(able)}
        return tuple(one for one in able if first[one.short] is one)


@dataclass(frozen=True)
class Profile:
    """Flags for one build, the processor features that its code may use, and the compiler.

    ``compiler`` is None where every compiler is as good, and the one that cmake takes is used.
    """

    name: str
    cmake_args: tuple[str, ...]
    features: tuple[str, ...] = ()
    compiler: Compiler | None = None


def this_machine(environ: Mapping[str, str], cpuinfo: Path = Path("/proc/cpuinfo")) -> Machine:
    """The machine that this runs on, with its compilers."""
    text = cpuinfo.read_text("utf-8", "replace") if cpuinfo.is_file() else ""
    libc = " ".join(platform.libc_ver())
    compiler = default_compiler(environ)
    machine = Machine(platform.machine(), cpu_features(text), libc, compiler)
    if not machine.has_amx:
        return machine
    if compiler is not None and compiler.knows_amx:
        compiler = proven(compiler)
    return replace(machine, compiler=compiler, more=compilers_for_amx(environ))


def cpu_features(cpuinfo: str) -> frozenset[str]:
    """The features of the first processor in the text of `/proc/cpuinfo`."""
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def ladder(
    machine: Machine, *, forced: str = "", extra: str = "", every: bool = False
) -> list[Profile]:
    """The profiles to try on a machine, best first; `native` once for each sound compiler.

    Parameters
    ----------
    forced
        Name of the only profile to try.
    every
        Also `native` where it is sound but not known to be better than the others.
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
    elif not _is_native_tried(machine, every):
        able = [profile for profile in able if profile.name != "native"]
    tail = (*_LIBRARY_ONLY, *shlex.split(extra))
    return [replace(profile, cmake_args=profile.cmake_args + tail) for profile in able]


def _is_native_tried(machine: Machine, every: bool) -> bool:
    if machine.architecture.lower() not in _X86:
        return True
    return bool(machine.for_amx) if machine.has_amx else every


def _profiles(machine: Machine) -> list[Profile]:
    if machine.architecture.lower() not in _X86:
        every = tuple(sorted(machine.features))
        native = Profile("native", ("-DGGML_NATIVE=ON",), every, machine.compiler)
        return [native, Profile("portable", (_PORTABLE,))]
    sets = tuple(sorted(f for f in machine.features if f.startswith(_INSTRUCTION_SETS)))
    more = tuple(feature for feature in _AVX512_MORE if feature in machine.features)
    avx512 = (_PORTABLE, "-DGGML_AVX512=ON", *(_AVX512_MORE[feature] for feature in more))
    # Some virtual processors do not even show SSE 4.2, which llama.cpp takes for granted.
    sse = () if "sse4_2" in machine.features else ("-DGGML_SSE42=OFF",)
    able = machine.for_amx if machine.has_amx else ()
    natives = [
        Profile("native", ("-DGGML_NATIVE=ON",), sets, compiler)
        for compiler in able or (machine.compiler,)
    ]
    return [
        *natives,
        Profile("avx512", avx512, _AVX2 + _AVX512 + more),
        Profile("avx2", (_PORTABLE,), _AVX2),
        Profile("baseline", (_PORTABLE, *_BASELINE, *sse)),
    ]


def cache_key(version: str, profile: Profile, machine: Machine) -> str:
    """Name of the cache folder for a build: equal only where the wheel is as good as a new one."""
    # Without the names of the compiler's programs: the same version may have several.
    compiler = profile.compiler
    parts = [
        version,
        list(profile.cmake_args),
        list(profile.features),
        [machine.architecture, machine.libc],
        [compiler.name, compiler.version[0]] if compiler else None,
    ]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{version}-{profile.name}-{digest[:12]}"
