"""The worker process: native code lives and dies here.

Requests come as JSON lines on standard input, events go as JSON lines to the original standard
output. File descriptor 1 is pointed at standard error, so that nothing native code prints can be
taken for an event. When standard input ends, the parent is gone and the worker ends at once.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from runner.core.conversation import Message
from runner.core.errors import RunnerError
from runner.models.llama.wire import error_to_wire, generation_to_wire
from runner.models.settings import ModelSettings


def main() -> None:
    events = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    try:
        _serve(requests, events)
    except RunnerError as error:
        _send(events, error_to_wire(error))
        sys.exit(1)


def _read_requests(requests: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


def _serve(requests: queue.Queue[dict[str, Any]], events: TextIO) -> None:
    from runner.models.llama.engine import Engine

    load = requests.get()
    settings = ModelSettings.model_validate(load["settings"])
    engine = Engine(settings, Path(load["folder"]))
    _send(events, {"event": "ready", "describe": engine.describe()})
    while True:
        request = requests.get()
        try:
            generation = engine.generate(
                [Message(**message) for message in request["messages"]],
                grammar=request["grammar"],
                max_tokens=request["max_tokens"],
                seed=request["seed"],
                tools=request["tools"],
                on_text=lambda piece: _send(events, {"event": "text", "piece": piece}),
                on_thinking=lambda piece: _send(events, {"event": "thinking", "piece": piece}),
                on_progress=lambda done, total: _send(
                    events, {"event": "progress", "done": done, "total": total}
                ),
            )
        except RunnerError as error:
            _send(events, error_to_wire(error))
        else:
            _send(events, generation_to_wire(generation))


def _send(events: TextIO, message: dict[str, Any]) -> None:
    events.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    main()
