"""Measures whole processes: cold and warm starts, a busy machine, memory."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from runner.core.conversation import Message
from runner.models.llama.model import LlamaModel
from runner.models.settings import ModelSettings

Say = Callable[[str], None]

_LONG_SYSTEM = "You keep the records of a warehouse. " + "".join(
    f"Rule {number}: goods of class {number * 7 % 31} are kept in hall {number % 9} and are "
    f"counted every {number % 5 + 2} days.\n"
    for number in range(56)
)
"""About 1,500 tokens."""
_QUESTION = [Message("system", _LONG_SYSTEM), Message("user", "Where is class 7 kept?")]
_TALK = [Message("user", "Tell me a long story about a lighthouse.")]
_IMPORTS = "import typer, pydantic"
_HELP = "from runner.cli import main; import sys; sys.argv = ['runner', '--help']; main()"
_BUSY = "while True: pass"
_ROUNDS = 9


class _FirstText:
    """A view that remembers when the first text came."""

    def __init__(self) -> None:
        self.at: float | None = None

    def text(self, piece: str) -> None:
        if self.at is None:
            self.at = time.perf_counter()

    def thinking(self, piece: str) -> None:
        self.text(piece)

    def progress(self, done: int, total: int) -> None: ...

    def event(self, kind: str, data: dict[str, Any]) -> None: ...


def measure_starts(name: str, settings: ModelSettings, folder: Path, say: Say) -> dict[str, Any]:
    """Seconds to the first text, cold and from a state on disk; and what starting costs."""

    def first_text() -> tuple[float, int, int]:
        view = _FirstText()
        started = time.perf_counter()
        with LlamaModel(name, settings, folder) as model:
            done = model.generate(_QUESTION, grammar=None, max_tokens=4, seed=1, view=view)
        assert view.at is not None
        return view.at - started, done.usage.prompt_tokens, done.usage.reused_tokens

    with LlamaModel(name, settings, folder) as model:
        model.describe()  # the file is in the page cache from now on
    with (
        tempfile.TemporaryDirectory() as cache,
        _environment(RUNNER_CACHE_DIR=cache, RUNNER_STATE_CACHE_MB="1000"),
    ):
        say("start: the first one")
        cold, tokens, _ = first_text()
        say("start: the second one")
        warm, _, reused = first_text()
    say("start: from the command to the model")
    return {
        "cold_seconds": cold,
        "warm_seconds": warm,
        "prompt_tokens": tokens,
        "reused_tokens": reused,
        "command_seconds": _command_seconds(name, folder),
        "help_ratio": _help_ratio(),
    }


def _command_seconds(name: str, folder: Path) -> float:
    """From the start of `runner run` to a model that is ready, without loading the file."""
    seconds: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as records:
            started = time.time()
            subprocess.run(
                [sys.executable, "-m", "runner", "run", "Say yes.", "--model", name,
                 "--config", str(folder / "models.toml"), "--records", records,
                 "--max-turns", "1", "--json"],
                capture_output=True, check=False,
            )  # fmt: skip
            (record,) = Path(records).rglob("*.jsonl")
            events = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
        (ready,) = (event for event in events if event["event"] == "model.ready")
        at = datetime.fromisoformat(ready["time"]).timestamp()
        seconds.append(at - started - ready["load_seconds"])
    return statistics.median(seconds)


def _help_ratio() -> float:
    def seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return time.perf_counter() - started

    ours, theirs = [], []
    for _ in range(_ROUNDS):
        ours.append(seconds(_HELP))
        theirs.append(seconds(_IMPORTS))
    return statistics.median(ours) / statistics.median(theirs)


def measure_busy(name: str, settings: ModelSettings, folder: Path, say: Say) -> dict[str, Any]:
    """Free tokens a second, quiet and beside two processes that never rest."""
    rates: dict[str, list[float]] = {"quiet": [], "busy": []}
    notices: dict[str, set[str]] = {"quiet": set(), "busy": set()}
    with LlamaModel(name, settings.model_copy(update={"guess_ahead": False}), folder) as model:

        def rate(kind: str) -> None:
            done = model.generate(_TALK, grammar=None, max_tokens=48, seed=1)
            notices[kind].update(notice.partition(":")[0] for notice in done.notices)
            rates[kind].append((done.usage.generated_tokens - 1) / done.usage.decode_seconds)

        rate("quiet")
        rates["quiet"].clear()
        for number in range(3):
            say(f"busy: round {number + 1} of 3")
            rate("quiet")
            with _busy_processes(2):
                rate("busy")
    return {
        **{kind: statistics.median(values) for kind, values in rates.items()},
        "told": {kind: sorted(texts) for kind, texts in notices.items()},
    }


def measure_memory(name: str, settings: ModelSettings, folder: Path, say: Say) -> dict[str, Any]:
    """Resident memory of a worker that has written a turn, in millions of bytes."""
    say("memory: one turn")
    with LlamaModel(name, settings, folder) as model:
        model.generate(_QUESTION, grammar='root ::= [a-z ]+ "."', max_tokens=20, seed=1)
        assert model.pid is not None
        resident = psutil.Process(model.pid).memory_info().rss / 1e6
        log = "\n".join(model.log)
    buffers = {kind: _megabytes(pattern, log) for kind, pattern in _BUFFERS.items()}
    file = settings.path.stat().st_size / 1e6
    return {
        "resident_mb": resident,
        "file_mb": file,
        **{f"{kind}_mb": size for kind, size in buffers.items()},
        "beyond_mb": resident - file - sum(buffers.values()),
    }


_BUFFERS = {
    "kv_cache": r"(?:KV|RS) buffer size = +([\d.]+) MiB",
    "compute": r"reserve: .* compute buffer size = +([\d.]+) MiB",
    "output": r"output buffer size = +([\d.]+) MiB",
}


def _megabytes(pattern: str, log: str) -> float:
    """Sum of what a log says in MiB, in millions of bytes."""
    return sum(float(size) for size in re.findall(pattern, log)) * 2**20 / 1e6


@contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
