"""The in-process GGUF model, as the rest of the program sees it. Never imports native code."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
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
        self._worker: WorkerProcess | None = None
        # The generation in progress: its worker and number there.
        self._current: tuple[WorkerProcess, int] | None = None
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
        return self._worker.pid if self._worker else None

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
            "seconds": seconds,
        }
        with self._lock:
            try:
                return self._ask(request, view)
            except _DiedError as death:
                problem = str(death.error)
                if view is not None:
                    view.event("model.restarted", {"problem": problem, "log": death.error.log})
            try:
                generation = self._ask(request, view)
            except _DiedError as death:
                raise death.error from None
        notice = f"the model was restarted in the middle of this turn: {problem}"
        return replace(generation, notices=(notice, *generation.notices))

    def cancel(self) -> None:
        """End the generation in progress, which then returns with ``stop`` "cancelled".

        From any thread; without effect where there is none.
        """
        current = self._current
        if current is not None:
            worker, number = current
            worker.cancel(number)

    def close(self) -> None:
        """End the worker, and with it all memory of the model."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _ask(self, request: dict[str, Any], view: View | None) -> Generation:
        worker = self._started()
        number = event = None
        died = False
        try:
            number = worker.ask(request)
            self._current = worker, number
            event = worker.answer(number, view)
        except WorkerError as error:
            died = True
            raise _DiedError(error) from None
        finally:
            self._current = None
            # Somebody interrupted us, or the view failed: the turn ends, and with it the worker
            # only where that takes too long.
            if event is None and (died or number is None or not worker.give_up(number)):
                self.close()
        if event["event"] == "error":
            raise error_from_wire(event, tuple(worker.log))
        return generation_from_wire(event)

    def _started(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.is_alive():
            self.close()
        if self._worker is None:
            worker = WorkerProcess()
            try:
                worker.load(self._settings, self._folder)
            except (RunnerError, KeyboardInterrupt):
                worker.end()
                raise
            self._worker = worker
        return self._worker


class _DiedError(Exception):
    """A worker died or hung in the middle of a generation."""

    def __init__(self, error: WorkerError) -> None:
        super().__init__(str(error))
        self.error = error
