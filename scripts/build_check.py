"""Proves and measures an installed build with real models, each in a child process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from children import Finished, run, say
from speed import parse_speed
from wheel_cache import Build

CHECK_SECONDS = 300
# Every model that is larger than this is left out of the check, so that it stays short.
_LARGE_MODEL = 2_000_000_000
_THREADS = 4
_CANNOT_LOAD = 3
_SCRIPT = Path(__file__).with_name("check_llama.py")
# Waiting threads that spin would make the check take minutes beside other work.
_PATIENT = {"OMP_WAIT_POLICY": "passive"}
# As the worker process of the runner has it, so that the measured speed is the one that users get.
_AS_IN_USE = {"GOMP_SPINCOUNT": "10000"}


def check_files(models: Path) -> list[Path]:
    """The model files to check a build with, smallest first: all but large ones, or the smallest.

    Several, since tensor types differ and some code is for some types only.
    """
    files = [path for path in models.glob("*.gguf") if path.is_file()]
    files.sort(key=lambda path: path.stat().st_size)
    return [path for path in files if path.stat().st_size <= _LARGE_MODEL] or files[:1]


def check(build: Build, python: Path, files: Sequence[Path]) -> Build:
    """Let an installed build decode real tokens of each model, and measure it with the smallest.

    Returns the build with the outcome: ``checked`` is False and ``reason`` says what happened
    when a child dies, hangs or gets wrong numbers.
    """
    done, _ = _run(python, [], os.environ | _PATIENT)
    if done.code:
        return replace(build, checked=False, reason=_reason(done, "loading the library"))
    loaded: list[Path] = []
    for file in files:
        done, step = _run(python, [str(file)], os.environ | _PATIENT)
        if done.code == _CANNOT_LOAD:
            say(f"  {file.name} cannot be loaded; not used for the check")
        elif done.code:
            return replace(build, checked=False, reason=_reason(done, step))
        else:
            loaded.append(file)
    if files and not loaded:
        return replace(build, checked=False, reason="it could load no model file")
    reason = "" if files else "there is no model file; run this again once there is one"
    return measure(replace(build, checked=bool(loaded) or None, reason=reason), python, loaded)


def measure(build: Build, python: Path, files: Sequence[Path]) -> Build:
    """Measure an installed build with the first of the files that it can load.

    Returns the build with its speed: None where it can load no file or takes too long. A build
    that dies has failed its check.
    """
    for file in files:
        done, _ = _run(python, [str(file), "measure"], _AS_IN_USE | os.environ)
        if done.code == _CANNOT_LOAD:
            continue
        if done.code and not done.timed_out:
            reason = _reason(done, f"measuring {file.name}")
            return replace(build, checked=False, reason=reason, speed=None)
        speeds = [speed for speed in map(parse_speed, done.lines) if speed]
        if not speeds:
            say(f"  the speed is not known: measuring {file.name} ended with {done.ending}")
        return replace(build, speed=speeds[-1] if speeds else None)
    return replace(build, speed=None)


def _run(
    python: Path, arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[Finished, str]:
    """Run the check script; also returns what it was doing last."""
    threads = min(_THREADS, len(os.sched_getaffinity(0)))
    step = "starting"

    def on_line(line: str) -> None:
        nonlocal step
        if line.startswith(("loading ", "decoding ")):
            step = line
        say(f"  check: {line}")

    done = run(
        [str(python), str(_SCRIPT), str(threads), *arguments],
        on_line=on_line,
        env=environment,
        timeout=CHECK_SECONDS,
    )
    return done, step


def _reason(done: Finished, step: str) -> str:
    if done.code < 0:
        return f"{done.ending} while {step}"
    return done.lines[-1] if done.lines else done.ending
