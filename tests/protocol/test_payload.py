import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.protocol import ProtocolError
from runner.protocol.json_text import strict_json
from runner.protocol.payload import read_payload

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def read(text, known=lambda name: name == "find"):
    """The only call of a payload, its receipts, and what reading it cost."""
    (payload,) = read_payload(text, 1, known)
    return payload.data, [r.what for r in payload.receipts], sum(r.cost for r in payload.receipts)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=4))
def test_valid_json_is_never_touched(value):
    for ascii_only in (True, False):
        for indent in (None, 2):
            text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
            assert read(text) == (value, [], 0)


@pytest.mark.parametrize(
    ("written", "params"),
    [
        ("{'tool': 'a', 'params': {'x': True, 'y': None}}", {"x": True, "y": None}),
        ('{"tool": "a", "params": {"x": 1,}}', {"x": 1}),
        ('{tool: "a", params: {x: 1}}', {"x": 1}),
        ('{"tool": "a", "params": {"x": 1 /* one */}} // done', {"x": 1}),
        ('```json\n{"tool": "a", "params": {"x": 1}}\n```', {"x": 1}),
        ('```\n{"tool": "a", "params": {"x": 1}}', {"x": 1}),
        ('{"tool": "a", "params": {"x": "one\n\ttwo\n"}}', {"x": "one\n\ttwo\n"}),
        ("{“tool”: “a”, “params”: {“x”: “y”}}", {"x": "y"}),
        ('{"tool"：\u3000"a"，"params"：｛"x"：[1，2]｝}', {"x": [1, 2]}),
        ('{"tool": "a", "params": {"x": 1}}}}', {"x": 1}),
        ('<tool_call>{"tool": "a", "params": {"x": 1}}</tool_call>', {"x": 1}),
    ],
)
def test_what_is_only_spelled_otherwise_costs_nothing(written, params):
    value, receipts, cost = read(written)
    assert value == {"tool": "a", "params": params}
    assert receipts
    assert cost == 0


@pytest.mark.parametrize(
    ("written", "params"),
    [
        ('{"tool": "a", "params": {"x": "y"}', {"x": "y"}),
        ('{"tool": "a", "params": {"x": ["y"]}', {"x": ["y"]}),
        ('{"tool": "a", "params": {"x": 1 "y": 2}}', {"x": 1, "y": 2}),
        ('{"tool": "a", "params": {"x": "say "yes" now"}}', {"x": 'say "yes" now'}),
        ('{"tool": "a", "params": {"x": "12" wide", "y": 1}}', {"x": '12" wide', "y": 1}),
        ("{'tool': 'a', 'params': {'x': 'Ms D'Arcy'}}", {"x": "Ms D'Arcy"}),
        ('{"tool": "a", "params": {"x": "C:\\bin\\Query"}}', {"x": "C:\\bin\\Query"}),
        ('{"tool": "a", "params": {"x": "\\d+\\b"}}', {"x": "\\d+\\b"}),
        ('{"tool": "a", "params": {"x": red panda}}', {"x": "red panda"}),
        ('{"tool": "a", "params": {"x": 2024-05-01}}', {"x": "2024-05-01"}),
        ('{"tool": "a", "params": {"x": 1\n "y": 2}}', {"x": 1, "y": 2}),
        ('{"tool": "a", "params": {"x": """one "two"\n"""}}', {"x": 'one "two"\n'}),
        ('{{"tool": "a", "params": {{"x": "{{y}}"}}}}', {"x": "{{y}}"}),
        ('{\\"tool\\": \\"a\\", \\"params\\": {\\"x\\": 1}}', {"x": 1}),
        ('Now I call it: {"tool": "a", "params": {"x": 1}}', {"x": 1}),
    ],
)
def test_the_likely_reading_is_taken_at_a_cost(written, params):
    value, receipts, cost = read(written)
    assert value == {"tool": "a", "params": params}
    assert receipts
    assert cost > 0


@pytest.mark.parametrize(
    ("written", "params"),
    [
        ('find {"x": 1}', {"x": 1}),
        ('find({"x": 1})', {"x": 1}),
        ('find\nAction Input: {"x": 1}', {"x": 1}),
        ("find\nInput: elk", "elk"),
        ('find(x="a, b", y=[1, None, true])', {"x": "a, b", "y": [1, None, True]}),
        ('find("elk")', "elk"),
        ("`find`()", None),
    ],
)
def test_a_known_name_with_its_input_is_a_call(written, params):
    assert read(written)[0] == {"tool": "find", "params": params}


@pytest.mark.parametrize(
    "written",
    ['seek {"x": 1}', "seek(x=1)", "find(x=1 + 1)", "find(**x)", "find(x=seek())", "None"],
)
def test_any_other_code_or_name_is_refused(written):
    try:
        calls = [payload.data for payload in read_payload(written, 1, lambda name: name == "find")]
    except ProtocolError as error:
        assert error.kind == "malformed"
    else:
        assert calls == [{"x": 1}]  # the object alone, which names no tool


def test_several_objects_are_several_calls():
    text = '{"tool": "a"}\n{"tool": "b"}, {"tool": \'c\'}'
    assert [p.data for p in read_payload(text, 1)] == [{"tool": "a"}, {"tool": "b"}, {"tool": "c"}]
    text = '[{"tool": "a"}, {"tool": "b"}]'
    assert [p.data for p in read_payload(text, 1)] == [{"tool": "a"}, {"tool": "b"}]


@pytest.mark.parametrize(
    "doubtful",
    [
        '{"tool": "a", "params": {"x": "cut off he',
        '{"tool": "a", "params": {"x": "one",}',
        '{"tool": "a", "params": {"x": [["y"',
        '{"tool": "a", "params": {"x": "y"',
        '{"tool": "a", "params": {"x": ["y"}}',
        '{"tool": "a", "params": {"x": {"y": 1}, "z": 2}',
        '{"tool": "a", "params": {"x": plain words}',
        '{"tool": "a", "params": {"x": 1} // and',
        '{"tool": "a", "x": {"y": 1}',
        '{"tool": "a"',
        '{"tool": "a", "params": {"x": "/home/me", "',
        '{"tool": "a", "params": {"x": "y"}"}',
        '[{"tool": "a", "params": {"x": 1}}',
        "{'tool': 'a', 'params': {'x': 'I don'",
        '{"tool":"a","params":{"x": "http://x" // y", "z": 1',
        '{"tool": "a", "params": {"x": 12',
        '{"tool": "a", "params": {"x": true',
        '{"tool": "a", "params": {"x": "y",',
        '{"tool": "a", "params": {"x": }}',
        '{"tool": "a", "params": {"x": ',
        '{"tool": "a", "params": {"x":\n "y": "z"}}',
        '{"tool": "a", "params": {"x": "say "yes", "y": 1}}',
        '{"tool": "a", "params": {"x": "<p id="intro>hello"}}',
        '{"tool": "a", "params": {"x": "C:\\\\bin\\Query"}}',
        '{"tool": "a", "params": {"x": "\\d+\\n"}}',
        '{"tool": "a", "params": {"x": "5\\$"}}',
        '{"tool": "a", "params": {"x": E:\\docs}}',
        '{"tool": "a", "params": {"x": [1, 2, ...]}}',
        '{"tool": "a", "params": {"x": undefined}}',
        '{"tool": "a", "params": {"x": 1}} and then some {"x": 2}',
        '{"tool": "a", "params": {"x": 1}}, "y": 2}',
        '{"tool": "a", "params": {"x": ["u" "v"]}}',
        '{"tool": "a", "params": {"x": 1, , "y": 2}}',
        '{"tool": "a", "params": {"x": ""y""}}',
        '{"tool": "a", "params": {"x": ["u", "v": "w"]}}',
        '{"tool": "a", "params": {"x": {1, 2}}}',
        '{"tool": "a", "params": ["x": 1]}',
        '{"tool": "<name>", "params": {...}}',
    ],
)
def test_what_could_mean_two_things_is_refused(doubtful):
    with pytest.raises(ProtocolError) as caught:
        read_payload(doubtful, 3)
    assert caught.value.kind in ("malformed", "truncated")
    assert "ACTION 3" in str(caught.value)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ('{"tool": "a", "params": {"x": "cut off he', "the text of params.x has no closing quote"),
        ('{"tool": "a", "params": {"x": }}', "params.x has no value"),
        ('{"tool": "a", "params": {"x":\n "y": "z"}}', "params.x has no value"),
        ('{"tool": "a", "params": {"x": ', "where the value of params.x should come"),
        ('{"tool": "a", "params": {"x": ["u", ...]}}', '"..." stands in params.x'),
        ('{"tool": "a", "params": {"x": "say "yes", "y": 1}}', "params.x: a quote inside"),
        ('{"tool": "a", "params": {"x": "5\\$"}}', "params.x: \\$ is no escape"),
        ('{"tool": "a", "params": {"x": E:\\docs}}', "params.x: a value was expected"),
        ('{"tool": "<name>", "params": {...}}', "copies the format"),
        ('{"tool": "a", "params": {"x": ["y"}}', "] was expected behind params.x, found }"),
        ('{"tool": "a", "params": {"x": "y"]}', "} was expected behind params.x, found ]"),
        ('{"tool": "a", "params": {"x" = "y"}}', '":" was expected behind the key "x", found "="'),
        ('{"tool": "a", "params": {"x": "y" "z": "u"}}', 'a comma was expected before the key "z"'),
        ('{"tool": "a", "params": {"x": 1,, "z": 2}}', "a comma too many in params"),
        ('{"tool": "a", "params": {"x": [1,,2]}}', "a comma too many in params.x"),
        ('{"tool": "a", "params": {"x": nul}}', "params.x: 'nul' is no value"),
    ],
)
def test_the_message_names_the_parameter_and_the_fault(broken, words):
    with pytest.raises(ProtocolError) as caught:
        read_payload(broken, 1)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "broken",
    [
        '{"tool": "a", "params": {"x": "y}}',
        '{"tool": "a", "params": {"x": y"}}',
        '{"tool": "a", "params: {"x": "y"}}',
        '{"tool": "a", "params": {"x": "y" z "u"}}',
    ],
)
def test_a_text_that_ends_with_its_bracket_is_not_called_cut_off(broken):
    with pytest.raises(ProtocolError) as caught:
        read_payload(broken, 1)
    assert caught.value.kind == "malformed"
    assert "cut off" not in str(caught.value)


def test_names_in_messages_are_short():
    with pytest.raises(ProtocolError) as caught:
        read_payload('{"tool": "a", "params": {"' + "x" * 5000 + '" = 1}}', 1)
    assert len(str(caught.value)) < 300


def test_strict_json_keeps_what_the_contract_must_judge():
    value = strict_json('{"a": 1.10, "b": 1, "b": 2, "c": 1, "c": 1, "d": 1e999}')
    assert value["a"].text == "1.10"
    assert value.repeated == {"b": True, "c": False}
    assert value["d"] == float("inf")
    value = strict_json('{"a": -0, "b": 10, "c": 1.10, "c": 1.1}')
    assert (value["a"], value["a"].text, type(value["b"])) == (0, "-0", int)
    assert value.repeated == {"c": True}


@pytest.mark.parametrize(
    "large",
    [
        "```json\n{" + "\n" * 150_000 + "x",
        "{tool: t, params: {" + ",".join(f"k{i}: v" for i in range(15_000)) + ", k",
        '{"a": ' + '"' * 100_001 + "x",
        "{" + "\\" * 100_000,
        '{"a": ' + '"//' * 60_000,
        '{"a": "' + '1"' * 90_000,
        '{"a": "' + '„1"' * 60_000,
        '{"a": "$' + "\\ab" * 60_000,
        '{"a": ' + "'x'y" * 40_000,
        '{"a": ' + '"""' * 60_000,
        '{"a": ' + "ab " * 60_000 + "}",
        '{"a": "' + "`" * 100_000,
        "{'a': '" + "x" * 1_000_000 + "'}",
    ],
)
def test_large_broken_text_is_refused_at_once(large):
    with pytest.raises(ProtocolError):
        read_payload(large, 1)
