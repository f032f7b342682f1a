"""Third-party test data, where $RUNNER_CONFORMANCE_DIR points at it."""

import base64
import json
import os
from pathlib import Path

import pytest

from runner.core.errors import ProtocolError
from runner.protocol.repair import read_json, strict_json

FOLDER = Path(os.environ.get("RUNNER_CONFORMANCE_DIR", ""))
FILE = FOLDER / "jsontestsuite.jsonl"
pytestmark = pytest.mark.skipif(
    not os.environ.get("RUNNER_CONFORMANCE_DIR") or not FILE.is_file(),
    reason="RUNNER_CONFORMANCE_DIR does not point at a folder with jsontestsuite.jsonl",
)


def cases(kind):
    rows = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
    for row in rows:
        if row["name"].startswith(kind):
            yield row["name"], base64.b64decode(row["b64"])


def accepted(data):
    try:
        strict_json(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def test_json_that_must_be_accepted_is_but_for_a_key_with_two_values():
    names = [(name, accepted(data)) for name, data in cases("y_")]
    assert len(names) == 95
    # A key with two values is valid JSON, but there is no telling which of the two was meant.
    assert [name for name, good in names if not good] == ["y_object_duplicated_key.json"]


def test_json_that_must_be_refused_is():
    names = [(name, accepted(data)) for name, data in cases("n_")]
    assert len(names) == 188
    assert [name for name, good in names if good] == []


def test_reading_any_of_it_as_a_call_ends_in_a_value_or_a_protocol_error():
    for kind in ("y_", "n_", "i_"):
        for _, data in cases(kind):
            try:
                read_json(data.decode("utf-8", "replace"), 1)
            except ProtocolError as error:
                assert str(error)
