"""A schema as the one parameter of a tool: which values do its grammar and its check take?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing.exceptions import Unresolvable

from runner.bench.conformance.cases import Outcome
from runner.bench.conformance.matcher import Matcher
from runner.bench.conformance.spelling import in_schema_order, same_value, spellings
from runner.core.contract import ToolContract
from runner.core.errors import ProtocolError
from runner.protocol import build_grammar, parse_turn

Verdict = tuple[Outcome, str]
_NOTE = re.compile(r"tool 't', parameter (?P<q>['\"])value.*?(?P=q): ['\"](?P<what>[^'\"]*)['\"]")
_HOISTED = ("$defs", "definitions")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_WHOLE = "whole-schema"
_DATA = ("const", "enum", "default", "examples")


class Probe:
    """The grammar of one turn with one call of a tool that must be given ``value``.

    Parameters
    ----------
    schema
        The schema of ``value``, a whole JSON Schema (2020-12).

    Raises
    ------
    ConfigError
        The runner refuses the schema, with a message.
    GrammarError
        The matcher does not take the grammar.
    """

    def __init__(self, schema: Any, matcher: Matcher) -> None:
        self._schema = schema
        self._parameters = parameters_for(schema)
        self._tool = ToolContract.from_schema("t", "A tool.", self._parameters)
        grammar = build_grammar([self._tool], max_calls=1, thought=False)
        self.notes = grammar.notes
        self._accepts = matcher(grammar.text)

    def valid(self, value: Any, *, reorder: bool = True) -> Verdict:
        """What comes of a value that the schema allows."""
        for number, text in enumerate(self._spellings(value, reorder)):
            if self._accepts(turn(text)):
                problem = self._misreading(text, value)
                if problem:
                    return Outcome.MISREAD, f"{text}: {problem}"
                return (Outcome.RESPELLED if number else Outcome.CORRECT), text
        first = next(self._spellings(value, reorder))
        return Outcome.STRICT, f"{first} is valid, but not in the grammar"

    def invalid(self, value: Any, *, reorder: bool = True) -> Verdict:
        """What comes of a value that the schema forbids, in whatever order of its keys."""
        for text in self._spellings(value, reorder):
            if self._accepts(turn(text)):
                return self._taken(text, value)
        return Outcome.CORRECT, ""

    def allows(self, text: str) -> bool:
        """Whether the grammar takes this text where the value stands."""
        return self._accepts(turn(text))

    def _spellings(self, value: Any, reorder: bool) -> Iterator[str]:
        if reorder:
            schema = self._parameters["properties"]["value"]
            value = in_schema_order(value, schema, self._parameters)
        return spellings(value)

    def _taken(self, text: str, value: Any) -> Verdict:
        broken = self._violated(value)
        noted = {word for note in self.notes for word in _noted(note)}
        if not (broken & noted if broken else noted):
            why = f"violates {', '.join(sorted(broken)) or 'the schema'}, and no note says so"
            return Outcome.LOOSE, f"{text} {why}"
        try:
            calls = parse_turn(turn(text), [self._tool]).calls
        except ProtocolError:
            return Outcome.WEAKENED, f"{text} violates {', '.join(sorted(broken & noted))}"
        if same_value(calls[0].input.get("value"), value):
            return Outcome.UNCHECKED, f"{text} is invalid, but the check takes it"
        return Outcome.WEAKENED, f"{text} is read as {calls[0].input}"

    def _violated(self, value: Any) -> set[str]:
        """Keywords that a value violates, with those on the way to them."""
        try:
            errors = list(Draft202012Validator(self._schema).iter_errors(value))
        except Unresolvable:
            return set()
        return set(_keywords(errors))

    def _misreading(self, text: str, value: Any) -> str:
        """How the parser fails on a text that the grammar takes; empty where it does not."""
        try:
            read = parse_turn(turn(text), [self._tool])
        except ProtocolError as error:
            return f"the grammar takes it, the parser does not: {error}"
        if len(read.calls) != 1 or not same_value(read.calls[0].input.get("value"), value):
            return f"read as {read.calls}"
        return ""


def turn(text: str) -> str:
    """A turn with ``text`` as the value."""
    return f'ACTION: {{"tool": "t", "params": {{"value": {text}}}}}'


def parameters_for(schema: Any) -> dict[str, Any]:
    """Parameters with one required property ``value`` of this schema; its definitions move up.

    Where the schema refers to itself, or to a part outside its definitions, it becomes a
    definition itself, and those references lead there.
    """
    hoisted: dict[str, Any] = {}
    if isinstance(schema, Mapping):
        hoisted = {key: schema[key] for key in _HOISTED if key in schema}
        # Where a reference is not a mere "#...", what the schema calls itself may matter.
        needs_id = any(not reference.startswith("#") for reference in _references(schema))
        left_out = {*hoisted, *(() if needs_id else ("$id",))}
        if schema.get("$schema") == _DIALECT:
            left_out.add("$schema")
        schema = {key: part for key, part in schema.items() if key not in left_out}
        if any(_is_outside(reference) for reference in _references([schema, hoisted])):
            schema, hoisted = _moved(schema), _moved(hoisted)
            hoisted["$defs"] = {**hoisted.get("$defs", {}), _WHOLE: schema}
            schema = {"$ref": f"#/$defs/{_WHOLE}"}
    return {"type": "object", **hoisted, "properties": {"value": schema}, "required": ["value"]}


def _is_outside(reference: str) -> bool:
    """Whether a reference leads to the schema itself or a part of it that is no definition."""
    return reference == "#" or (
        reference.startswith("#/") and not reference.startswith(("#/$defs/", "#/definitions/"))
    )


def _moved(part: Any) -> Any:
    """``part`` with every reference to the whole schema leading to the definition of it."""
    if isinstance(part, Mapping):
        moved = {key: p if key in _DATA else _moved(p) for key, p in part.items()}
        reference = part.get("$ref")
        if isinstance(reference, str) and _is_outside(reference):
            moved["$ref"] = f"#/$defs/{_WHOLE}{reference[1:]}"
        return moved
    return [_moved(inner) for inner in part] if isinstance(part, list) else part


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        for key, inner in part.items():
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            elif key not in _DATA:
                yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)


def _keywords(errors: Iterable[ValidationError]) -> Iterator[str]:
    for error in errors:
        yield from map(str, error.absolute_schema_path)
        yield from _keywords(error.context)


def _noted(note: str) -> set[str]:
    """The keywords that a note about ``value`` names."""
    match = _NOTE.match(note)
    return set(re.findall(r"\$?[A-Za-z]+", match["what"])) if match else set()
