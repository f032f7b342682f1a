"""JSONTestSuite on the strict reader, the JSON5 tests on the relaxed one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from runner.bench.conformance.cases import Case, Outcome
from runner.bench.conformance.data import rows_of
from runner.protocol.json_text import strict_json
from runner.protocol.relaxed import read_relaxed

JSON_FILE = "jsontestsuite.jsonl"
JSON5_FILE = "json5_tests.jsonl"


def measure_json() -> list[Case]:
    """JSONTestSuite: y_ must be read, n_ must be refused, i_ is free.

    Raises
    ------
    ConfigError
        The data are not there.
    """
    return [
        _case(row, row["name"][:2], _is_read(row, strict_json), row["expect"])
        for row in rows_of(JSON_FILE)
    ]


def measure_json5() -> list[Case]:
    """The JSON5 tests: what is JSON5 must be read. What is not is free: models err otherwise too.

    Raises
    ------
    ConfigError
        The data are not there.
    """
    cases = []
    for row in rows_of(JSON5_FILE):
        expected = "accept" if row["expect"] == "accept" else "either"
        group = "JSON5" if expected == "accept" else "not JSON5"
        cases.append(_case(row, group, _is_read(row, read_relaxed), expected))
    return cases


def _is_read(row: dict[str, Any], read: Callable[[str], Any]) -> bool:
    try:
        read(base64.b64decode(row["b64"]).decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _case(row: dict[str, Any], group: str, read: bool, expected: str) -> Case:
    name = row["name"]
    verb = "read" if read else "refused"
    if expected == "either":
        return Case(group, name, Outcome.FREE, verb)
    if read == (expected == "accept"):
        return Case(group, name, Outcome.CORRECT, verb)
    if read:
        return Case(group, name, Outcome.LOOSE, "read, though it must be refused")
    return Case(group, name, Outcome.STRICT, "refused, though it must be read")
