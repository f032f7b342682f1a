import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simple_tools import ADD, SEARCH

from runner import ToolContract
from runner.protocol import ProtocolError, parse_turn

TOOLS = [ADD, SEARCH]


def action(**data):
    return "ACTION: " + json.dumps(data, ensure_ascii=False)


def refused(text, stop="end", tools=TOOLS):
    with pytest.raises(ProtocolError) as caught:
        parse_turn(text, tools, stop)
    return caught.value


def test_calls_get_ids_in_order():
    text = f"THOUGHT: both\n{action(tool='add', params={'a': 1, 'b': 2})}\n"
    text += action(tool="search", params={"query": "elk"})
    turn = parse_turn(text, TOOLS, first_call=4)
    assert turn.thought == "both"
    assert [(c.id, c.name, c.input) for c in turn.calls] == [
        ("c4", "add", {"a": 1, "b": 2}),
        ("c5", "search", {"query": "elk"}),
    ]
    assert turn.answer is None
    assert turn.receipts == ()


def test_an_answer_runs_to_the_end_of_the_turn_whatever_it_holds():
    text = 'Use this:\n\n```\nACTION: {"tool": "add"}\n```\nOBSERVATION: no\n```\nTHOUGHT: x\n```'
    turn = parse_turn(f"ANSWER: {text}", TOOLS)
    assert turn.answer == text
    assert turn.calls == ()
    assert turn.receipts == ()


def test_markers_inside_strings_are_data():
    query = "x\nACTION: {}\nANSWER: y"
    turn = parse_turn(action(tool="search", params={"query": query}), TOOLS)
    assert turn.calls[0].input == {"query": query}


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", "empty", "empty"),
        (" \n\t ", "empty", "empty"),
        ("It is 3.", "no_marker", "neither"),
        ("THOUGHT: hm", "no_marker", "neither"),
        ("OBSERVATION [c1 add]: 3\nANSWER: 3", "invented", "OBSERVATION"),
        ('Running it:\n{"sum": 3}\nANSWER: 3', "invented", "made up"),
        ('ANSWER: 3\nACTION: {"tool": "add", "params": {"a": 1, "b": 2}}', "mixed", "both"),
        ("ANSWER:", "empty", "no text"),
        ("ACTION:", "malformed", "no JSON"),
        ('ACTION: {"tool": "add", "params": {"a": 1, "b": 2}}\nANSWER: 3', "mixed", "both"),
        ('ACTION: {"tool": "ad", "params": {}}', "unknown_tool", 'no tool "ad"'),
        ('ACTION: {"tool": "add", "params": {"a": 1}}', "bad_params", "parameter b"),
        ('ACTION: {"tool": "add", "params": {"a": 1, "b": 2, "c": 3}}', "bad_params", '"c"'),
        ('ACTION: {"tool": "add", "params": {"a": "x", "b": 2}}', "bad_params", "integer"),
        ('ACTION: {"tool": "add", "params": [1, 2]}', "bad_params", "a, b"),
        ('ACTION: {"tool": ["add"], "params": {}}', "malformed", "string"),
        ('ACTION: {"name": "add"}', "bad_params", "ACTION 1: add needs the parameter a"),
        ('ACTION: {"query": "x"}', "malformed", '"tool" and "params"'),
        ("<think>I will\n" + action(tool="add", params={"a": 1, "b": 2}), "malformed", "</think>"),
    ],
)
def test_what_is_neither_calls_nor_answer_is_told_to_the_model(text, kind, words):
    error = refused(text)
    assert error.kind == kind
    assert words in str(error)


def test_a_near_miss_is_named():
    assert "Did you mean search?" in str(refused(action(tool="serach", params={"query": "x"})))
    assert "Did you mean query?" in str(refused(action(tool="search", params={"qeury": "x"})))


def test_errors_about_params_carry_the_tool():
    assert refused(action(tool="add", params={"a": 1})).tool == "add"


@pytest.mark.parametrize("stop", ["length", "degenerate", "cancelled"])
def test_text_that_was_cut_off_never_yields_a_call(stop):
    assert refused(action(tool="add", params={"a": 1, "b": 2}), stop).kind == "truncated"


def test_an_answer_that_was_cut_off_is_kept_with_a_receipt():
    turn = parse_turn("ANSWER: The first of", TOOLS, "length")
    assert turn.answer == "The first of"
    assert "token limit" in turn.receipts[0].what


def test_one_faulty_call_refuses_the_whole_turn():
    good = action(tool="add", params={"a": 1, "b": 2})
    assert "ACTION 2" in str(refused(f"{good}\nACTION: {{"))


def test_what_follows_an_invented_observation_is_dropped():
    text = action(tool="add", params={"a": 1, "b": 2}) + "\nOBSERVATION: 3\nANSWER: 3"
    turn = parse_turn(text, TOOLS)
    assert [c.name for c in turn.calls] == ["add"]
    assert turn.answer is None
    assert "OBSERVATION" in turn.receipts[0].what


def test_text_before_the_first_marker_is_a_thought_with_a_receipt():
    turn = parse_turn("Let me see.\nANSWER: 3", TOOLS)
    assert (turn.thought, turn.answer) == ("Let me see.", "3")
    assert turn.receipts[0].stage == "turn"


@pytest.mark.parametrize(
    ("given_params", "read"),
    [
        ({"query": "x", "limit": "120"}, {"query": "x", "limit": 120}),
        ({"query": "x", "exact": "true"}, {"query": "x", "exact": True}),
        ({"query": 7}, {"query": "7"}),
        ({"query": 1.1}, {"query": "1.1"}),
        ({"query": "x", "limit": None}, {"query": "x"}),
    ],
)
def test_faithful_changes_are_made_with_a_receipt(given_params, read):
    turn = parse_turn(action(tool="search", params=given_params), TOOLS)
    assert turn.calls[0].input == read
    assert type(turn.calls[0].input.get("limit")) is type(read.get("limit"))
    assert turn.receipts[0].stage == "contract"


@pytest.mark.parametrize(
    "params",
    [
        {"query": "x", "limit": "1,000"},
        {"query": "x", "limit": "30s"},
        {"query": "x", "limit": 1.5},
        {"query": "x", "limit": True},
        {"query": "x", "exact": "maybe"},
        {"query": "x", "exact": 1},
        {"query": None},
        {"query": ["x"]},
    ],
)
def test_unfaithful_changes_are_not_made(params):
    assert refused(action(tool="search", params=params)).kind == "bad_params"


def test_a_string_that_looks_like_json_stays_a_string():
    turn = parse_turn(action(tool="search", params={"query": '{"debug": true}'}), TOOLS)
    assert turn.calls[0].input == {"query": '{"debug": true}'}
    assert turn.receipts == ()


def test_a_list_sent_as_a_string_is_decoded_where_the_contract_says_list():
    tool = ToolContract.from_schema(
        "tag", "d", {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}}
    )
    turn = parse_turn(action(tool="tag", params={"tags": '["a", "b"]'}), [tool])
    assert turn.calls[0].input == {"tags": ["a", "b"]}


def test_big_integers_stay_exact():
    turn = parse_turn(action(tool="add", params={"a": 9007199254740993017, "b": 1}), TOOLS)
    assert turn.calls[0].input["a"] == 9007199254740993017


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(value):
    number = ToolContract.from_schema("t", "d", {"properties": {"x": {"type": "number"}}})
    error = refused(f'ACTION: {{"tool": "t", "params": {{"x": {value}}}}}', tools=[number])
    assert "finite" in str(error)


def test_a_key_given_twice_with_different_values_is_refused():
    error = refused('ACTION: {"tool": "search", "params": {"query": "a", "query": "b"}}')
    assert "query is given twice" in str(error)
    same = 'ACTION: {"tool": "search", "params": {"query": "a", "query": "a"}}'
    assert parse_turn(same, TOOLS).calls[0].input == {"query": "a"}


def test_half_a_surrogate_pair_is_refused():
    text = 'ACTION: {"tool": "search", "params": {"query": "snow \\ud83c"}}'
    assert "surrogate" in str(refused(text))


def test_what_is_nested_too_deeply_or_too_large_is_refused():
    deep = 'ACTION: {"tool": "search", "params": ' + '{"a":' * 5000
    assert refused(deep).kind == "too_large"
    assert refused('ACTION: {"tool": "' + "x" * 2_000_000).kind == "too_large"


PIECES = [
    "ACTION: ", "ANSWER: ", "THOUGHT: ", "OBSERVATION", "\n", "{", "}", '"', "'", "\\", "[", "]",
    '"tool": "add"', '"params": ', ": ", ", ", "1", "```json\n", "```", "<think>", "</think>", "“",
    "\ud800", "search", "(", ")", "query=", "<tool_call>", "[TOOL_CALLS]", "<|im_end|>", "//",
    "行动：", "**Action:**", "Action Input: ",
    '{"tool": "search", "params": {"query": "x"}}', "null", "\u200b",
]  # fmt: skip


@settings(max_examples=600)
@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(PIECES),
        max_size=40,
    ).map("".join)
)
def test_any_text_ends_as_a_turn_or_a_protocol_error(text):
    for stop in ("end", "length"):
        try:
            turn = parse_turn(text, TOOLS, stop)
        except ProtocolError as error:
            assert str(error)
        else:
            assert (turn.answer is None) == bool(turn.calls)


CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "parser_cases.jsonl").read_text("utf-8").splitlines()
]


def contract_of(tool):
    properties = {
        name: {key: value for key, value in schema.items() if key != "required"}
        for name, schema in tool["params"].items()
    }
    required = [name for name, schema in tool["params"].items() if schema.get("required")]
    return ToolContract.from_schema(
        tool["name"], "d", {"properties": properties, "required": required}
    )


def outcome(case):
    try:
        turn = parse_turn(case["raw"], [contract_of(tool) for tool in case["tools"]])
    except ProtocolError:
        return {"kind": "error"}
    if turn.answer is not None:
        return {"kind": "answer", "text": turn.answer}
    return {"kind": "calls", "calls": [{"tool": c.name, "params": c.input} for c in turn.calls]}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_reported_faults_are_read_as_expected(case):
    found = outcome(case)
    assert found == {key: case["expect"].get(key) for key in found}


def test_no_reported_fault_makes_a_wrong_call_run():
    wrong = [
        case["id"]
        for case in CASES
        if (found := outcome(case))["kind"] == "calls"
        and found != {key: case["expect"].get(key) for key in found}
    ]
    assert wrong == []


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning"])
def test_a_call_inside_open_thinking_does_not_run(tag):
    text = f"<{tag}>maybe\n{action(tool='add', params={'a': 1, 'b': 2})}\nTHOUGHT: no"
    assert refused(text).kind == "malformed"
    assert refused(f"{text}</{tag}>").kind == "no_marker"
    closed = f"<{tag}>maybe</{tag}>\n{action(tool='add', params={'a': 1, 'b': 2})}"
    assert len(parse_turn(closed, TOOLS).calls) == 1


def test_a_whole_number_with_a_point_is_that_integer_exactly():
    turn = parse_turn('ACTION: {"tool": "add", "params": {"a": 9007199254740993.0, "b": 1}}', TOOLS)
    assert turn.calls[0].input == {"a": 9007199254740993, "b": 1}
    assert turn.receipts == ()


@pytest.mark.parametrize("written", ["1234567890123456789.5", "9007199254740993.5", "1e300"])
def test_an_integer_that_a_float_would_change_is_refused(written):
    text = f'ACTION: {{"tool": "add", "params": {{"a": {written}, "b": 1}}}}'
    assert refused(text).kind == "bad_params"
    text = f'ACTION: {{"tool": "add", "params": {{"a": "{written}", "b": 1}}}}'
    assert refused(text).kind == "bad_params"


def test_a_reply_of_endless_length_is_refused():
    assert refused("THOUGHT: " + "(" * 2_000_000).kind == "too_large"
