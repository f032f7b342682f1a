"""What holds for every dialect: what it spells and what its grammar allows is what it reads."""

import json
import random
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recognizer import Grammar
from simple_tools import ADD, SEARCH

from runner import ToolContract
from runner.core.contract import Effect
from runner.core.conversation import ModelTurn, ToolCall, ToolResult
from runner.core.errors import ProtocolError
from runner.protocol import build_grammar, parse_turn
from runner.protocol.dialects import ACTION, DIALECTS, HERMES
from runner.protocol.json_text import DEEPEST
from runner.protocol.prompt import observation_message, opening_messages

BUILT_IN = [ACTION, HERMES]
TOOLS = [ADD, SEARCH]
OPEN = ToolContract.from_schema("do.it", "d", {"properties": {}, "additionalProperties": True})
TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "<think>", "</think>", "```"]
MARKERS = ["\nACTION: {}", "\nANSWER: x", "\nOBSERVATION [c1 add]: 3", "\nTHOUGHT: y"]

each_dialect = pytest.mark.parametrize("dialect", BUILT_IN, ids=lambda dialect: dialect.name)
# Half of a surrogate pair is no text.
characters = st.characters(exclude_categories=["Cs"])
texts = st.lists(st.sampled_from([*TAGS, *MARKERS, '"', "\\", "}", "\n"]) | characters).map("".join)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)
# One line of plain words, as a thought is.
thoughts = st.from_regex(r"[a-zé][a-zé ,.!?'-]{0,40}[a-zé.]", fullmatch=True)
signs = r" ,.:;!?'\n|*#`{}\[\]()\"\\<>-"
words = st.from_regex(rf"[a-zé0-9][a-zé0-9{signs}]{{0,80}}[a-zé.]", fullmatch=True)


def calls(*inputs, name="do.it"):
    return tuple(ToolCall(f"c{n}", name, params) for n, params in enumerate(inputs, start=1))


def read(dialect, text, tools=(OPEN,), **options):
    return parse_turn(text, list(tools), dialect=dialect.name, **options)


@each_dialect
@given(st.lists(objects, min_size=1, max_size=3), st.just("") | thoughts)
@settings(max_examples=150)
def test_calls_are_read_as_they_were_spelled(dialect, inputs, thought):
    turn = ModelTurn(thought, calls(*inputs))
    text = dialect.spelled(turn)
    found = read(dialect, text)
    assert found == turn
    # As text, since Python takes 1 and true for equal.
    assert json.dumps([c.input for c in found.calls]) == json.dumps(inputs)


@each_dialect
@given(words)
@settings(max_examples=150)
def test_answers_are_read_as_they_were_spelled(dialect, answer):
    turn = ModelTurn(answer=answer)
    assert read(dialect, dialect.spelled(turn), TOOLS) == turn


@each_dialect
@given(texts.filter(str.strip))
@settings(max_examples=300)
def test_an_answer_is_never_read_as_a_call(dialect, answer):
    text = dialect.spelled(ModelTurn(answer=answer))
    # Where it holds a tag or a marker, the model may be asked again.
    with suppress(ProtocolError):
        assert read(dialect, text, [OPEN, *TOOLS]).calls == ()


@each_dialect
def test_the_json_of_a_call_in_place_of_an_answer_is_taken_at_a_cost_or_not_at_all(dialect):
    body = json.dumps({dialect.name_key: "add", dialect.params_key: {"a": 1, "b": 2}})
    turn = read(dialect, body, TOOLS)
    assert [receipt.cost for receipt in turn.receipts] == [1]
    quoted = read(dialect, dialect.spelled(ModelTurn(answer=f"I would send {body} now.")), TOOLS)
    assert quoted.calls == ()


def nested(depth):
    return {"a": nested(depth - 1)} if depth else {}


@each_dialect
def test_deep_params_are_read_up_to_the_bound(dialect):
    deep = nested(DEEPEST - 3)
    turn = ModelTurn(calls=calls(deep))
    assert read(dialect, dialect.spelled(turn)) == turn
    with pytest.raises(ProtocolError) as caught:
        read(dialect, dialect.spelled(ModelTurn(calls=calls(nested(DEEPEST)))))
    assert caught.value.kind == "too_large"


SCHEMAS = {
    "add": ADD.parameters,
    "search": SEARCH.parameters,
    "nothing": {"properties": {}},
    "any": {"properties": {"any": {}, "object": {"type": "object"}}},
    "odd": {
        "properties": {
            'q"t': {"enum": ["<tool_call>", "</tool_call>", "a\nACTION: {}", 1.5, None]},
            "größe": {"type": "string", "minLength": 1, "maxLength": 9},
            "list": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3},
        },
        "required": ['q"t', "list"],
    },
}


def denoted(dialect, text):
    """What a string of the grammar says, read without any code of the dialect's reader."""
    if dialect is ACTION:
        thought, _, rest = text.partition("\n") if text.startswith("THOUGHT: ") else ("", "", text)
        thought = thought.removeprefix("THOUGHT: ")
        if rest.startswith("ANSWER: "):
            return thought, rest.removeprefix("ANSWER: "), []
        bodies = re.findall(r"ACTION: (.*)", rest)
        return thought, None, [tuple(json.loads(body).values()) for body in bodies]
    if "<tool_call>\n{" not in text:
        return "", text, []
    thought, _, rest = text.partition("<tool_call>")
    # A line break never stands in a string: JSON has it escaped.
    bodies = [line for line in rest.split("\n") if line.startswith("{")]
    return thought, None, [tuple(json.loads(body).values()) for body in bodies]


WHITE = " \t\r\n\u200b\ufeff"


@each_dialect
@pytest.mark.parametrize("thought", [True, False])
@pytest.mark.parametrize("names", [["add", "search"], ["odd"], ["any", "nothing"], []])
def test_every_string_of_the_grammar_is_read_without_a_receipt_as_what_it_says(
    dialect, thought, names
):
    tools = [ToolContract.from_schema(name, "d", SCHEMAS[name]) for name in names]
    grammar = Grammar(build_grammar(tools, max_calls=3, thought=thought, dialect=dialect.name).text)
    rng = random.Random(f"{dialect.name} {thought} {names}")
    seen = set()
    for _ in range(120):
        text = grammar.sample(rng)
        thinking, answer, made = denoted(dialect, text)
        try:
            turn = read(dialect, text, tools)
        except ProtocolError as error:
            # Keys that the schema does not name may come twice; no grammar can count them.
            assert "any" in names and "given twice" in str(error)
            continue
        assert turn.receipts == ()
        assert [(call.name, call.input) for call in turn.calls] == made
        assert turn.answer == (None if answer is None else answer.strip(WHITE))
        assert turn.thought == thinking.strip(WHITE)
        seen.add((turn.answer is None, bool(turn.thought), len(turn.calls)))
    # All kinds of turn came up: answers, and with tools one to three calls.
    assert {kind[2] for kind in seen} == ({0, 1, 2, 3} if names else {0})
    assert any(kind[1] for kind in seen if kind[0]) == (thought and bool(names))


@each_dialect
def test_what_is_spelled_is_in_the_grammar(dialect):
    turns = [
        ModelTurn("add them", calls({"a": 1, "b": -2}, {"a": 0, "b": 3}, name="add")),
        ModelTurn(calls=calls({"query": 'größe "x"\n<tool_call>', "limit": 3}, name="search")),
        ModelTurn(answer="It is 3 < 4.\n\nReally: <b>3</b>, tab\there."),
    ]
    accepts = Grammar(build_grammar(TOOLS, dialect=dialect.name).text).accepts
    assert [accepts(dialect.spelled(turn)) for turn in turns] == [True, True, True]


@each_dialect
def test_a_turn_is_calls_or_an_answer_and_no_other_tool(dialect):
    accepts = Grammar(build_grammar(TOOLS, dialect=dialect.name).text).accepts
    one = dialect.spelled(ModelTurn(calls=calls({"a": 1, "b": 2}, name="add")))
    # Of two lines, since one line before a call is a thought in hermes.
    answer = dialect.spelled(ModelTurn(answer="three\nor four"))
    assert accepts(one)
    assert accepts(answer)
    assert not accepts(f"{one}\n{answer}")
    assert not accepts(f"{answer}\n{one}")
    assert not accepts(one.replace('"add"', '"sub"'))
    assert not accepts(one.replace('"b": 2', '"b": "2"'))
    assert not accepts("")


@each_dialect
def test_the_number_of_calls_is_bounded(dialect):
    two = dialect.spelled(ModelTurn(calls=calls(*[{"a": 1, "b": 2}] * 2, name="add")))
    for most, allowed in [(1, False), (2, True), (4, True)]:
        grammar = build_grammar(TOOLS, max_calls=most, dialect=dialect.name)
        assert Grammar(grammar.text).accepts(two) == allowed


@each_dialect
def test_a_thought_comes_first_where_it_is_wanted(dialect):
    text = dialect.spelled(ModelTurn("add them", calls({"a": 1, "b": 2}, name="add")))
    for thought in (True, False):
        grammar = build_grammar(TOOLS, thought=thought, dialect=dialect.name)
        assert Grammar(grammar.text).accepts(text) == thought


@each_dialect
@pytest.mark.parametrize(("tools", "most"), [([], 4), (TOOLS, 0)])
def test_without_tools_or_calls_only_an_answer_is_left(dialect, tools, most):
    accepts = Grammar(build_grammar(tools, max_calls=most, dialect=dialect.name).text).accepts
    assert accepts(dialect.spelled(ModelTurn(answer="no")))
    assert not accepts(dialect.spelled(ModelTurn(calls=calls({"a": 1, "b": 2}, name="add"))))


@each_dialect
def test_the_examples_of_a_conversation_are_turns_of_the_dialect(dialect):
    written = [m.content for m in opening_messages(TOOLS, dialect) if m.role == "assistant"]
    turns = [read(dialect, text, TOOLS) for text in written]
    assert all(turn.receipts == () for turn in turns)
    assert {len(turn.calls) for turn in turns} == {0, 1, 2}


@each_dialect
def test_the_prompt_speaks_no_other_dialect(dialect):
    text = "\n".join(message.content for message in opening_messages(TOOLS, dialect))
    assert ("ACTION" in text) == (dialect is ACTION)
    assert ("<tool_call>" in text) == (dialect is HERMES)
    assert ("OBSERVATION" in text) == (dialect is ACTION)


def test_the_built_in_dialects_are_these():
    assert list(DIALECTS.values())[:2] == BUILT_IN
    assert [DIALECTS[dialect.name] for dialect in BUILT_IN] == BUILT_IN


@each_dialect
def test_both_sides_of_a_call_name_its_tool(dialect):
    call = ToolCall("c7", "add", {"a": 1, "b": 2})
    text = observation_message([ToolResult(call, "3", 2)], {"add": 1}, ["c7"], dialect)
    assert all(word in text for word in ("c7", "add", "second", "1 left", "nothing new", "3"))


@each_dialect
def test_a_write_tool_is_spelled_like_any_other(dialect):
    tool = ADD.model_copy(update={"effect": Effect.WRITE})
    assert build_grammar([tool], dialect=dialect.name) == build_grammar([ADD], dialect=dialect.name)
