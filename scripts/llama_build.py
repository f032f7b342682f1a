"""Builds, checks and installs llama-cpp-python for this processor.

A wheel is built once for each kind of processor and kept in a cache with what is known about it
(`build.json`); only one that has decoded real tokens here is used without another look.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from build_check import check_files
from build_choice import by_turns, fastest, keep, kept, preferring, why
from children import Finished, SetupError, Ticker, run, say
from compilers import SETTING_CMAKE_ARGS
from engine import PACKAGE, Engine
from llama_profiles import Machine, Profile, cache_key, ladder, this_machine
from wheel_cache import Build, Wheels


def set_up(
    venv: Path,
    pyproject: Path,
    models: Path,
    cache: Path,
    *,
    forced: str = "",
    comparing: bool = False,
) -> str:
    """Have a working engine in ``venv``; returns one line that says which, and why that one.

    Parameters
    ----------
    models
        Folder of the GGUF files to check with.
    cache
        Folder of the runner's cache.
    forced
        Name of the only build profile to try; also tries one again that failed before.
    comparing
        Build and measure every profile, and take the fastest from now on.

    Raises
    ------
    SetupError
        No profile works, there is no compiler, or pip fails.
    """
    version, others = requirements(pyproject.read_text("utf-8"))
    machine = this_machine(os.environ)
    extra = os.environ.get(SETTING_CMAKE_ARGS, "")
    usual, every = (
        [_plan(version, profile, machine) for profile in profiles]
        for profiles in (
            ladder(machine, forced=forced, extra=extra),
            ladder(machine, every=True, extra=extra),
        )
    )
    wheels = Wheels(cache / "wheels")
    engine = Engine(venv, others, check_files(models))
    choice = None if forced else kept(wheels, every)
    builds = preferring(choice, every, usual)
    found = None if comparing else engine.current(builds)
    if found:
        say(f"{PACKAGE}: {version}, profile {found['profile']}, is installed")
        return f"{PACKAGE} {version}, profile {found['profile']}: {found['why']}"
    if comparing and not engine.files:
        raise SetupError(f"expected a model to compare builds with, found no *.gguf in {models}")
    engine.forget()
    note(machine)
    with wheels.lock():
        working = works(
            every if comparing else builds,
            wheels,
            make=lambda plan: make(plan, wheels, engine.python),
            try_out=lambda build, wheel: engine.prove(build, wheel, anew=comparing),
            again=bool(forced),
        )
        build = next(working, None)
        if build and comparing:
            tried = by_turns(
                [build, *working],
                lambda one: engine.prove(one, wheels.need(one.key), anew=True),
                wheels,
            )
            choice = fastest(tried, every, wheels)
            keep(choice, wheels, every)
            builds = preferring(choice, every, usual)
            (build,) = (one for one in tried if one.key == choice.key)
            engine.install(wheels.need(build.key))
    if build is None:
        engine.uninstall()
        raise SetupError(_all_failed(every if comparing else builds, wheels))
    reason = why(build, builds, machine, forced=bool(forced), choice=choice)
    engine.record(build, builds, reason)
    unchecked = "" if build.checked else f", not checked: {build.reason}"
    return f"{PACKAGE} {version}, profile {build.profile}: {reason}{unchecked}"


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


def works(
    builds: Sequence[Build],
    wheels: Wheels,
    *,
    make: Callable[[Build], Build | None],
    try_out: Callable[[Build, Path], Build],
    again: bool = False,
) -> Iterator[Build]:
    """The builds that work, one after the other, each made where it is not in the cache.

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
                f"{PACKAGE}: skipping profile {plan.label}, which failed here before: "
                f"{known.reason} (--profile {plan.profile} tries it again)"
            )
            continue
        build = known or make(plan)
        wheel = wheels.wheel(plan.key)
        if build is None or wheel is None:
            continue
        if known:
            say(f"{PACKAGE}: taking the wheel of profile {plan.label} from {wheel.parent}")
        result = try_out(build, wheel)
        wheels.save(result)
        if result.checked is not False:
            yield result
        else:
            say(f"{PACKAGE}: profile {plan.label} does not work here: {result.reason}")


def make(plan: Build, wheels: Wheels, python: Path) -> Build | None:
    """Build the wheel of a plan into the cache; None (and the reason said) when it does not build.

    Raises
    ------
    SetupError
        There is no compiler, or pip did not get as far as compiling.
    """
    if not plan.compiler:
        raise SetupError(
            f"expected a C++ compiler to build {PACKAGE}, found none that runs ($CXX, c++, g++, "
            "clang++); install one: `apt install build-essential` or `dnf install gcc-c++`"
        )
    jobs = len(os.sched_getaffinity(0))
    say(
        f"{PACKAGE}: building {plan.version}, profile {plan.profile}, with {plan.compiler}, "
        f"{jobs} at a time; this takes about 5-10 minutes on two cores"
    )
    folder = wheels.folder / plan.key
    log = folder.with_name(f"{plan.key}.log")
    with TemporaryDirectory(dir=wheels.folder, prefix=".build-") as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        done, progress = _compile(plan, python, jobs, Path(temporary), log)
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


def note(machine: Machine) -> None:
    """Say what keeps this machine from a faster build, and which setting is not used."""
    lacking = [one for one in (machine.compiler, *machine.more) if one and one.missing]
    for text in dict.fromkeys(f"{one} gets AMX right but lacks {one.missing}" for one in lacking):
        say(f"  note: {text}")
    if machine.has_amx and not machine.for_amx:
        say(
            "  note: this processor has AMX, but no compiler here gets it right. "
            "`apt install clang-19 libomp-19-dev` and another set-up bring prompts about 4 times "
            "faster on Q4_1 weights and 1.5 times on Q4_K, as measured"
        )
    if os.environ.get("CMAKE_ARGS"):
        say(f"  note: $CMAKE_ARGS is not used; put its flags in ${SETTING_CMAKE_ARGS}")


def _compile(
    plan: Build, python: Path, jobs: int, temporary: Path, log: Path
) -> tuple[Finished, str]:
    """Run pip; also returns the last progress of the compiler, empty when it never started."""
    environment = os.environ | {
        "CMAKE_ARGS": " ".join(plan.cmake_args),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "TMPDIR": str(temporary),
    }
    command = [str(python), "-m", "pip", "wheel", "-v", "--no-deps"]
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


def _plan(version: str, profile: Profile, machine: Machine) -> Build:
    compiler = profile.compiler or machine.compiler
    chosen = profile.compiler.cmake_args if profile.compiler else ()
    return Build(
        key=cache_key(version, profile, machine),
        version=version,
        profile=profile.name,
        cmake_args=(*chosen, *profile.cmake_args),
        cpu_features=profile.features,
        compiler=str(compiler) if compiler else "",
    )


def _all_failed(builds: Sequence[Build], wheels: Wheels) -> str:
    lines = [f"no build of {PACKAGE} {builds[0].version} works on this machine:"]
    for build in builds:
        known = wheels.read(build.key)
        lines.append(f"  {build.label}: {known.reason if known else 'it could not be built'}")
    lines.append(
        f"Force one with --profile NAME, or add flags for cmake with ${SETTING_CMAKE_ARGS}; "
        f"logs are in {wheels.folder}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit("run scripts/setup.py instead")
