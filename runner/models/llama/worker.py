"""The worker process: native code lives and dies here.

Requests come as JSON lines on standard input, events go as JSON lines to the original standard
output. File descriptor 1 is pointed at standard error, so that nothing native code prints can be
taken for an event. When standard input ends, the parent is gone and the worker ends at once.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import queue
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from runner.core.conversation import Generation, Message
from runner.core.errors import RunnerError
from runner.models.llama.wire import error_to_wire, generation_to_wire
from runner.models.settings import ModelSettings

if TYPE_CHECKING:
    from runner.models.llama.engine import Engine

HEARTBEAT_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1


def main() -> None:
    events = Events(os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1))
    os.dup2(2, 1)
    # The Python side of a crash goes to the log; a core file of a whole model helps nobody.
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests = Requests()
    threading.Thread(target=requests.read, daemon=True).start()
    threading.Thread(target=_beat, args=(events,), daemon=True).start()
    try:
        _serve(requests, events)
    except RunnerError as error:
        events.send(error_to_wire(error))
        sys.exit(1)


class Events:
    """The way to the parent, for several threads."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._out.write(json.dumps(message) + "\n")


class Requests:
    """What the parent wants: one thing after the other, and cancelling at once."""

    def __init__(self) -> None:
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._current = 0
        self._cancelled = 0

    def read(self) -> None:
        """Read requests until the parent is gone."""
        for line in sys.stdin:
            request = json.loads(line)
            if "cancel" in request:
                self.cancel(request["cancel"])
            else:
                self._queue.put(request)
        os._exit(0)

    def next(self) -> dict[str, Any]:
        return self._queue.get()

    def begin(self, number: int, engine: Engine) -> None:
        """From now on ``number`` is what a cancel ends, even one that came before."""
        with self._lock:
            self._current, self._engine = number, engine
            engine.uncancel()
            if self._cancelled >= number:
                engine.cancel()

    def cancel(self, number: int) -> None:
        with self._lock:
            self._cancelled = max(self._cancelled, number)
            if self._engine is not None and self._current == number:
                self._engine.cancel()


def _serve(requests: Requests, events: Events) -> None:
    from runner.models.llama.engine import Engine
    from runner.models.llama.native_log import keep_out_details
    from runner.models.llama.state_cache import StateCache

    keep_out_details()
    load = requests.next()
    if load["bound_to_parent"]:
        _end_with_parent()
    settings = ModelSettings.model_validate(load["settings"])
    states = load["states"]
    engine = Engine(
        settings,
        Path(load["folder"]),
        on_loading=lambda share: events.send({"event": "loading", "share": share}),
        name=load["name"],
        states=StateCache(Path(states["folder"]), states["limit"]),
    )
    events.send({"event": "ready", "describe": engine.describe()})
    while True:
        request = requests.next()
        number = request["id"]
        requests.begin(number, engine)
        try:
            generation = _generate(engine, number, request["generate"], requests, events)
        except RunnerError as error:
            events.send({**error_to_wire(error), "id": number})
        else:
            events.send({**generation_to_wire(generation), "id": number})


def _generate(
    engine: Engine, number: int, request: dict[str, Any], requests: Requests, events: Events
) -> Generation:
    def tell(event: str, **data: Any) -> None:
        events.send({"event": event, "id": number, **data})

    timer = threading.Timer(request["seconds"] or 0, requests.cancel, [number])
    timer.daemon = True
    if request["seconds"] is not None:
        timer.start()
    try:
        return engine.generate(
            [Message(**message) for message in request["messages"]],
            grammar=request["grammar"],
            max_tokens=request["max_tokens"],
            seed=request["seed"],
            tools=request["tools"],
            on_text=lambda piece: tell("text", piece=piece),
            on_thinking=lambda piece: tell("thinking", piece=piece),
            on_progress=lambda done, total: tell("progress", done=done, total=total),
        )
    finally:
        timer.cancel()


def _end_with_parent() -> None:
    """Let the kernel end this process with its parent, even while it is stopped or hangs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _beat(events: Events) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        events.send({"event": "alive"})
        time.sleep(HEARTBEAT_SECONDS)
    os._exit(0)  # a copy of the parent's end of the pipe may live on in a child of its own


if __name__ == "__main__":
    main()
