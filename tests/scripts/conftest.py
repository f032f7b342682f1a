"""What the tests of the set-up share: its modules on the path, and a stand-in for a Python."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

STAND_IN = """#!/bin/sh
# Plays `python -m pip ...` and `python check_llama.py ...` for a virtual environment.
here=$(dirname "$(dirname "$0")")
echo "$@" >> "$here/calls"
ulimit -c 0
case "$*" in
*"pip wheel"*)
    while [ "$1" != -w ]; do shift; done
    echo "  [1/2] c++ one.cpp"
    if [ -e "$here/hang" ]; then sleep 300 & echo $! > "$here/sleeper"; wait; fi
    if [ -e "$here/does-not-compile" ]; then echo "one.cpp: error: nonsense"; exit 1; fi
    echo "  [2/2] c++ two.cpp"
    echo "$CMAKE_ARGS" > "$2/llama_cpp_python-0.3.36-py3-none-any.whl";;
*"pip"*"install --force-reinstall"*)
    for wheel; do :; done
    cp "$wheel" "$here/installed"
    mkdir -p "$here/lib/python3/site-packages/llama_cpp_python-0.3.36.dist-info";;
*"--no-deps bfcl-eval"*)
    if [ -e "$here/offline" ]; then echo "ERROR: no such index"; exit 1; fi
    mkdir -p "$here/lib/python3/site-packages/bfcl_eval-2026.3.23.dist-info";;
*check_llama.py*)
    echo "loading model.gguf"
    echo "decoding 8 tokens of model.gguf"
    if [ $# -gt 2 ] && grep -q "$(cat "$here/crashing" 2>/dev/null || echo nothing)" \\
        "$here/installed"; then kill -SEGV $$; fi;;
esac
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text(STAND_IN)
    (folder / "bin" / "python").chmod(0o755)
    return folder


@pytest.fixture
def calls(environment: Path) -> Callable[[], str]:
    """What that Python was called with since this was asked last, a line each."""

    def take() -> str:
        file = environment / "calls"
        text = file.read_text() if file.exists() else ""
        file.unlink(missing_ok=True)
        return text

    return take


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    """Whether a process goes on living; waits a little for its end."""
    return _is_alive


def _is_alive(process: int) -> bool:
    for _ in range(100):  # an orphan stays a zombie until it is collected
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z":
                time.sleep(0.05)
                continue
        return False
    return True
