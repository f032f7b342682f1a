#!/usr/bin/env python3
"""Sets this checkout up: `.venv`, the package, model files, and an engine built for this CPU.

Run it again at any time: it does only what is missing. Needs nothing but Python 3.10 or later;
the only downloader is pip.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from children import SetupError, Ticker, run, say
from compilers import SETTING_CMAKE_ARGS
from llama_build import set_up
from llama_profiles import SETTING_PROFILE

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
OLDEST = (3, 10)
_STAMP = "setup.stamp"
TEST_DATA = ("bfcl-eval", "2026.3.23")
"""A package whose data some tests use. Its code is not used, so what it depends on is left out."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    forced = options.profile or os.environ.get(SETTING_PROFILE, "")
    if options.compare and forced:
        print(
            f"expected --compare or a profile (from --profile or ${SETTING_PROFILE}), "
            f"found both: {forced!r}",
            file=sys.stderr,
        )
        return 2
    started = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)
    try:
        python = make_venv(VENV)
        install_package(python, ROOT, dev=options.dev)
        if options.dev:
            install_test_data(python)
        pull_models(python, options.models)
        engine = set_up(
            VENV,
            ROOT / "pyproject.toml",
            ROOT / "models",
            cache(),
            forced=forced,
            comparing=options.compare,
        )
    except KeyboardInterrupt:
        print("\ninterrupted; run it again to go on", file=sys.stderr)
        return 130
    except (SetupError, OSError) as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    say(f"ready: {engine} ({time.monotonic() - started:.1f} s)")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="environment:\n"
        "  RUNNER_CACHE_DIR      where built wheels and models are kept (~/.cache/runner)\n"
        f"  {SETTING_PROFILE}  as --profile, for every run\n"
        f"  {SETTING_CMAKE_ARGS}     more flags for the build, such as -DGGML_CUDA=ON",
    )
    parser.add_argument("--dev", action="store_true", help="also install what the tests need")
    parser.add_argument(
        "--models",
        nargs="+",
        default=[],
        metavar="NAME",
        help="models of models.toml to get, or 'all'; without it the default model",
    )
    parser.add_argument(
        "--profile",
        default="",
        metavar="NAME",
        help="the only build profile to try: native, avx512, avx2, baseline "
        "(not on x86: native, portable); also tries one again that failed before",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="build and measure every profile that can run here (5-10 minutes each, once), and "
        "keep to the fastest from then on",
    )
    return parser.parse_args(arguments)


def cache() -> Path:
    """The folder that all checkouts of this user share."""
    chosen = os.environ.get("RUNNER_CACHE_DIR")
    return Path(chosen).absolute() if chosen else Path.home() / ".cache" / "runner"


def make_venv(venv: Path) -> Path:
    """Have a sound virtual environment at ``venv``; returns its Python.

    Raises
    ------
    SetupError
        This Python cannot make one.
    """
    python = venv / "bin" / "python"
    fault = venv_fault(venv) if venv.exists() or venv.is_symlink() else "it is missing"
    if not fault:
        say(f"virtual environment: {venv} is there")
        return python
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            version = "{}.{}".format(*sys.version_info)
            raise SetupError(
                f"{sys.executable} has no module '{module}', which makes virtual environments; "
                f"on Debian or Ubuntu: `apt install python{version}-venv`"
            )
    say(f"virtual environment: making {venv} ({fault})")
    if venv.is_symlink():
        venv.unlink()
    elif venv.exists():
        shutil.rmtree(venv)
    # The base interpreter, since this one may live in the environment that was just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    done = run([base, "-m", "venv", str(venv)])
    if done.code:
        raise SetupError(f"cannot make {venv} ({done.ending}):\n{done.tail}")
    return python


def venv_fault(venv: Path) -> str:
    """Why a virtual environment cannot be used; empty when it can."""
    program = (
        "import importlib.util, sys\n"
        "print(*sys.version_info[:2], importlib.util.find_spec('pip') is not None)"
    )
    try:
        done = subprocess.run(
            [str(venv / "bin" / "python"), "-c", program], capture_output=True, text=True
        )
    except OSError as error:
        return f"the one there is broken: its python does not run: {error.strerror}"
    if done.returncode:
        return f"the one there is broken: its python ends with {done.returncode}"
    major, minor, pip = done.stdout.split()
    if (int(major), int(minor)) < OLDEST:
        return f"the one there has Python {major}.{minor}, which is too old"
    if pip != "True":
        return "the one there has no pip"
    activate = venv / "bin" / "activate"
    # Its programs name their interpreter by its whole path, which a moved checkout breaks.
    if activate.is_file() and str(venv) not in activate.read_text("utf-8", "replace"):
        return "the one there was made in another folder"
    return ""


def install_package(python: Path, root: Path, *, dev: bool) -> None:
    """`pip install -e` the checkout, unless that was done for this very `pyproject.toml`."""
    stamp = python.parent.parent / _STAMP
    digest = hashlib.sha256((root / "pyproject.toml").read_bytes()).hexdigest()
    before = stamp.read_text("utf-8").split() if stamp.is_file() else []
    dev = dev or "dev" in before  # what was there once is kept up to date
    wanted = [digest, *(["dev"] if dev else [])]
    what = f"runner{', with what its tests need' if dev else ''}"
    if before == wanted:
        say(f"package: {what}, is installed")
        return
    say(f"package: installing {what}")
    ticker = Ticker(lambda line: line.strip().partition(" (from ")[0])
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    done = run([*command, "-e", f"{root}[dev]" if dev else str(root)], on_line=ticker)
    ticker.close()
    if done.code:
        raise SetupError(f"pip could not install the package ({done.ending}):\n{done.tail}")
    stamp.write_text(" ".join(wanted) + "\n", "utf-8")


def install_test_data(python: Path) -> bool:
    """Have the data of `TEST_DATA`; without them the tests that use them are skipped, visibly."""
    name, version = TEST_DATA
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    if any((python.parent.parent / "lib").glob(f"python*/site-packages/{folder}")):
        say(f"test data: {name} {version}, is installed")
        return True
    say(f"test data: installing {name} {version}, without what it depends on")
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
    done = run([*command, f"{name}=={version}"])
    if done.code:
        say(f"  note: pip could not get it ({done.ending}); tests that use it are skipped.")
        say(f"  To try again: {' '.join(command)} {name}=={version}\n{done.tail}")
    return not done.code


def pull_models(python: Path, names: Sequence[str]) -> None:
    """Get the model files that are missing and check all of them."""
    say(f"models: {' '.join(names) or 'the default model'}")
    command = [str(python), "-m", "runner", "models", "pull", *names]
    done = run(command, on_line=lambda line: say(f"  {line}"), env=os.environ)
    if done.code:
        raise SetupError("could not get the models; the reason is above")


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(f"expected Python 3.10 or later, found {sys.version.split()[0]}: {sys.executable}")
    os.chdir(ROOT)
    sys.exit(main())
