"""Runs the calls of a turn, one after the other, and records each before and after."""

from __future__ import annotations

import copy
import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runner.agent.limits import CallLimits
from runner.core.conversation import ToolCall, ToolResult
from runner.core.errors import ErrorKind, ToolError
from runner.core.ports import Tool
from runner.protocol.messages import message

Emit = Callable[[str, dict[str, Any]], None]


class CallRunner:
    """Runs calls against tools within limits; a failing tool becomes a result, never an error."""

    def __init__(self, tools: Sequence[Tool], limits: CallLimits, emit: Emit) -> None:
        self._tools = {tool.contract.name: tool for tool in tools}
        self._limits = limits
        self._emit = emit

    def run(self, calls: Sequence[ToolCall]) -> Iterator[ToolResult]:
        """Results in call order, each as soon as it is there."""
        return map(self._run, calls)

    def _run(self, call: ToolCall) -> ToolResult:
        tool = self._tools[call.name]
        self._emit("call.start", {"id": call.id, "name": call.name, "input": call.input})
        started = time.perf_counter()
        number = self._limits.used[call.name] + 1
        error: ErrorKind | None = None
        try:
            number = self._limits.take(call.name)
            text = _text(tool(copy.deepcopy(call.input)))
        except ToolError as problem:
            text, error = f"{problem}{f' ({problem.hint})' if problem.hint else ''}", problem.kind
        except (Exception, SystemExit) as problem:  # noqa: BLE001 -- foreign code must not end the run
            text, error = traceback.format_exception_only(problem)[-1].strip(), ErrorKind.FAILED
        text = clip(_encodable(text), tool.contract.limits.max_result_chars)
        seconds = round(time.perf_counter() - started, 4)
        data = {"id": call.id, "name": call.name, "result": text, "error": error}
        self._emit("call.end", {**data, "number": number, "seconds": seconds})
        return ToolResult(call, text, number, error)


def repetitions(results: Sequence[ToolResult], earlier: Sequence[ToolResult]) -> list[str]:
    """Ids of the results whose call was made before and brought the same."""
    before = {_what_happened(result) for result in earlier}
    return [result.call.id for result in results if _what_happened(result) in before]


def clip(text: str, most: int) -> str:
    """``text``, or its head and tail with a note of how much is missing between them."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    note = message("loop", "clipped", count=f"{len(text) - head - tail:,}")
    return f"{text[:head]}\n{note}\n{text[-tail:]}"


def _what_happened(result: ToolResult) -> tuple[str, str, str]:
    """A call and its result, comparable."""
    return result.call.name, json.dumps(result.call.input, sort_keys=True), result.text


def _text(result: Any) -> str:
    if not isinstance(result, str):
        raise ToolError(f"the tool returned {type(result).__name__} instead of text")
    return result


def _encodable(text: str) -> str:
    """``text`` with lone surrogates replaced: one would break every later encoding."""
    return text.encode("utf-8", "replace").decode("utf-8")
