"""What is measured must not flatter: every way in which a grammar can be wrong shows."""

import pytest

from runner.bench.conformance import Case, Outcome, json_texts, table
from runner.bench.conformance.data import rows_of
from runner.bench.conformance.probe import Probe, parameters_for, turn
from runner.bench.conformance.spelling import in_schema_order, spellings
from runner.core.errors import ConfigError


def takes_all(grammar):
    return lambda text: True


def takes_none(grammar):
    return lambda text: False


def takes(*values):
    return lambda grammar: lambda text: text in [turn(value) for value in values]


INTEGER = {"type": "integer"}
PATTERN = {"type": "string", "pattern": "^(?=a)"}


@pytest.mark.parametrize(
    ("schema", "matcher", "valid", "outcome"),
    [
        (INTEGER, takes_all, True, Outcome.CORRECT),
        (INTEGER, takes_none, True, Outcome.STRICT),
        (INTEGER, takes_none, False, Outcome.CORRECT),
        (INTEGER, takes_all, False, Outcome.LOOSE),
        (PATTERN, takes_all, False, Outcome.WEAKENED),
    ],
)
def test_a_value_is_right_too_strict_too_loose_or_weakened(schema, matcher, valid, outcome):
    probe = Probe(schema, matcher)
    if valid:
        assert probe.valid(7)[0] is outcome
    else:
        assert probe.invalid("x")[0] is outcome


def test_a_note_about_another_keyword_excuses_nothing():
    probe = Probe({"type": "string", "pattern": "^(?=a)", "maxLength": 3}, takes_all)
    assert probe.invalid("aaaa")[0] is Outcome.LOOSE


def test_a_valid_value_that_the_parser_does_not_read_is_a_fault():
    probe = Probe({"type": "string"}, takes_all)
    assert probe.valid(7)[0] is Outcome.MISREAD  # read as the text "7"


def test_a_value_that_is_taken_only_in_another_spelling_is_told_apart():
    schema = {"properties": {"a": {}, "b": {}}}
    assert Probe(schema, takes('{"b": 2, "a": 1}')).valid({"a": 1, "b": 2})[0] is Outcome.RESPELLED
    assert Probe(INTEGER, takes("1")).valid(1.0)[0] is Outcome.RESPELLED


def test_an_invalid_value_must_be_refused_in_every_order_of_its_keys():
    schema = {"properties": {"a": INTEGER, "b": INTEGER}}
    probe = Probe(schema, takes('{"b": "x", "a": "y"}'))
    assert probe.invalid({"a": "y", "b": "x"})[0] is Outcome.LOOSE


def test_a_schema_that_is_refused_says_why():
    with pytest.raises(ConfigError, match="elsewhere"):
        Probe({"$ref": "elsewhere.json"}, takes_all)


def test_definitions_move_up_and_what_refers_to_the_whole_schema_still_does():
    plain = {"$id": "x:y", "$ref": "#/$defs/n", "$defs": {"n": INTEGER}}
    assert parameters_for(plain) == {
        "type": "object",
        "$defs": {"n": INTEGER},
        "properties": {"value": {"$ref": "#/$defs/n"}},
        "required": ["value"],
    }
    whole = parameters_for({"properties": {"next": {"$ref": "#"}}})
    assert whole["properties"]["value"] == {"$ref": "#/$defs/whole-schema"}
    inner = {"properties": {"next": {"$ref": "#/$defs/whole-schema"}}}
    assert whole["$defs"] == {"whole-schema": inner}


def test_keys_follow_the_schema_through_its_parts():
    root = {
        "$defs": {"p": {"properties": {"y": {}, "x": {}}}},
        "properties": {"b": {"items": {"$ref": "#/$defs/p"}}, "a": {}},
        "allOf": [{"properties": {"c": {}}}],
        "anyOf": [
            {"properties": {"d": INTEGER, "e": {}}},
            {"properties": {"e": {}, "d": {"type": "string"}}},
        ],
    }
    value = {"z": 0, "e": 1, "d": "s", "c": 2, "a": 3, "b": [{"x": 1, "y": 2}]}
    ordered = in_schema_order(value, root, root)
    assert list(ordered) == ["b", "a", "c", "e", "d", "z"]
    assert list(ordered["b"][0]) == ["y", "x"]


def test_spellings_begin_with_the_given_one_and_end():
    assert list(spellings({"a": 1, "b": [2.0]})) == [
        '{"a": 1, "b": [2.0]}',
        '{"a": 1, "b": [2]}',
        '{"b": [2.0], "a": 1}',
        '{"b": [2], "a": 1}',
    ]
    assert len(list(spellings(dict.fromkeys("abcdefghij", 1)))) < 200


def test_a_table_adds_up():
    cases = [Case("x", "1", Outcome.CORRECT), Case("x", "2", Outcome.LOOSE)]
    cases.append(Case("y", "1", Outcome.REFUSED))
    assert table(cases) == [
        ["", "tests", "correct", "refused", "too strict", "silently too loose"],
        ["x", "2", "1", "0", "0", "1"],
        ["y", "1", "0", "1", "0", "0"],
        ["total", "3", "1", "1", "0", "1"],
    ]


def test_missing_data_say_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("RUNNER_CONFORMANCE_DIR", raising=False)
    with pytest.raises(ConfigError, match="RUNNER_CONFORMANCE_DIR is not set"):
        rows_of("x.jsonl")
    monkeypatch.setenv("RUNNER_CONFORMANCE_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"has no file x\.jsonl"):
        rows_of("x.jsonl")


def test_json5_is_measured_on_the_relaxed_reader(monkeypatch, tmp_path):
    rows = [
        '{"name": "a.json5", "expect": "accept", "b64": "MQ=="}',
        '{"name": "b.txt", "expect": "reject", "b64": "MQ=="}',
        '{"name": "c.json5", "expect": "accept", "b64": "e10="}',
    ]
    (tmp_path / json_texts.JSON5_FILE).write_text("\n".join(rows))
    monkeypatch.setenv("RUNNER_CONFORMANCE_DIR", str(tmp_path))
    outcomes = [case.outcome for case in json_texts.measure_json5()]
    assert outcomes == [Outcome.CORRECT, Outcome.FREE, Outcome.STRICT]
