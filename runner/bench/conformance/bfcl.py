"""BFCL's gold calls: a grammar must take every one that its own schema allows.

Reads the data of the Berkeley Function Calling Leaderboard v4 (Apache-2.0). Their schemas are not
quite JSON Schema, and a gold call lists accepted values: ``""`` among them means "may be left out".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

from runner.bench.conformance.cases import Case, Outcome
from runner.bench.conformance.data import bfcl_rows
from runner.bench.conformance.matcher import Accepts, Matcher
from runner.bench.conformance.probe import Verdict
from runner.bench.conformance.spelling import in_schema_order, same_value, written
from runner.core.contract import ToolContract
from runner.core.errors import ConfigError, GrammarError, ProtocolError
from runner.protocol import build_grammar, parse_turn

CATEGORIES = {
    "simple": "simple_python",
    "multiple": "multiple",
    "parallel": "parallel",
    "parallel_multiple": "parallel_multiple",
    "live_simple": "live_simple",
    "live_multiple": "live_multiple",
    "live_parallel": "live_parallel",
    "live_parallel_multiple": "live_parallel_multiple",
}
"""Short name -> name of the data file. The figures are known to be 100 % for the first three."""

_KINDS = {"dict": "object", "float": "number", "tuple": "array"}
_LEFT_OUT = ""

Call = tuple[str, dict[str, Any]]


def measure_gold(matcher: Matcher, categories: Sequence[str] = tuple(CATEGORIES)) -> list[Case]:
    """Every row of some categories, by its worst gold turn; see `gold_turns`.

    Raises
    ------
    ConfigError
        bfcl-eval is not installed.
    """
    cases = []
    for category in categories:
        for row, gold in bfcl_rows(CATEGORIES[category]):
            outcome, detail = _measure(row, gold, matcher)
            cases.append(Case(category, row["id"], outcome, detail))
    return cases


def contracts_of(row: Mapping[str, Any]) -> list[ToolContract]:
    """The tools of a row.

    Raises
    ------
    ConfigError
        The runner refuses one of them.
    """
    return [_contract(json.dumps(function)) for function in row["function"]]


@functools.lru_cache(maxsize=1024)
def _contract(text: str) -> ToolContract:
    """Many rows of the live categories share their tools, and checking a schema takes a while."""
    function = json.loads(text)
    parameters = json_schema(function["parameters"])
    return ToolContract.from_schema(function["name"], function["description"], parameters)


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of BFCL as JSON Schema: other names of types, and a key of its own less."""
    made = {key: part for key, part in schema.items() if key != "optional"}
    kind = made.pop("type", "any")
    if kind != "any":
        made = {"type": _KINDS.get(kind, kind), **made}
    if "properties" in made:
        made["properties"] = {k: json_schema(part) for k, part in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), Mapping):
            made[key] = json_schema(made[key])
    return made


def gold_turns(
    tools: Sequence[ToolContract], gold: Sequence[Mapping[str, Any]]
) -> Iterator[list[Call]]:
    """The turns that a row accepts, as calls with their params in schema order.

    First one with the first accepted value everywhere that the schema allows, then one for every
    other accepted value, and for every parameter that may be left out.
    """
    options = [_options(tools, call) for call in gold]
    first = [calls[0] for calls in options]
    yield first
    for i, calls in enumerate(options):
        for other in calls[1:]:
            yield [*first[:i], other, *first[i + 1 :]]


def _options(tools: Sequence[ToolContract], call: Mapping[str, Any]) -> list[Call]:
    """The accepted spellings of one gold call, the plainest first."""
    ((name, accepted),) = call.items()
    tool = next(tool for tool in tools if tool.name == name)
    return [(name, _in_order(tool, params)) for params in _chosen(accepted, tool.parameters)]


def _chosen(accepted: Mapping[str, Any], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Objects made of accepted values: the first valid of each, then the others, one at a time."""
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    values: dict[str, list[Any]] = {}
    for name, choices in accepted.items():
        part = properties.get(name, {})
        found = [
            value for choice in choices if choice != _LEFT_OUT for value in _values(choice, part)
        ]
        if _LEFT_OUT in choices and name not in required:
            found.append(_Nothing)
        elif _LEFT_OUT in choices and not found:
            found.append(_LEFT_OUT)  # it cannot be left out, so it is the text that is meant
        values[name] = [value for value in found if _is_valid(value, part)]
        values[name] += [value for value in found if not _is_valid(value, part)]
    first = {name: choices[0] for name, choices in values.items() if choices}
    made = [first]
    made += [{**first, name: value} for name, choices in values.items() for value in choices[1:]]
    return [{k: v for k, v in params.items() if v is not _Nothing} for params in made]


class _Nothing:
    """Stands for a value that is left out."""


def _is_valid(value: Any, schema: Any) -> bool:
    return value is _Nothing or bool(Draft202012Validator(schema).is_valid(value))


def _values(choice: Any, schema: Mapping[str, Any]) -> list[Any]:
    """What one accepted value stands for. Inside an object, each key has a list of its own."""
    if isinstance(choice, dict) and all(isinstance(part, list) for part in choice.values()):
        return list(_chosen(choice, schema))
    if isinstance(choice, list) and choice and all(isinstance(part, dict) for part in choice):
        items = schema.get("items", {})
        parts = [_values(part, items) for part in choice]
        first = [part[0] for part in parts]
        others = [
            [*first[:i], other, *first[i + 1 :]]
            for i, part in enumerate(parts)
            for other in part[1:]
        ]
        return [first, *others]
    return [choice]


def _in_order(tool: ToolContract, params: dict[str, Any]) -> dict[str, Any]:
    ordered: dict[str, Any] = in_schema_order(params, tool.parameters, tool.parameters)
    return ordered


def _measure(
    row: Mapping[str, Any], gold: Sequence[Mapping[str, Any]], matcher: Matcher
) -> Verdict:
    try:
        tools = contracts_of(row)
        grammar = build_grammar(tools, max_calls=len(gold), thought=False)
        accepts = matcher(grammar.text)
    except ConfigError as error:
        return Outcome.REFUSED, str(error)
    except GrammarError as error:
        return Outcome.BROKEN, str(error)
    # A contract is closed where it does not say otherwise, and so is a function for BFCL's checker.
    closed = {"additionalProperties": False}
    valid = {tool.name: Draft202012Validator({**closed, **tool.parameters}) for tool in tools}
    measured = 0
    for calls in gold_turns(tools, gold):
        if not all(valid[name].is_valid(params) for name, params in calls):
            continue
        measured += 1
        outcome, detail = _measure_turn(tools, calls, accepts)
        if outcome.fault:
            return outcome, detail
    if not measured:
        return Outcome.ODD, "no accepted value is valid under the row's own schema"
    return Outcome.CORRECT, f"{measured} turns"


def _measure_turn(
    tools: Sequence[ToolContract], calls: Sequence[Call], accepts: Accepts
) -> Verdict:
    text = "\n".join(
        "ACTION: " + written({"tool": name, "params": params}) for name, params in calls
    )
    if not accepts(text):
        return Outcome.STRICT, text
    try:
        turn = parse_turn(text, tools)
    except ProtocolError as error:
        return Outcome.MISREAD, f"{text}: {error}"
    if turn.receipts or len(turn.calls) != len(calls):
        return Outcome.MISREAD, f"{text}: {turn.receipts}"
    for read, (name, params) in zip(turn.calls, calls, strict=True):
        if read.name != name or not same_value(read.input, params):
            return Outcome.MISREAD, f"{text}: read as {read}"
    return Outcome.CORRECT, text
