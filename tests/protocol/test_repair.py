import json_repair
import pytest

from runner.protocol.repair import proposal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1 "b": [true, "x"]}', {"a": 1, "b": [True, "x"]}),
        ('{"a": "x" b: {"c": 2}}', {"a": "x", "b": {"c": 2}}),
        ("{'a': 1 'b': None}", {"a": 1, "b": None}),
    ],
)
def test_a_missing_comma_before_a_key_is_added(text, value):
    assert proposal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a": red panda, limit 5}',
        '{"a": [1`2]}',
        '{"a": [3\n0]}',
        '{"a": [3 0] "b": 1}',
        '{"a": "d"d" "b": 1}',
        '{"a": 12,12}',
        '{"a": 12,12 "b": 1}',
        '{"a": 1.10 "b": 2}',
        '{"a": 1,, "b": 2}',
        '{"a": 1 "b": 2',
        '{"a": [1 "b": 2}',
        '{"a" 1, "b": 2}',
        '{"a": "x\\d" "b": 2}',
        '{"a": 1 "b": }',
        '{"a": 1 "a": 2}',
        '{"```json{````',
        "{" * 9000,
    ],
)
def test_a_proposal_that_merges_splits_or_drops_anything_is_not_taken(text):
    assert proposal(text) is None


def test_whatever_the_repairer_raises_is_no_proposal(monkeypatch):
    def fails(*_, **__):
        raise AssertionError

    monkeypatch.setattr(json_repair, "loads", fails)
    assert proposal('{"a": 1 "b": 2}') is None
