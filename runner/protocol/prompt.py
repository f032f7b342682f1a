"""What the model reads: the opening of a conversation, observations, and turns it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.core.contract import Demonstration, ToolContract
from runner.core.conversation import Message, ModelTurn, ToolCall, ToolResult
from runner.protocol.messages import message, template

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


def opening_messages(tools: Sequence[ToolContract]) -> list[Message]:
    """The beginning of every conversation: the system prompt, then its examples played through.

    Small models follow an exchange that they see far better than one that they are told about.
    """
    stories = _stories(tools)
    messages = [Message("system", system_prompt(tools))]
    if stories:
        messages.append(Message("user", message("examples", "direct_task")))
        messages.append(Message("assistant", f"ANSWER: {message('examples', 'direct_answer')}"))
    for story in stories:
        messages.append(Message("user", story.task))
        messages.append(Message("assistant", story.actions))
        messages.append(Message("user", observation_message(story.results)))
        messages.append(Message("assistant", f"ANSWER: {story.answer}"))
    return messages


def system_prompt(tools: Sequence[ToolContract]) -> str:
    """The four parts: role; tools with parameters; output format with three examples; rules."""
    shown = [
        {
            "name": tool.name,
            "description": _one_line(tool.description),
            "parameters": [
                {
                    "name": name,
                    "kind": kind_of(schema),
                    "required": name in tool.required,
                    "description": _about(schema),
                }
                for name, schema in tool.properties.items()
            ],
            "example": example_call(tool),
        }
        for tool in tools
    ]
    text = template("system.j2").render(
        tools=shown,
        stories=[story.actions for story in _stories(tools)],
        direct=message("examples", "direct_answer"),
    )
    return text.strip()


def observation_message(
    results: Sequence[ToolResult],
    remaining: Mapping[str, int | None] | None = None,
    repeated: Collection[str] = (),
) -> str:
    """The results of a turn, in call order, as the model reads them.

    Parameters
    ----------
    remaining
        How many calls each tool has left, None for no bound.
    repeated
        Ids of calls that were made before, with the same result.
    """
    left = remaining or {}
    text = template("observation.j2").render(
        results=results,
        ordinal=ordinal,
        remaining=lambda result: left.get(result.call.name),
        repeated=repeated,
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
    """The JSON of an ACTION that shows how the tool is used."""
    return call_json(tool.name, _demonstration(tool).params)


def ordinal(number: int) -> str:
    """1 -> first, 2 -> second, 12 -> 12th."""
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def kind_of(schema: Any) -> str:
    """A schema in few words: ``integer``, ``one of "a", "b"``, ``array of string``."""
    if not isinstance(schema, Mapping):
        return "any value"
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


@dataclass(frozen=True)
class _Story:
    """An example task, played through."""

    task: str
    results: Sequence[ToolResult]
    answer: str

    @property
    def actions(self) -> str:
        return turn_text(ModelTurn(calls=tuple(result.call for result in self.results)))


def _stories(tools: Sequence[ToolContract]) -> list[_Story]:
    """One task with one call, then, where there are several tools, one with two calls.

    The first two tools are used together, the single call is another's where there is one.
    """
    if not tools:
        return []
    stories = [_story([tools[2] if len(tools) > 2 else tools[0]])]
    if len(tools) > 1:
        stories.append(_story(tools[:2]))
    return stories


def _story(tools: Sequence[ToolContract]) -> _Story:
    shown = [_demonstration(tool) for tool in tools]
    results = [
        ToolResult(ToolCall(f"c{number}", tool.name, example.params), example.result, 1)
        for number, (tool, example) in enumerate(zip(tools, shown, strict=True), start=1)
    ]
    task = message("examples", "and").join(example.task for example in shown)
    return _Story(task, results, " ".join(example.answer for example in shown))


def _demonstration(tool: ToolContract) -> Demonstration:
    """The contract's own, or one made up from its first example."""
    if tool.demonstration is not None:
        return tool.demonstration
    params = tool.examples[0] if tool.examples else _sample_params(tool.parameters)
    values = ", ".join(f"{name}: {value}" for name, value in params.items())
    return Demonstration(
        task=message("examples", "task", description=_one_line(tool.description), values=values),
        params=params,
        result=message("examples", "result"),
        answer=message("examples", "answer"),
    )


def _sample_params(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {
        name: _sample(properties[name]) for name in schema.get("required", ()) if name in properties
    }


_SAMPLES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "string": lambda schema: "text",
    "integer": lambda schema: int(schema.get("minimum", 1)),
    "number": lambda schema: schema.get("minimum", 1.5),
    "boolean": lambda schema: True,
    "array": lambda schema: [_sample(schema.get("items", {}))],
    "object": _sample_params,
}


def _sample(schema: Any) -> Any:
    """A value that shows what the schema wants."""
    if not isinstance(schema, Mapping):
        return "text"
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


def _about(schema: Any) -> str:
    return _one_line(str(schema.get("description", ""))) if isinstance(schema, Mapping) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
