"""How long the reader and the grammar take, without a model."""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from runner.core.contract import ToolContract
from runner.core.errors import ProtocolError
from runner.core.gbnf import gbnf_problems
from runner.protocol import build_grammar, parse_turn

HOSTILE_CHARACTERS = 1_000_000
"""Length of each hostile reply."""
_TARGETS = {"turn": 1.0, "grammar": 20.0, "hostile": 1.0}
_FILLINGS = ("{", '"', "\\", "<think>", "```\n", "\n", "<tool_call>")
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Figure:
    """One thing that was measured.

    Attributes
    ----------
    group
        ``turn`` (reading one) and ``grammar`` (making or checking one) are medians in
        milliseconds; ``hostile`` is seconds for one reply of a million characters.
    what
        What was read or made; for a hostile reply the text that it repeats, as JSON.
    value
        The time it took, in ``unit``.
    target
        Less than this is good, in ``unit``.
    """

    group: Literal["turn", "grammar", "hostile"]
    what: str
    value: float

    @property
    def unit(self) -> str:
        return "s" if self.group == "hostile" else "ms"

    @property
    def target(self) -> float:
        return _TARGETS[self.group]

    def to_json(self) -> dict[str, Any]:
        """The figure with its unit, its target and whether it was met."""
        value = float(f"{self.value:.3g}")
        return {
            "group": self.group,
            "what": self.what,
            "value": value,
            "unit": self.unit,
            "target": self.target,
            "met": value < self.target,
        }


def measure_protocol(*, rounds: int = 200) -> Iterator[Figure]:
    """Each figure as soon as it is there.

    Parameters
    ----------
    rounds
        How often a turn is read; grammars are made a tenth as often, hostile replies read once.
    """
    tools = ten_tools()
    for what, (text, dialect) in _turns(tools).items():
        yield Figure("turn", what, _median(partial(_read, text, tools, dialect), rounds))
    few = max(1, rounds // 10)
    text = build_grammar(tools).text
    new = [ten_tools() for _ in range(few + 1)]
    yield Figure("grammar", "10 tools, new", _median(lambda: build_grammar(new.pop()), few))
    yield Figure("grammar", "10 tools, known", _median(lambda: build_grammar(tools), rounds))
    yield Figure("grammar", "the linter alone", _median(lambda: gbnf_problems(text), few))
    for filling in _FILLINGS:
        yield Figure("hostile", json.dumps(filling), _slowest(filling, tools))


def ten_tools() -> list[ToolContract]:
    """Ten tools as agents have them. Each time others, so that no cache knows them."""
    number = next(_NUMBERS)
    text: dict[str, Any] = {"type": "string"}
    schemas: dict[str, dict[str, Any]] = {
        "search": {"query": text, "limit": {"type": "integer", "minimum": 1, "maximum": 100}},
        "read_file": {"path": {"type": "string", "minLength": 1, "maxLength": 400}},
        "write_file": {"path": text, "content": text, "overwrite": {"type": "boolean"}},
        "weather": {"city": text, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "convert": {
            "amount": {"type": "number"},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        },
        "book": {
            "guests": {"type": "array", "items": text, "minItems": 1, "maxItems": 8},
            "room": {"anyOf": [{"type": "integer"}, text]},
        },
        "order": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": {"type": "integer"}, "count": {"type": "integer"}},
                    "required": ["id"],
                },
            }
        },
        "mail": {"to": text, "subject": text, "body": text, "headers": {"type": "object"}},
        "remember": {"key": {"type": "string", "pattern": f"^k{number}-[a-z0-9-]+$"}, "value": {}},
        "now": {},
    }
    return [
        ToolContract.from_schema(
            f"{name}_{number}",
            f"The tool {name}.",
            {
                "type": "object",
                "properties": properties,
                "required": list(properties)[:1],
                "additionalProperties": False,
            },
        )
        for name, properties in schemas.items()
    ]


def _turns(tools: list[ToolContract]) -> dict[str, tuple[str, str]]:
    """Typical turns: what they are -> their text and dialect."""
    names = [tool.name for tool in tools]
    content = "A line of text that somebody wants to keep.\n" * 5
    calls = [
        (names[0], {"query": "the history of elks in Sweden", "limit": 10}),
        (names[2], {"path": "notes/elks.md", "content": content, "overwrite": True}),
        (names[6], {"items": [{"id": 17, "count": 2}, {"id": 4}]}),
    ]
    lines = [f"ACTION: {json.dumps({'tool': name, 'params': params})}" for name, params in calls]
    hermes = json.dumps({"name": calls[0][0], "arguments": calls[0][1]})
    return {
        "one call": (lines[0], "action"),
        "three calls behind a thought": ("\n".join(["THOUGHT: All at once.", *lines]), "action"),
        "an answer": ("ANSWER: " + content, "action"),
        "a call that needs repair": (lines[0].replace('"', "'").replace("}}", ",}}"), "action"),
        "one call in hermes": (f"<tool_call>\n{hermes}\n</tool_call>", "hermes"),
    }


def _slowest(filling: str, tools: list[ToolContract]) -> float:
    """Seconds for the worst place of a long run of ``filling``: alone or in a call."""
    name = tools[0].name
    starts = {
        "action": ("", "ACTION: ", f'ACTION: {{"tool": "{name}", "params": {{"query": "'),
        "hermes": ("", "<tool_call>", f'<tool_call>{{"name": "{name}", "arguments": {{"query": "'),
    }
    run = filling * (HOSTILE_CHARACTERS // len(filling))
    return max(
        _seconds(partial(_read, start + run, tools, dialect))
        for dialect, places in starts.items()
        for start in places
    )


def _read(text: str, tools: list[ToolContract], dialect: str) -> None:
    # A refusal takes its time as well.
    with contextlib.suppress(ProtocolError):
        parse_turn(text, tools, dialect=dialect)


def _median(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds, after one round that does not count."""
    work()
    return 1000 * statistics.median(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
