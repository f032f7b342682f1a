"""The in-process GGUF model, as the rest of the program sees it. Never imports native code."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from runner.core.closing import Closing
from runner.core.contract import ToolContract
from runner.core.conversation import Generation, Message
from runner.core.errors import ConfigError, ModelError, WorkerError
from runner.core.ports import View
from runner.models.llama.gguf import check_complete, read_header
from runner.models.llama.wire import error_from_wire, generation_from_wire, tools_to_wire
from runner.models.settings import ModelSettings

SILENCE_SECONDS = 300.0
"""A worker that says nothing for so long hangs: every batch of a prompt and every token speaks."""
_LOG_LINES = 200
# Threads that wait for each other spin for a short while only. libgomp's own choice spins long: one
# busy neighbour on the same cores then makes decoding tens of times slower. A wait without any
# spinning (OMP_WAIT_POLICY=passive) costs speed on a quiet machine; this does not.
_THREAD_SETTINGS = {"GOMP_SPINCOUNT": "10000"}


class LlamaModel(Closing):
    """A GGUF model in a worker process of its own. A context manager.

    The worker starts with the first use; when it died, the next use starts a fresh one.

    Parameters
    ----------
    name
        Its name in `models.toml`.
    settings
        Checked settings, with an absolute ``path``.
    folder
        Folder of `models.toml`.

    Raises
    ------
    ModelFileError
        The model file is missing, cut short or no GGUF.
    ConfigError
        llama-cpp-python is not installed.
    """

    def __init__(self, name: str, settings: ModelSettings, folder: Path) -> None:
        check_complete(settings.path, read_header(settings.path))
        if importlib.util.find_spec("llama_cpp") is None:
            raise ConfigError(
                "llama-cpp-python is not installed, so no GGUF model can run",
                hint="run ./scripts/quickstart, which builds it safely for this processor",
            )
        self._name = name
        self._settings = settings
        self._folder = folder
        self._worker: _Worker | None = None
        # One conversation at a time: a second thread waits.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def dialect(self) -> str:
        return self._settings.dialect

    @property
    def pid(self) -> int | None:
        """Process id of the worker, while one lives."""
        return self._worker.process.pid if self._worker else None

    def describe(self) -> dict[str, Any]:
        worker = self._started()
        return {"name": self._name, "settings": self._settings.public(), **worker.description}

    def generate(
        self,
        messages: Sequence[Message],
        *,
        grammar: str | None,
        max_tokens: int,
        seed: int,
        tools: Sequence[ToolContract] = (),
        view: View | None = None,
    ) -> Generation:
        """See `runner.core.ports.Model.generate`.

        Raises
        ------
        WorkerError
            The worker died or fell silent; ``log`` has its last lines.
        """
        request = {
            "messages": [asdict(message) for message in messages],
            "grammar": grammar,
            "max_tokens": max_tokens,
            "seed": seed,
            "tools": tools_to_wire(tools),
        }
        with self._lock:
            worker = self._started()
            event = None
            try:
                worker.send(request)
                event = worker.last_event(view)
            finally:
                if event is None:
                    # It died, or it still writes a turn that nobody waits for.
                    self.close()
            if event["event"] == "error":
                raise error_from_wire(event, tuple(worker.log))
            return generation_from_wire(event)

    def close(self) -> None:
        """End the worker, and with it all memory of the model."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _started(self) -> _Worker:
        if self._worker is not None and self._worker.process.poll() is not None:
            self.close()
        if self._worker is None:
            worker = _Worker()
            try:
                worker.load(self._settings, self._folder)
            except (ModelError, ConfigError, KeyboardInterrupt):
                worker.end()
                raise
            self._worker = worker
        return self._worker


class _Worker:
    """One worker process, its event queue and the last lines of its log."""

    def __init__(self) -> None:
        self.description: dict[str, Any] = {}
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runner.models.llama.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Not the user's folder: a module of that name there would be imported instead.
            cwd="/",
            env={**_THREAD_SETTINGS, **os.environ, "PYTHONPATH": _python_path()},
            # Ctrl-C at the terminal is for the parent, which then ends the worker.
            start_new_session=True,
        )
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read_events, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def load(self, settings: ModelSettings, folder: Path) -> None:
        self.send({"settings": settings.public(), "folder": str(folder)})
        event = self.receive()
        if event["event"] == "error":
            self.process.wait()
            self._readers[1].join()
            raise error_from_wire(event, tuple(self.log))
        self.description = event["describe"]

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._death() from None

    def last_event(self, view: View | None) -> dict[str, Any]:
        """What a generation ends with; everything before it goes to ``view``."""
        while True:
            event = self.receive()
            if event["event"] in ("done", "error"):
                return event
            if view is not None and event["event"] == "text":
                view.text(event["piece"])
            elif view is not None and event["event"] == "thinking":
                view.thinking(event["piece"])
            elif view is not None and event["event"] == "progress":
                view.progress(event["done"], event["total"])

    def receive(self) -> dict[str, Any]:
        """The next event; raises `WorkerError` when the worker died or fell silent."""
        try:
            event = self._events.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            raise WorkerError(
                f"the worker of the model has been silent for {SILENCE_SECONDS:.0f} seconds",
                hint="the machine may be overloaded; it was ended, run the task again",
                log=tuple(self.log),
            ) from None
        if event is None:
            raise self._death()
        return event

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # a request was still in the buffer

    def _death(self) -> WorkerError:
        code = self.process.wait()
        self._readers[1].join()
        how = f"exit code {code}"
        hint = "its last words are in the transcript; run the task again"
        if code < 0:
            known = {number.value: number.name for number in signal.Signals}
            how = f"killed by {known.get(-code, f'signal {-code}')}"
        if code == -signal.SIGKILL:
            hint = "if nobody ended it, the machine ran out of memory: lower `context`"
        elif code in (-signal.SIGSEGV, -signal.SIGILL, -signal.SIGABRT):
            hint = "the engine itself crashed; `runner doctor` tests the build on this machine"
        return WorkerError(
            f"the worker process of the model ended in the middle of its work ({how})",
            hint=hint,
            log=tuple(self.log),
        )

    def _read_events(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._events.put(json.loads(line))
        self._events.put(None)

    def _read_log(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self.log.append(line.decode("utf-8", "replace").rstrip())


def _python_path() -> str:
    """Makes this very package importable in the worker, however the parent found it."""
    mine = str(Path(__file__).resolve().parents[3])
    theirs = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, [mine, theirs]))
