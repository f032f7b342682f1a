"""What the model reads: the opening of a conversation, observations, and turns it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.core.contract import Demonstration, ToolContract
from runner.core.conversation import Message, ModelTurn, ToolCall, ToolResult
from runner.protocol.dialects import ACTION, Dialect
from runner.protocol.messages import message, template

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


def opening_messages(
    tools: Sequence[ToolContract],
    dialect: Dialect = ACTION,
    *,
    in_template: bool = False,
) -> list[Message]:
    """The beginning of every conversation: the system prompt, then its examples played through.

    Small models follow an exchange that they see far better than one that they are told about.

    Parameters
    ----------
    in_template
        Whether the model's own chat template presents the tools.
    """
    stories = _stories(tools)
    messages = [Message("system", system_prompt(tools, dialect, in_template=in_template))]
    if stories:
        messages.append(Message("user", message("examples", "direct_task")))
        messages.append(_answered(message("examples", "direct_answer"), dialect))
    for story in stories:
        messages.append(Message("user", story.task))
        messages.append(Message("assistant", dialect.spelled(story.turn)))
        messages.append(Message("user", observation_message(story.results, dialect=dialect)))
        messages.append(_answered(story.answer, dialect))
    return messages


def _answered(text: str, dialect: Dialect) -> Message:
    return Message("assistant", dialect.spelled(ModelTurn(answer=text)))


def system_prompt(
    tools: Sequence[ToolContract], dialect: Dialect = ACTION, *, in_template: bool = False
) -> str:
    """The four parts: role; tools with parameters; output format with three examples; rules.

    Where the model's own template presents the tools, it says the format as well.
    """
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
            "example": _shown_call(tool, dialect),
            "schema": json.dumps(tool.parameters, ensure_ascii=False),
        }
        for tool in tools
    ]
    text = template(dialect.system_template).render(
        tools=shown,
        stories=[dialect.spelled(story.turn) for story in _stories(tools)],
        direct=dialect.spelled(ModelTurn(answer=message("examples", "direct_answer"))),
        in_template=in_template,
    )
    return text.strip()


def _shown_call(tool: ToolContract, dialect: Dialect) -> str:
    params = _demonstration(tool).params
    call = {dialect.name_key: tool.name, dialect.params_key: params}
    return json.dumps(call, ensure_ascii=False)


def observation_message(
    results: Sequence[ToolResult],
    remaining: Mapping[str, int | None] | None = None,
    repeated: Collection[str] = (),
    dialect: Dialect = ACTION,
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
    text = template(dialect.observation_template).render(
        results=results,
        ordinal=ordinal,
        remaining=lambda result: left.get(result.call.name),
        repeated=repeated,
    )
    return text.strip()


def example_call(tool: ToolContract, dialect: Dialect = ACTION) -> str:
    """A call that shows how the tool is used, as the model writes it."""
    return dialect.spelled_call(tool.name, _demonstration(tool).params)


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
    def turn(self) -> ModelTurn:
        return ModelTurn(calls=tuple(result.call for result in self.results))


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
