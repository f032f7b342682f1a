"""The JSON-Schema-Test-Suite and llama.cpp's own tests, on the grammar of a tool's parameter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator

from runner.bench.conformance.cases import Case, Outcome
from runner.bench.conformance.data import rows_of
from runner.bench.conformance.matcher import Matcher
from runner.bench.conformance.probe import Probe, Verdict
from runner.core.errors import ConfigError, GrammarError
from runner.protocol.json_text import strict_json

SUITE_FILE = "json_schema_test_suite_2020-12.jsonl"
LLAMA_FILE = "gbnf_reference.jsonl"


def measure_suite(matcher: Matcher) -> list[Case]:
    """Every test of the JSON-Schema-Test-Suite; its group in the table is its keyword file.

    Raises
    ------
    ConfigError
        The data are not there.
    """
    cases = []
    for row in rows_of(SUITE_FILE):
        made = _probe(row["schema"], matcher)
        for test in row["tests"]:
            if isinstance(made, Probe):
                measure = made.valid if test["valid"] else made.invalid
                outcome, detail = _guarded(measure, test["data"])
            else:
                outcome, detail = made
            name = f"{row['group']}: {test['description']}"
            cases.append(Case(row["keyword"], name, outcome, f"{detail}  {_short(row['schema'])}"))
    return cases


def measure_llama_schemas(matcher: Matcher) -> list[Case]:
    """The strings that llama.cpp's tests want accepted and rejected for a schema.

    Strings that are JSON are written as the protocol writes it, with their keys in their own
    order. What the schema allows although llama.cpp rejects it (another order of keys, white
    space, long integers) is a choice of llama.cpp and free.

    Raises
    ------
    ConfigError
        The data are not there.
    """
    cases = []
    for row in rows_of(LLAMA_FILE):
        if row["kind"] != "schema":
            continue
        schema = True if row["schema"] is None else row["schema"]
        made = _probe(schema, matcher)
        for group in ("accept", "reject"):
            for text in row[group]:
                if isinstance(made, Probe):
                    measure = _accepted if group == "accept" else _rejected
                    outcome, detail = measure(made, schema, text)
                else:
                    outcome, detail = made
                cases.append(Case(f"schema, {group}", f"{row['name']}: {text}", outcome, detail))
    return cases


def measure_llama_grammars(matcher: Matcher) -> list[Case]:
    """The strings that llama.cpp's tests want accepted and rejected for a grammar.

    This measures the matcher, not the runner. The grammars use more than the portable part.

    Raises
    ------
    ConfigError
        The data are not there.
    """
    cases = []
    for row in rows_of(LLAMA_FILE):
        if row["kind"] != "grammar":
            continue
        try:
            accepts = matcher(row["grammar"])
        except GrammarError as error:
            accepts, refusal = None, str(error)
        for group in ("accept", "reject"):
            for text in row[group]:
                if accepts is None:
                    outcome, detail = Outcome.REFUSED, refusal
                elif accepts(text) == (group == "accept"):
                    outcome, detail = Outcome.CORRECT, ""
                else:
                    outcome = Outcome.STRICT if group == "accept" else Outcome.LOOSE
                    detail = f"{text!r} in {row['grammar']}"
                cases.append(Case(f"grammar, {group}", f"{row['name']}: {text}", outcome, detail))
    return cases


def _accepted(probe: Probe, schema: Any, text: str) -> Verdict:
    return _guarded(lambda value: probe.valid(value, reorder=False), strict_json(text))


def _rejected(probe: Probe, schema: Any, text: str) -> Verdict:
    try:
        value = strict_json(text)
    except ValueError:
        return _guarded(lambda _: _raw(probe, text), None)
    if Draft202012Validator(schema).is_valid(value):
        taken = probe.allows(json.dumps(value, ensure_ascii=False))
        return Outcome.FREE, f"the schema allows it; {'taken' if taken else 'not taken'} here"
    return _guarded(lambda data: probe.invalid(data, reorder=False), value)


def _raw(probe: Probe, text: str) -> Verdict:
    if probe.allows(text):
        return Outcome.LOOSE, f"{text!r} is no JSON, but in the grammar"
    return Outcome.CORRECT, ""


def _probe(schema: Any, matcher: Matcher) -> Probe | Verdict:
    try:
        return Probe(schema, matcher)
    except ConfigError as error:
        return Outcome.REFUSED, str(error)
    except GrammarError as error:
        return Outcome.BROKEN, str(error)


def _guarded(measure: Callable[[Any], Verdict], value: Any) -> Verdict:
    try:
        return measure(value)
    except GrammarError as error:
        return Outcome.BROKEN, str(error)


def _short(schema: Any) -> str:
    if isinstance(schema, dict):
        schema = {key: part for key, part in schema.items() if key != "$schema"}
    text = json.dumps(schema, ensure_ascii=False)
    return text if len(text) < 300 else text[:297] + "..."
