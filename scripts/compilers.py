"""C++ compilers of this machine, and whether they build sound code for AMX."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from children import run

SETTING_CMAKE_ARGS = "RUNNER_CMAKE_ARGS"

# Older ones lose most of the AMX tile configuration that llama.cpp keeps on the stack (GCC before
# 13.3/14): such a build dies at the first decode of 8 or more tokens.
_GOOD_FOR_AMX = {"gcc": 14, "clang": 17}
_CANDIDATES = ("clang++-19", "clang++-18", "clang++-17", "clang++", "g++-15", "g++-14")
_PLAIN = "#include <vector>\nint main() { return std::vector<int>(1)[0]; }\n"
_OPENMP = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n"
_PROBE_SECONDS = 60


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: how it is called, ``gcc`` or ``clang``, and its version.

    ``c_command`` is the C compiler that goes with it, empty where cmake finds both by itself;
    ``missing`` says what it lacks for a build, and how to get that.
    """

    command: str
    name: str
    version: tuple[int, ...]
    c_command: str = ""
    missing: str = ""

    @property
    def knows_amx(self) -> bool:
        """Whether this version gets AMX right."""
        return self.version[0] >= _GOOD_FOR_AMX.get(self.name, 10_000)

    @property
    def good_for_amx(self) -> bool:
        """Whether it gets AMX right and has all that it needs for a build."""
        return self.knows_amx and not self.missing

    @property
    def short(self) -> str:
        """Name and major version; equal for compilers that build equally good code."""
        return f"{self.name} {self.version[0]}"

    @property
    def cmake_args(self) -> tuple[str, ...]:
        """What makes cmake take it; nothing for the compiler that cmake takes anyway."""
        if not self.c_command:
            return ()
        return f"-DCMAKE_C_COMPILER={self.c_command}", f"-DCMAKE_CXX_COMPILER={self.command}"

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"


def default_compiler(environ: Mapping[str, str]) -> Compiler | None:
    """The compiler that cmake takes: its own setting, then $CXX, then the usual names."""
    chosen = _setting(environ) or environ.get("CXX")
    for command in [chosen] if chosen else ["c++", "g++", "clang++"]:
        compiler = _ask(command)
        if compiler is not None:
            return compiler
    return None


def compilers_for_amx(environ: Mapping[str, str]) -> tuple[Compiler, ...]:
    """Those beside the default one whose version gets AMX right, best first.

    Also those that lack something, which is named in ``missing``. None where the user's own flags
    name a compiler, since they apply to every build.
    """
    if _setting(environ):
        return ()
    found: list[Compiler] = []
    for name in _CANDIDATES:
        path = shutil.which(name, path=environ.get("PATH"))
        compiler = _ask(path) if path else None
        if path is None or compiler is None or not compiler.knows_amx:
            continue
        if compiler.short in [one.short for one in found]:
            continue
        c_path = Path(path).with_name(name.replace("clang++", "clang").replace("g++", "gcc"))
        if shutil.which(c_path) is None:
            missing = f"its C compiler (`apt install {c_path.name}`)"
            found.append(replace(compiler, missing=missing))
        else:
            found.append(proven(replace(compiler, c_command=str(c_path))))
    return tuple(found)


def proven(compiler: Compiler) -> Compiler:
    """The compiler, with what is missing where it cannot build a tiny program with OpenMP."""
    if not _builds(compiler, _PLAIN):
        return replace(compiler, missing="a C++ library that it can use (`apt install g++`)")
    if not _builds(compiler, _OPENMP, "-fopenmp"):
        package = "libomp-{}-dev" if compiler.name == "clang" else "libgcc-{}-dev"
        missing = f"OpenMP (`apt install {package.format(compiler.version[0])}`)"
        return replace(compiler, missing=missing)
    return compiler


def _builds(compiler: Compiler, program: str, *flags: str) -> bool:
    with TemporaryDirectory() as temporary:
        source = Path(temporary) / "program.cpp"
        source.write_text(program, "utf-8")
        command = [*shlex.split(compiler.command), *flags, str(source)]
        done = run([*command, "-o", str(source.with_suffix(""))], timeout=_PROBE_SECONDS)
    return done.code == 0


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


def _setting(environ: Mapping[str, str]) -> str:
    found = re.search(r"-DCMAKE_CXX_COMPILER=(\S+)", environ.get(SETTING_CMAKE_ARGS, ""))
    return found[1] if found else ""


def _ask(command: str) -> Compiler | None:
    try:
        done = subprocess.run([*shlex.split(command), "--version"], capture_output=True, text=True)
    except OSError:
        return None
    return parse_compiler(command, done.stdout)
