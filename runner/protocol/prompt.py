"""What the model reads: the system prompt, observations, and messages about faulty turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from runner.core.contract import ToolContract
from runner.core.conversation import ModelTurn, ToolResult
from runner.protocol.messages import message, template

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


def system_prompt(tools: Sequence[ToolContract]) -> str:
    """The four parts: role; tools with parameters and examples; output format; rules."""
    shown = [
        {
            "name": tool.name,
            "description": " ".join(tool.description.split()),
            "parameters": [
                {
                    "name": name,
                    "kind": kind_of(schema),
                    "required": name in tool.required,
                    "description": " ".join(str(schema.get("description", "")).split()),
                }
                for name, schema in tool.properties.items()
            ],
            "example": example_call(tool),
        }
        for tool in tools
    ]
    examples = [call for i in (0, 1) for tool in tools for call in _examples_of(tool)[i : i + 1]]
    return template("system.j2").render(tools=shown, examples=(examples + examples)[:2]).strip()


def observation_message(
    results: Sequence[ToolResult],
    remaining: Mapping[str, int | None] | None = None,
    *,
    repeated: Collection[str] = (),
    answer_now: bool = False,
) -> str:
    """The results of a turn, in call order, as the model reads them.

    Parameters
    ----------
    remaining
        How many calls each tool has left, None for no bound.
    repeated
        Ids of calls that were made before, with the same result.
    answer_now
        Whether only an answer can come next.
    """
    left = remaining or {}

    def remaining_of(result: ToolResult) -> str:
        count = left.get(result.call.name)
        return "" if count is None else f", {count} left"

    text = template("observation.j2").render(
        results=results,
        ordinal=ordinal,
        remaining=remaining_of,
        repeated=repeated,
        advice=message("loop", "answer_now" if answer_now else "go_on"),
    )
    return text.strip()


def turn_text(turn: ModelTurn) -> str:
    """A turn in the protocol's own spelling: what history shows the model."""
    lines = [f"THOUGHT: {turn.thought}"] if turn.thought else []
    lines += [f"ACTION: {call_json(call.name, call.input)}" for call in turn.calls]
    if turn.answer is not None:
        lines.append(f"ANSWER: {turn.answer}")
    return "\n".join(lines)


def call_json(name: str, params: Mapping[str, Any]) -> str:
    """The JSON of one ACTION."""
    return json.dumps({"tool": name, "params": params}, ensure_ascii=False)


def example_call(tool: ToolContract) -> str:
    """The JSON of an ACTION that uses the tool's first example."""
    return _examples_of(tool)[0]


def _examples_of(tool: ToolContract) -> list[str]:
    inputs: Sequence[Mapping[str, Any]] = tool.examples
    if not inputs:
        inputs = [{name: _sample(tool.properties[name]) for name in tool.required}]
    return [call_json(tool.name, example) for example in inputs]


def ordinal(number: int) -> str:
    """1 -> first, 2 -> second, 12 -> 12th."""
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def kind_of(schema: Mapping[str, Any]) -> str:
    """A schema in few words: ``integer``, ``one of "a", "b"``, ``array of string``."""
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        values = ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
        return f"one of {values}"
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return " or ".join(dict.fromkeys(kind_of(option) for option in schema[keyword]))
    kind = schema.get("type", "any value")
    if isinstance(kind, str):
        return f"array of {kind_of(schema['items'])}" if schema.get("items") else kind
    return " or ".join(kind)


_SAMPLES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "string": lambda schema: "text",
    "integer": lambda schema: int(schema.get("minimum", 1)),
    "number": lambda schema: schema.get("minimum", 1.5),
    "boolean": lambda schema: True,
    "array": lambda schema: [_sample(schema.get("items", {}))],
    "object": lambda schema: {
        name: _sample(schema["properties"][name])
        for name in schema.get("required", ())
        if name in schema.get("properties", {})
    },
}


def _sample(schema: Mapping[str, Any]) -> Any:
    """A value that shows what the schema wants; used where a contract has no examples."""
    for keyword in ("default", "const"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("examples", "enum"):
        if schema.get(keyword):
            return schema[keyword][0]
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return _sample(schema[keyword][0])
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    return _SAMPLES[kind](schema) if kind in _SAMPLES else None
