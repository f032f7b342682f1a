"""What the tests of the set-up share: its modules on the path, and a stand-in for a Python."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

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
*check_llama.py*measure)
    if grep -q "$(cat "$here/slow" 2>/dev/null || echo nothing)" "$here/installed"
    then rate=50.0; else rate=200.0; fi
    if [ -e "$here/baffled" ]; then exit 3; fi
    echo "speed of model.gguf: prompt $rate, decode 30.0 tokens/s, 2 threads";;
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
def wheels(tmp_path: Path) -> Any:
    return importlib.import_module("wheel_cache").Wheels(tmp_path / "wheels")


@pytest.fixture
def amx_machine() -> Any:
    """A processor with AVX-512 and AMX, and a compiler that gets AMX wrong."""
    features = "sse4_2 avx2 fma f16c bmi2 avx512f avx512dq avx512cd avx512bw avx512vl amx_tile"
    gcc = importlib.import_module("compilers").Compiler("c++", "gcc", (12, 2, 0))
    machine: Any = importlib.import_module("llama_profiles").Machine
    return machine("x86_64", frozenset(features.split()), "glibc 2.36", gcc)


@pytest.fixture
def engine(
    environment: Path,
    amx_machine: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: Callable[[], str],
) -> Any:
    """Runs the engine's part of the set-up, on `amx_machine` unless another one is given."""
    llama_build: Any = importlib.import_module("llama_build")
    monkeypatch.delenv("RUNNER_CMAKE_ARGS", raising=False)
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=ON")
    models = tmp_path / "models"
    models.mkdir()
    (models / "model.gguf").write_bytes(b"GGUF")

    def run(machine: Any = amx_machine, **options: Any) -> str:
        calls()
        monkeypatch.setattr(llama_build, "this_machine", lambda environ: machine)
        pyproject = SCRIPTS.parent / "pyproject.toml"
        text: str = llama_build.set_up(environment, pyproject, models, tmp_path, **options)
        return text

    return run


@pytest.fixture
def put_compiler(tmp_path: Path) -> Callable[..., Path]:
    """Puts a program into `bin` that says it is a compiler and takes nearly every program."""

    def put(name: str, version: str, *, refuses: str = "nothing") -> Path:
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            "#!/bin/sh\n"
            f"if [ \"$1\" = --version ]; then cat <<'END'\n{version}END\nexit; fi\n"
            f'for file; do case "$file" in *.cpp) ! grep -q "<{refuses}>" "$file" || exit 1;; '
            "esac; done\n"
        )
        file.chmod(0o755)
        return file

    return put


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
