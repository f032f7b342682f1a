"""The in-process GGUF model, as the rest of the program sees it. Never imports native code."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from runner.core.closing import Closing
from runner.core.contract import ToolContract
from runner.core.conversation import Generation, Message
from runner.core.errors import ConfigError, RunnerError, WorkerError
from runner.core.ports import View
from runner.models.llama.gguf import check_complete, read_header
from runner.models.llama.process import WorkerProcess
from runner.models.llama.wire import error_from_wire, generation_from_wire, tools_to_wire
from runner.models.settings import ModelSettings


class LlamaModel(Closing):
    """A GGUF model in a worker process of its own. A context manager.

    The worker starts with the first use; one that died is replaced by a fresh one.

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
        self._worker: WorkerProcess | None = None
        self._loading: WorkerProcess | None = None
        self._turn: _Turn | None = None
        # One conversation at a time: a second thread waits.
        self._lock = threading.Lock()
        self._starting = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def dialect(self) -> str:
        return self._settings.dialect

    @property
    def pid(self) -> int | None:
        """Process id of the worker, while one lives."""
        return self._worker.pid if self._worker else None

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines that the worker's native code wrote, while it lives."""
        return tuple(self._worker.log) if self._worker else ()

    def start(self) -> None:
        """Begin to load the model without waiting for it. An error comes with the first use."""
        with self._starting:
            if self._worker is None and self._loading is None:
                self._loading = self._load()

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
        seconds: float | None = None,
    ) -> Generation:
        """See `runner.core.ports.Model.generate`.

        A worker that dies or hangs is replaced once: the conversation is read again and the turn
        is written anew. The view is told by an event ``model.restarted``, the generation has a
        notice. An interrupt (`KeyboardInterrupt`) ends the turn, not the worker.

        Raises
        ------
        WorkerError
            The worker died or hung twice; ``log`` has its last lines.
        """
        request = {
            "messages": [asdict(message) for message in messages],
            "grammar": grammar,
            "max_tokens": max_tokens,
            "seed": seed,
            "tools": tools_to_wire(tools),
        }
        with self._lock:
            turn = self._turn = _Turn(request, view, seconds)
            try:
                return self._write(turn)
            finally:
                self._turn = None

    def cancel(self) -> None:
        """End the generation in progress, which then returns with ``stop`` "cancelled".

        From any thread; without effect where there is none. While the model is being loaded, it
        ends once that is done.
        """
        turn = self._turn
        if turn is not None:
            turn.cancelled = True
            if turn.asked is not None:
                worker, number = turn.asked
                worker.cancel(number)

    def close(self) -> None:
        """End the worker, and with it all memory of the model.

        A generation that is in progress in another thread raises `WorkerError`.
        """
        turn = self._turn
        if turn is not None:
            turn.closed = True
        self._end_worker()

    def _write(self, turn: _Turn) -> Generation:
        try:
            return self._ask(turn)
        except _DiedError as death:
            if turn.closed:
                raise WorkerError(
                    "the model was closed in the middle of a turn",
                    hint="end the turn first: `cancel` does so from any thread",
                ) from None
            problem = str(death.error)
            if turn.view is not None:
                turn.view.event("model.restarted", {"problem": problem, "log": death.error.log})
        try:
            generation = self._ask(turn)
        except (_DiedError, WorkerError) as second:
            error = second.error if isinstance(second, _DiedError) else second
            raise WorkerError(
                f"the model failed twice in one turn: first {problem}; then {error}",
                hint=error.hint,
                log=error.log,
            ) from None
        notice = f"the model was restarted in the middle of this turn: {problem}"
        return replace(generation, notices=(notice, *generation.notices))

    def _ask(self, turn: _Turn) -> Generation:
        worker = self._started()
        number = event = None
        died = False
        try:
            number = worker.ask({**turn.request, "seconds": turn.seconds_left()})
            turn.asked = worker, number
            if turn.cancelled:
                worker.cancel(number)
            event = worker.answer(number, turn.view)
        except WorkerError as error:
            died = True
            raise _DiedError(error) from None
        finally:
            # Somebody interrupted us, or the view failed: the turn ends, and with it the worker
            # only where that takes too long.
            settled = event is not None
            try:
                if not settled and not died and number is not None:
                    settled = worker.give_up(number)
            finally:
                if not settled:
                    self._end_worker()
        if event["event"] == "error":
            raise error_from_wire(event, tuple(worker.log))
        return generation_from_wire(event)

    def _started(self) -> WorkerProcess:
        with self._starting:
            if self._worker is not None and not self._worker.is_alive():
                self._end_worker()
            if self._worker is None:
                worker = self._loading or self._load()
                self._loading = None
                try:
                    worker.finish_loading()
                except (RunnerError, KeyboardInterrupt):
                    worker.end()
                    raise
                self._worker = worker
            return self._worker

    def _load(self) -> WorkerProcess:
        worker = WorkerProcess()
        try:
            worker.load(self._name, self._settings, self._folder)
        except (RunnerError, KeyboardInterrupt):
            worker.end()
            raise
        return worker

    def _end_worker(self) -> None:
        workers = self._worker, self._loading
        self._worker = self._loading = None
        for worker in workers:
            if worker is not None:
                worker.end()


@dataclass
class _Turn:
    """The generation in progress: what is asked, and what became of it so far.

    Attributes
    ----------
    seconds
        Most seconds of it, from the first time that a worker was asked.
    asked
        The worker that was asked last, and the number of the request there.
    """

    request: dict[str, Any]
    view: View | None
    seconds: float | None
    asked: tuple[WorkerProcess, int] | None = None
    cancelled: bool = False
    closed: bool = False
    _until: float | None = None

    def seconds_left(self) -> float | None:
        """What is left of ``seconds``; the first call starts the clock."""
        if self.seconds is None:
            return None
        now = time.monotonic()
        if self._until is None:
            self._until = now + self.seconds
        return max(self._until - now, 0.0)


class _DiedError(Exception):
    """A worker died or hung in the middle of a generation."""

    def __init__(self, error: WorkerError) -> None:
        super().__init__(str(error))
        self.error = error
