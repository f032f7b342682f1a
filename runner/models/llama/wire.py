"""How results and errors cross the pipe between the worker and its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runner.core import errors
from runner.core.conversation import Generation, Usage

if TYPE_CHECKING:
    from runner.core.contract import ToolContract


def tools_to_wire(tools: Sequence[ToolContract]) -> list[dict[str, Any]]:
    """Tools as chat templates know them: objects of type ``function``, as in OpenAI's API."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


def generation_to_wire(generation: Generation) -> dict[str, Any]:
    return {"event": "done", **asdict(generation)}


def generation_from_wire(message: dict[str, Any]) -> Generation:
    values = {key: value for key, value in message.items() if key not in ("event", "id")}
    values |= {"usage": Usage(**message["usage"]), "notices": tuple(message["notices"])}
    return Generation(**values)


def error_to_wire(error: errors.RunnerError) -> dict[str, Any]:
    message: dict[str, Any] = {
        "event": "error",
        "type": type(error).__name__,
        "message": str(error),
        "hint": error.hint,
    }
    if isinstance(error, errors.ContextOverflowError):
        message |= {"needed": error.needed, "window": error.window}
    return message


def error_from_wire(message: dict[str, Any], log: tuple[str, ...]) -> errors.RunnerError:
    """The same error again; errors of the engine itself carry the engine's last words."""
    text, hint = message["message"], message["hint"]
    if message["type"] == "ContextOverflowError":
        return errors.ContextOverflowError(message["needed"], message["window"], hint=hint)
    if message["type"] == "WorkerError":
        return errors.WorkerError(text, hint=hint, log=log)
    kind: type[errors.RunnerError] = getattr(errors, message["type"])
    words = [line for line in log if "error" in line.lower() or "failed" in line.lower()]
    if words and issubclass(kind, errors.ModelError):
        text = f"{text}. The engine said: {words[-1].strip()}"
    return kind(text, hint=hint)
