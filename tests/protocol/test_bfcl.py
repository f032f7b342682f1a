"""Gold calls of the Berkeley Function Calling Leaderboard (BFCL) can be written and read back."""

import pytest
from recognizer import recognizer_matcher

from runner.bench.conformance import Outcome
from runner.bench.conformance.bfcl import gold_turns, json_schema, measure_gold
from runner.core.contract import ToolContract

SIZES = {"simple": 400, "multiple": 200, "parallel": 200, "live_parallel_multiple": 24}
# Rows whose gold call is not valid under the row's own schema, such as a value outside its enum.
GOLD_INVALID = {"live_parallel_multiple": ["live_parallel_multiple_2-2-0"]}


@pytest.mark.parametrize("category", SIZES)
def test_every_gold_call_is_in_the_grammar_and_read_back_as_it_is(category):
    pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed: ./scripts/setup --dev")
    cases = measure_gold(recognizer_matcher, [category])
    assert len(cases) == SIZES[category]
    odd = [case.name for case in cases if case.outcome is Outcome.ODD]
    assert odd == GOLD_INVALID.get(category, [])
    wrong = [case for case in cases if case.outcome not in (Outcome.CORRECT, Outcome.ODD)]
    assert not wrong, f"{len(wrong)} of {len(cases)}, such as {wrong[0]}"


def test_a_schema_of_bfcl_becomes_json_schema():
    assert json_schema(
        {
            "type": "dict",
            "optional": True,
            "properties": {
                "optional": {"type": "float"},
                "type": {"type": "any", "description": "d"},
                "pair": {"type": "tuple", "items": {"type": "dict", "properties": {}}},
            },
        }
    ) == {
        "type": "object",
        "properties": {
            "optional": {"type": "number"},
            "type": {"description": "d"},
            "pair": {"type": "array", "items": {"type": "object", "properties": {}}},
        },
    }


def test_a_gold_turn_is_made_for_every_accepted_value_and_everything_that_may_be_left_out():
    schema = {
        "properties": {
            "unit": {"enum": ["m", "km"]},
            "a": {"type": "integer"},
            "at": {"type": "object", "properties": {"x": {}, "y": {}}},
        },
        "required": ["a"],
    }
    tool = ToolContract.from_schema("t", "d", schema)
    gold = [{"t": {"a": [1, 2], "unit": ["mile", "km", ""], "at": [{"y": [5], "x": ["", 4]}]}}]
    first = {"unit": "km", "a": 1, "at": {"x": 4, "y": 5}}
    made = [params for [(_, params)] in gold_turns([tool], gold)]
    assert [list(params) for params in made[:2]] == [["unit", "a", "at"]] * 2
    assert made == [
        first,
        {**first, "a": 2},
        {"a": 1, "at": {"x": 4, "y": 5}},
        {**first, "unit": "mile"},
        {**first, "at": {"y": 5}},
    ]
