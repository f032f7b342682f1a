import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recognizer import Grammar

from runner import ToolContract
from runner.protocol import build_grammar, parse_turn, tool_grammar
from runner.protocol.dialects import ACTION

SCALARS = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 5},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"]},
    {"enum": ["red", 'green "quoted"', "b\\s", 3, None, True]},
    {"const": "fixed"},
]


def objects(values):
    return st.builds(
        lambda properties, flags: {
            "type": "object",
            "properties": properties,
            "required": [name for name, flag in zip(properties, flags, strict=False) if flag],
            "additionalProperties": False,
        },
        st.dictionaries(
            st.sampled_from(["path", "query", "größe", "a b", 'q"t', "n-1", "back\\slash"]),
            values,
            max_size=4,
        ),
        st.lists(st.booleans(), min_size=4, max_size=4),
    )


schemas = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        st.builds(
            lambda items, least, more: {
                "type": "array",
                "items": items,
                "minItems": least,
                "maxItems": least + more,
            },
            inner,
            st.integers(0, 2),
            st.integers(0, 3),
        ),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        objects(inner),
    ),
    max_leaves=6,
)


names = st.lists(
    st.sampled_from(["search", "get.time", "get_time", "get-time", "查询", "Get_Time", "x" * 70]),
    min_size=1,
    max_size=3,
    unique=True,
)


@given(names, objects(schemas), st.integers(0, 2**32), st.booleans())
@settings(max_examples=150)
def test_whatever_the_grammar_allows_parses_strictly(tool_names, schema, seed, thought):
    tools = [ToolContract.from_schema(name, "d", schema) for name in tool_names]
    grammar = Grammar(tool_grammar(tools, max_calls=3, thought=thought))
    rng = random.Random(seed)
    for _ in range(5):
        text = grammar.sample(rng)
        turn = parse_turn(text, tools)
        # An integer may be spelled 3.0, which is read as 3 and said so. Nothing else is changed.
        assert all(re.fullmatch(r"read (-?\d+)\.0 as (\1|0)", r.what) for r in turn.receipts)
        assert (turn.answer is None) == bool(turn.calls)
        assert len(turn.calls) <= 3
        written = re.findall(r"^ACTION: (.*)$", text, re.MULTILINE) if turn.calls else []
        assert [{"tool": c.name, "params": c.input} for c in turn.calls] == [
            json.loads(line) for line in written
        ]


@given(objects(schemas), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_turn_in_the_protocols_spelling_is_in_the_grammar(schema, seed):
    tools = [ToolContract.from_schema("t", "d", schema)]
    grammar = Grammar(tool_grammar(tools))
    text = grammar.sample(random.Random(seed))
    turn = parse_turn(text, tools)
    assert grammar.accepts(text)
    assert parse_turn(ACTION.spelled(turn), tools).calls == turn.calls


def accepts(tools, text, **options):
    return Grammar(tool_grammar(tools, **options)).accepts(text)


ADD = ToolContract.from_schema(
    "add",
    "d",
    {
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "string"}},
        "required": ["a", "b"],
    },
)


def call(**params):
    return "ACTION: " + json.dumps({"tool": "add", "params": params})


def test_a_call_has_all_required_and_any_optional_parameters():
    assert accepts([ADD], call(a=1, b=-20))
    assert accepts([ADD], call(a=1, b=2, c="x"))
    assert not accepts([ADD], call(a=1))
    assert not accepts([ADD], call(a=1, b=2, d=3))


def test_types_are_held():
    assert not accepts([ADD], call(a="1", b=2))
    assert not accepts([ADD], call(a=1.5, b=2))


def test_only_known_tools_can_be_called():
    assert not accepts([ADD], 'ACTION: {"tool": "sub", "params": {"a": 1, "b": 2}}')


def test_the_number_of_calls_in_a_turn_is_bounded():
    two = "\n".join([call(a=1, b=2)] * 2)
    assert accepts([ADD], two, max_calls=2)
    assert not accepts([ADD], two, max_calls=1)


def test_a_turn_is_calls_or_an_answer_never_both():
    assert accepts([ADD], "ANSWER: three")
    assert not accepts([ADD], call(a=1, b=2) + "\nANSWER: three")
    assert not accepts([ADD], "ANSWER: ")
    assert not accepts([ADD], "three")


def test_one_thought_line_may_come_first_where_it_is_wanted():
    text = "THOUGHT: add them\n" + call(a=1, b=2)
    assert accepts([ADD], text, thought=True)
    assert not accepts([ADD], text, thought=False)


@pytest.mark.parametrize("options", [{"max_calls": 0}, {}])
def test_without_tools_or_calls_only_an_answer_is_left(options):
    tools = [ADD] if options else []
    assert accepts(tools, "ANSWER: no", **options)
    assert not accepts(tools, call(a=1, b=2), **options)


def test_what_the_grammar_does_not_enforce_is_noted_with_tool_and_parameter():
    tool = ToolContract.from_schema(
        "x", "d", {"properties": {"y": {"type": "string", "pattern": "(?=a)"}}}
    )
    assert build_grammar([tool]).notes == (
        "tool 'x', parameter 'y': 'pattern' is not enforced by the grammar, it is checked after",
    )


def test_references_inside_the_schema_are_followed():
    schema = {
        "properties": {"p": {"$ref": "#/$defs/Point"}},
        "required": ["p"],
        "$defs": {"Point": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}},
    }
    tool = ToolContract.from_schema("t", "d", schema)
    assert accepts([tool], 'ACTION: {"tool": "t", "params": {"p": {"x": 4}}}')
    assert not accepts([tool], 'ACTION: {"tool": "t", "params": {"p": {"x": "4"}}}')


def test_a_schema_that_contains_itself_gives_a_grammar_and_a_note():
    node = {"properties": {"next": {"$ref": "#/$defs/Node"}}}
    tool = ToolContract.from_schema(
        "t", "d", {"properties": {"n": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    )
    grammar = build_grammar([tool])
    assert "recursive" in grammar.notes[0]
    assert Grammar(grammar.text).accepts('ACTION: {"tool": "t", "params": {"n": {"next": {}}}}')


def test_a_tool_without_parameters_takes_none():
    tool = ToolContract.from_schema("now", "d", {"properties": {}})
    assert accepts([tool], 'ACTION: {"tool": "now", "params": {}}')
    assert not accepts([tool], 'ACTION: {"tool": "now", "params": {"a": 1}}')


def test_rule_names_are_portable():
    tools = [ToolContract.from_schema(n, "d", {}) for n in ["a.b", "a_b", "A-B", "查询", "9x"]]
    text = tool_grammar(tools)
    heads = [line.split(" ::= ")[0] for line in text.splitlines()]
    assert len(set(heads)) == len(heads)
    assert all(re.fullmatch("[a-z][a-z0-9-]*", head) for head in heads)


def test_every_rule_is_used_and_defined():
    text = tool_grammar([ADD])
    grammar = Grammar(text)
    reached, waiting = set(), ["root"]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += [n for n in grammar.rules if re.search(rf"\b{n}\b", text)]
    assert reached == set(grammar.rules)


def test_many_optional_parameters_make_a_small_grammar():
    schema = {"properties": {f"p{i}": {"type": "string"} for i in range(200)}}
    tool = ToolContract.from_schema("t", "d", schema)
    text = tool_grammar([tool])
    assert len(text) < 60_000
    for params in ({}, {"p0": "x"}, {"p7": "x", "p199": "y"}):
        line = "ACTION: " + json.dumps({"tool": "t", "params": params})
        assert Grammar(text).accepts(line)
    wrong = 'ACTION: {"tool": "t", "params": {"p7": "x", "p3": "y"}}'
    assert not Grammar(text).accepts(wrong)


def test_definitions_that_refer_to_each_other_make_a_small_grammar():
    names = [f"D{i}" for i in range(9)]
    node = {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}
    schema = {"properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": dict.fromkeys(names, node)}
    assert len(tool_grammar([ToolContract.from_schema("t", "d", schema)])) < 100_000


@pytest.mark.parametrize(
    "array",
    [
        {"type": "array", "items": {"type": "integer"}, "minItems": 100},
        {"type": "array", "items": {"type": "integer"}, "minItems": 5, "maxItems": 2},
        {"type": "string", "maxLength": 5.0},
        {"type": "string", "maxLength": 0},
        {"type": "array", "items": True},
        True,
    ],
)
def test_odd_bounds_make_a_grammar_that_can_be_read(array):
    tool = ToolContract.from_schema("t", "d", {"properties": {"x": array}, "required": ["x"]})
    Grammar(tool_grammar([tool])).sample(random.Random(1))
