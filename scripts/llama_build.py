"""Builds, checks and installs llama-cpp-python for this processor.

A wheel is built once for each kind of processor and kept in a cache with what is known about it
(`build.json`); only one that has decoded real tokens here is used without another look.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from children import Finished, SetupError, Ticker, run, say
from llama_profiles import (
    SETTING_CMAKE_ARGS,
    Machine,
    Profile,
    amx_is_usable,
    cache_key,
    ladder,
    this_machine,
)
from wheel_cache import Build, Wheels

PACKAGE = "llama-cpp-python"
CHECK_SECONDS = 300
# Every model that is larger than this is left out of the check, so that it stays short.
_LARGE_MODEL = 2_000_000_000
_CHECK_THREADS = 4
_CANNOT_LOAD = 3
_CHECK_SCRIPT = Path(__file__).with_name("check_llama.py")


def set_up(venv: Path, pyproject: Path, models: Path, cache: Path, *, forced: str = "") -> str:
    """Have a working engine in ``venv``; returns one line that says which.

    Parameters
    ----------
    models
        Folder of the GGUF files to check with.
    cache
        Folder of the runner's cache.
    forced
        Name of the only build profile to try; also tries one again that failed before.

    Raises
    ------
    SetupError
        No profile works, there is no compiler, or pip fails.
    """
    version, others = requirements(pyproject.read_text("utf-8"))
    machine = this_machine(os.environ)
    profiles = ladder(machine, forced=forced, extra=os.environ.get(SETTING_CMAKE_ARGS, ""))
    builds = [_plan(version, profile, machine) for profile in profiles]
    files = check_files(models)
    stamp = venv / "llama-build.json"
    if _is_installed(venv, stamp, builds, files):
        profile = json.loads(stamp.read_text("utf-8"))["profile"]
        say(f"{PACKAGE}: {version}, profile {profile}, is installed")
        return f"{PACKAGE} {version}, profile {profile}"
    wheels = Wheels(cache / "wheels")
    stamp.unlink(missing_ok=True)

    def try_out(build: Build, wheel: Path) -> Build:
        _install(venv, wheel, others)
        return build if build.checked else check(build, venv / "bin" / "python", files)

    with wheels.lock():
        build = choose(
            builds,
            wheels,
            make=lambda plan: make(plan, wheels, venv, machine),
            try_out=try_out,
            again=bool(forced),
        )
    if build is None:
        _pip(venv, "uninstall", "--yes", PACKAGE)
        raise SetupError(_all_failed(builds, wheels))
    build.save(stamp, ladder=[plan.key for plan in builds])
    unchecked = "" if build.checked else f", not checked: {build.reason}"
    return f"{PACKAGE} {version}, profile {build.profile}{unchecked}"


def requirements(pyproject: str) -> tuple[str, list[str]]:
    """The version of llama-cpp-python in the `llama` extra, and the extra's other requirements.

    Read with a pattern, since Python 3.10 has no TOML reader of its own.
    """
    extra = re.search(r"^llama\s*=\s*\[(.*?)\]", pyproject, re.MULTILINE | re.DOTALL)
    found = re.findall(r"""["']([^"']+)["']""", extra[1]) if extra else []
    versions = [text.partition("==")[2] for text in found if text.startswith(f"{PACKAGE}==")]
    if len(versions) != 1:
        raise SetupError(
            f'pyproject.toml: expected `llama = ["{PACKAGE}==VERSION", ...]`, found {found}'
        )
    return versions[0], [text for text in found if not text.startswith(PACKAGE)]


def check_files(models: Path) -> list[Path]:
    """The model files to check a build with, smallest first: all but large ones, or the smallest.

    Several, since tensor types differ and some code is for some types only.
    """
    files = [path for path in models.glob("*.gguf") if path.is_file()]
    files.sort(key=lambda path: path.stat().st_size)
    return [path for path in files if path.stat().st_size <= _LARGE_MODEL] or files[:1]


def choose(
    builds: Sequence[Build],
    wheels: Wheels,
    *,
    make: Callable[[Build], Build | None],
    try_out: Callable[[Build, Path], Build],
    again: bool = False,
) -> Build | None:
    """The first build that works, made where it is not in the cache; None when none works.

    Parameters
    ----------
    builds
        The planned builds, best first.
    make
        Builds a wheel into the cache; None when that failed.
    try_out
        Installs a wheel and says how its check went.
    again
        Whether to try builds that have failed here before.
    """
    for plan in builds:
        known = wheels.read(plan.key)
        if known is not None and known.checked is False and not again:
            say(
                f"{PACKAGE}: skipping profile {plan.profile}, which failed here before: "
                f"{known.reason} (--profile {plan.profile} tries it again)"
            )
            continue
        build = known or make(plan)
        wheel = wheels.wheel(plan.key)
        if build is None or wheel is None:
            continue
        if known:
            say(f"{PACKAGE}: taking the wheel of profile {plan.profile} from {wheel.parent}")
        result = try_out(build, wheel)
        wheels.save(result)
        if result.checked is not False:
            return result
        say(f"{PACKAGE}: profile {plan.profile} does not work here: {result.reason}")
    return None


def make(plan: Build, wheels: Wheels, venv: Path, machine: Machine) -> Build | None:
    """Build the wheel of a plan into the cache; None (and the reason said) when it does not build.

    Raises
    ------
    SetupError
        There is no compiler, or pip did not get as far as compiling.
    """
    if machine.compiler is None:
        raise SetupError(
            f"expected a C++ compiler to build {PACKAGE}, found none that runs ($CXX, c++, g++, "
            "clang++); install one: `apt install build-essential` or `dnf install gcc-c++`"
        )
    jobs = len(os.sched_getaffinity(0))
    say(
        f"{PACKAGE}: building {plan.version}, profile {plan.profile}, with {machine.compiler}, "
        f"{jobs} at a time; this takes about 5-10 minutes on two cores"
    )
    _warn(machine)
    folder = wheels.folder / plan.key
    log = folder.with_name(f"{plan.key}.log")
    with TemporaryDirectory(dir=wheels.folder, prefix=".build-") as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        done, progress = _compile(plan, venv, jobs, Path(temporary), log)
        if done.code:
            text = f"building profile {plan.profile} failed; the end of {log}:\n{done.tail}"
            if not progress:
                raise SetupError(f"{text}\nNothing was compiled: is the package index in reach?")
            say(f"{PACKAGE}: {text}")
            return None
        build = replace(plan, seconds=round(done.seconds, 1))
        build.save(new / "build.json")
        shutil.rmtree(folder, ignore_errors=True)
        new.replace(folder)
    say(f"{PACKAGE}: built in {done.seconds:.0f} s (log {log})")
    return build


def _warn(machine: Machine) -> None:
    if amx_is_usable(machine) is False:
        say(
            f"  note: {machine.compiler} builds broken code for this processor's AMX; prompts are "
            "read faster with GCC 14 or clang 17 and later (set CC and CXX)"
        )
    if os.environ.get("CMAKE_ARGS"):
        say(f"  note: $CMAKE_ARGS is not used; put its flags in ${SETTING_CMAKE_ARGS}")


def _compile(
    plan: Build, venv: Path, jobs: int, temporary: Path, log: Path
) -> tuple[Finished, str]:
    """Run pip; also returns the last progress of the compiler, empty when it never started."""
    environment = os.environ | {
        "CMAKE_ARGS": " ".join(plan.cmake_args),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "TMPDIR": str(temporary),
    }
    command = [str(venv / "bin" / "python"), "-m", "pip", "wheel", "-v", "--no-deps"]
    # pip's cache takes no notice of CMAKE_ARGS, and neither does a wheel from an index.
    command += ["--no-cache-dir", "--no-binary", PACKAGE, "--disable-pip-version-check"]
    command += ["-w", str(temporary / "new"), f"{PACKAGE}=={plan.version}"]
    progress = ""

    def describe(line: str) -> str:
        nonlocal progress
        progress = compile_progress(line) or progress
        return progress or "getting the source and the build tools"

    ticker = Ticker(describe)
    with log.open("w", encoding="utf-8") as file:
        try:
            done = run(command, on_line=ticker, env=environment, log=file)
        finally:
            ticker.close()
    return done, progress


def compile_progress(line: str) -> str:
    """How far a build is, from a line of ninja (``[12/140] ...``) or make (``[ 8%] ...``)."""
    match = re.match(r"\s*\[\s*(\d+)(?:/(\d+)|%)\]", line)
    if match is None:
        return ""
    return f"compiled {match[1]} of {match[2]}" if match[2] else f"compiled {match[1]} %"


def check(build: Build, python: Path, files: Sequence[Path]) -> Build:
    """Let an installed build decode real tokens of each model in a child process.

    Returns the build with the outcome: ``checked`` is False and ``reason`` says what happened
    when a child dies, hangs or gets wrong numbers.
    """
    done, _ = _check_one(python, None)
    if done.code:
        return replace(build, checked=False, reason=_reason(done, "loading the library"))
    decoded = False
    for file in files:
        done, step = _check_one(python, file)
        if done.code == _CANNOT_LOAD:
            say(f"  {file.name} cannot be loaded; not used for the check")
        elif done.code:
            return replace(build, checked=False, reason=_reason(done, step))
        else:
            decoded = True
    if files and not decoded:
        return replace(build, checked=False, reason="it could load no model file")
    reason = "" if files else "there is no model file; run this again once there is one"
    return replace(build, checked=decoded or None, reason=reason)


def _check_one(python: Path, file: Path | None) -> tuple[Finished, str]:
    """Run the check script; also returns what it was doing last."""
    threads = min(_CHECK_THREADS, len(os.sched_getaffinity(0)))
    command = [str(python), str(_CHECK_SCRIPT), str(threads), *([str(file)] if file else [])]
    # Waiting threads that spin would make the check take minutes beside other work.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    step = "starting"

    def on_line(line: str) -> None:
        nonlocal step
        if line.startswith(("loading ", "decoding ")):
            step = line
        say(f"  check: {line}")

    return run(command, on_line=on_line, env=environment, timeout=CHECK_SECONDS), step


def _reason(done: Finished, step: str) -> str:
    if done.code < 0:
        return f"{done.ending} while {step}"
    return done.lines[-1] if done.lines else done.ending


def _plan(version: str, profile: Profile, machine: Machine) -> Build:
    return Build(
        key=cache_key(version, profile, machine),
        version=version,
        profile=profile.name,
        cmake_args=profile.cmake_args,
        cpu_features=profile.features,
        compiler=str(machine.compiler),
    )


def _is_installed(venv: Path, stamp: Path, builds: Sequence[Build], files: Sequence[Path]) -> bool:
    """Whether the last set-up had the same choice as this one and what it installed is there."""
    if not stamp.is_file():
        return False
    found = json.loads(stamp.read_text("utf-8"))
    package = f"lib/python*/site-packages/llama_cpp_python-{builds[0].version}.dist-info"
    return (
        found.get("ladder") == [build.key for build in builds]
        and (found.get("checked") is True or not files)
        and any(venv.glob(package))
    )


def _install(venv: Path, wheel: Path, others: Sequence[str]) -> None:
    say(f"{PACKAGE}: installing {wheel.name}")
    # Two steps: a wheel of the same version is installed again only by force, but its
    # dependencies must not be, since that would need a network.
    _pip(venv, "install", "--force-reinstall", "--no-deps", str(wheel))
    _pip(venv, "install", str(wheel), *others)


def _pip(venv: Path, *arguments: str) -> None:
    command = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    done = run([*command, *arguments])
    if done.code:
        raise SetupError(f"`pip {' '.join(arguments)}` ended with {done.ending}:\n{done.tail}")


def _all_failed(builds: Sequence[Build], wheels: Wheels) -> str:
    lines = [f"no build of {PACKAGE} {builds[0].version} works on this machine:"]
    for build in builds:
        known = wheels.read(build.key)
        lines.append(f"  {build.profile}: {known.reason if known else 'it could not be built'}")
    lines.append(
        f"Force one with --profile NAME, or add flags for cmake with ${SETTING_CMAKE_ARGS}; "
        f"logs are in {wheels.folder}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit("run scripts/setup.py instead")
