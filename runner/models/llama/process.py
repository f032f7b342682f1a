"""The parent's side of one worker process: messages, patience, and how it ended."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, Any

from runner.core.errors import WorkerError
from runner.core.ports import View
from runner.models.llama.memory_kills import memory_kills
from runner.models.llama.state_cache import default_state_cache
from runner.models.llama.wire import error_from_wire
from runner.models.settings import ModelSettings

SILENCE_SECONDS = 60.0
"""A worker that says nothing at all for so long is stopped or starved: it has a heartbeat."""
HANG_SECONDS = 300.0
"""A worker that makes no progress for so long hangs: every batch and every token is progress."""
CANCEL_SECONDS = 1.0
"""How long a cancelled generation may take to end before its worker is ended instead."""
_POLL_SECONDS = 1.0
_LOG_LINES = 200
_CRASHES = tuple(
    -number
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
)
# Threads that wait for each other spin for a short while only. libgomp's own choice spins long: one
# busy neighbour on the same cores then makes decoding tens of times slower. A wait without any
# spinning (OMP_WAIT_POLICY=passive) costs speed on a quiet machine; this does not.
THREAD_SETTINGS = {"GOMP_SPINCOUNT": "10000"}


class WorkerProcess:
    """One worker process, its event queue and the last lines of its log.

    Attributes
    ----------
    description
        What the engine says about itself, once it is loaded.
    log
        The last lines that native code wrote.
    """

    def __init__(self) -> None:
        self.description: dict[str, Any] = {}
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self._number = 0
        self._beats = 0
        self._memory_kills = memory_kills()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runner.models.llama.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Not the user's folder: a module of that name there would be imported instead.
            cwd="/",
            env={**THREAD_SETTINGS, **os.environ, "PYTHONPATH": _python_path()},
            # Ctrl-C at the terminal is for the parent, which then ends the worker's turn.
            start_new_session=True,
        )
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        # Written by a thread of its own: a worker that reads nothing must not hold anybody up.
        self._requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._log_reader = threading.Thread(
            target=self._read_log, args=(self._process.stderr,), daemon=True
        )
        self._threads = [
            self._log_reader,
            threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._write_requests, args=(self._process.stdin,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def load(self, name: str, settings: ModelSettings, folder: Path) -> None:
        """Begin to load the model; `finish_loading` waits for it."""
        # The kernel ends a child with the *thread* that started it: only the main one lives as
        # long as the process.
        bound = threading.current_thread() is threading.main_thread()
        states = default_state_cache()
        self._requests.put(
            {
                "name": name,
                "settings": settings.public(),
                "folder": str(folder),
                # The worker is in another folder.
                "states": {"folder": str(states.folder.absolute()), "limit": states.limit},
                "bound_to_parent": bound,
            }
        )

    def finish_loading(self) -> None:
        """Wait until the model is loaded.

        Raises
        ------
        RunnerError
            What the engine raised, or a `WorkerError` when the worker died.
        """
        event = self._receive()
        while event["event"] == "loading":
            event = self._receive()
        if event["event"] == "error":
            self.end()
            raise error_from_wire(event, tuple(self.log))
        self.description = event["describe"]

    def ask(self, request: dict[str, Any]) -> int:
        """Send a request for a generation; returns its number."""
        self._number += 1
        self._requests.put({"id": self._number, "generate": request})
        return self._number

    def cancel(self, number: int) -> None:
        """Ask the worker to end a generation now; one that has ended is not touched."""
        self._requests.put({"cancel": number})

    def answer(self, number: int, view: View | None) -> dict[str, Any]:
        """What a generation ends with; everything before it goes to ``view``.

        Raises
        ------
        WorkerError
            The worker died, fell silent or hangs.
        """
        while True:
            event = self._receive()
            if event.get("id") != number:
                continue  # of a generation that nobody waits for any more
            if event["event"] in ("done", "error"):
                return event
            if view is not None and event["event"] == "text":
                view.text(event["piece"])
            elif view is not None and event["event"] == "thinking":
                view.thinking(event["piece"])
            elif view is not None and event["event"] == "progress":
                view.progress(event["done"], event["total"])

    def give_up(self, number: int) -> bool:
        """Cancel a generation and wait a moment for its end; whether the worker can go on."""
        until = time.monotonic() + CANCEL_SECONDS
        self.cancel(number)
        try:
            while True:
                event = self._events.get(timeout=max(until - time.monotonic(), 0))
                if event is None:
                    return False
                if event.get("id") == number and event["event"] in ("done", "error"):
                    return True
        except queue.Empty:
            return False

    def end(self) -> None:
        """Kill the process and give back all that belongs to it. Safe to call twice."""
        self._process.kill()
        self._process.wait()
        self._requests.put(None)
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # a request was still in the buffer

    def _receive(self) -> dict[str, Any]:
        """The next event that is more than a heartbeat."""
        # Time is counted in short waits: a parent that was stopped for an hour has not waited for
        # an hour.
        silent = idle = 0.0
        while True:
            beats = self._beats
            try:
                event = self._events.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                idle += _POLL_SECONDS
                silent = silent + _POLL_SECONDS if self._beats == beats else 0.0
                if silent >= SILENCE_SECONDS:
                    raise self._hang(f"has been silent for {silent:.0f} seconds") from None
                if idle >= HANG_SECONDS:
                    raise self._hang(f"has made no progress for {idle:.0f} seconds") from None
                continue
            if event is None:
                raise self._death()
            return event

    def _hang(self, what: str) -> WorkerError:
        return WorkerError(
            f"the worker process of the model {what}",
            hint="the machine may be overloaded or swapping; the worker is ended",
            log=tuple(self.log),
        )

    def _death(self) -> WorkerError:
        code = self._process.wait()
        self._log_reader.join()
        how = f"exit code {code}"
        hint = "its last words are in the transcript; run the task again"
        if code < 0:
            known = {number.value: number.name for number in signal.Signals}
            how = f"killed by {known.get(-code, f'signal {-code}')}"
        if code == -signal.SIGKILL and memory_kills() > self._memory_kills:
            how += ", out of memory"
            hint = "lower `context` for this model in models.toml, or use a smaller model"
        elif code == -signal.SIGKILL:
            hint = "if nobody ended it, the machine ran out of memory: lower `context`"
        elif code in _CRASHES:
            hint = "the engine itself crashed; `runner doctor` tests the build on this machine"
        return WorkerError(
            f"the worker process of the model ended in the middle of its work ({how})",
            hint=hint,
            log=tuple(self.log),
        )

    def _read_events(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            if not line.endswith(b"\n"):
                break  # the worker's death cut it off
            event = json.loads(line)
            if event["event"] == "alive":
                self._beats += 1
            else:
                self._events.put(event)
        self._process.wait()  # at once, so that no zombie stays until the next use
        self._events.put(None)

    def _write_requests(self, pipe: IO[bytes]) -> None:
        try:
            for request in iter(self._requests.get, None):
                pipe.write(json.dumps(request).encode() + b"\n")
                pipe.flush()
        except BrokenPipeError:
            return  # it died, and the other threads notice

    def _read_log(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self.log.append(line.decode("utf-8", "replace").rstrip())


def _python_path() -> str:
    """Makes this very package importable in the worker, however the parent found it."""
    mine = str(Path(__file__).resolve().parents[3])
    theirs = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, [mine, theirs]))
