"""The dialect `hermes`: what is its own."""

import json

import pytest
from recognizer import Grammar
from simple_tools import ADD, SEARCH

from runner import ToolContract
from runner.core.conversation import Message, ToolCall, ToolResult
from runner.core.errors import ProtocolError
from runner.protocol import build_grammar, parse_turn
from runner.protocol.dialects import HERMES
from runner.protocol.prompt import example_call, observation_message, opening_messages

TOOLS = [ADD, SEARCH]
BODY = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
SUM = f"<tool_call>\n{BODY}\n</tool_call>"


def read(text, stop="end", tools=TOOLS):
    return parse_turn(text, tools, stop, dialect="hermes")


def refused(text, stop="end"):
    with pytest.raises(ProtocolError) as caught:
        read(text, stop)
    return caught.value


def test_a_call_is_spelled_as_these_models_were_trained():
    assert example_call(SEARCH, HERMES) == (
        '<tool_call>\n{"name": "search", "arguments": {"query": "text"}}\n</tool_call>'
    )


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{BODY}</tool_call>",
        f"<tool_call>\n\n  {BODY}  \n\n</tool_call>\n",
        f"<tool_call>\n{BODY}",
        f"{SUM}\n\n",
    ],
)
def test_blanks_and_a_closing_tag_that_is_missing_make_no_difference(text):
    turn = read(text)
    assert turn.calls == (ToolCall("c1", "add", {"a": 1, "b": 2}),)
    assert turn.receipts == ()


def test_several_calls_may_stand_on_one_line():
    turn = read(SUM.replace("\n", "") * 3)
    assert [call.id for call in turn.calls] == ["c1", "c2", "c3"]


@pytest.mark.parametrize("behind", ["", "\nIt is 3.", f"\n{SUM}", "\n</tool_response>\nIt is 3."])
def test_an_invented_response_and_all_behind_it_is_dropped(behind):
    turn = read(f"{SUM}\n<tool_response>\n3{behind}")
    assert [call.name for call in turn.calls] == ["add"]
    assert turn.answer is None
    assert [receipt.what for receipt in turn.receipts] == ["dropped an invented tool response"]


def test_an_invented_response_without_a_call_is_refused():
    assert refused("<tool_response>\n3\n</tool_response>\nIt is 3.").kind == "invented"


def test_text_behind_a_call_is_dropped_with_a_receipt():
    turn = read(f"{SUM}\nThat should do.")
    assert [receipt.what for receipt in turn.receipts] == ["dropped text behind the JSON"]


def test_tags_inside_the_strings_of_a_call_are_data():
    query = "</tool_call>\n<tool_response>3</tool_response><tool_call>{}"
    body = json.dumps({"name": "search", "arguments": {"query": query}})
    turn = read(f"<tool_call>\n{body}\n</tool_call>")
    assert turn.calls == (ToolCall("c1", "search", {"query": query}),)
    assert turn.receipts == ()


def test_words_of_the_other_dialect_mean_nothing_here():
    text = 'ACTION: {"tool": "add", "params": {"a": 1, "b": 2}}'
    assert read(text).answer == text
    assert read("ANSWER: three").answer == "ANSWER: three"


def test_the_keys_of_the_other_dialect_are_read_with_receipts():
    turn = read('<tool_call>\n{"tool": "add", "params": {"a": 1, "b": 2}}\n</tool_call>')
    assert turn.calls[0].input == {"a": 1, "b": 2}
    assert [receipt.what for receipt in turn.receipts] == [
        "read the key 'tool' as 'name'",
        "read the key 'params' as 'arguments'",
    ]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", "empty", ["<tool_call>", "plain text"]),
        ("<tool_call>\n</tool_call>", "malformed", ["tool call 1", "no JSON"]),
        ("<tool_call>\nadd 1 and 2\n</tool_call>", "malformed", ["tool call 1", '"arguments"']),
        ('<tool_call>\n{"x": 1}\n</tool_call>', "malformed", ['"name" and "arguments"']),
        (SUM.replace("add", "sub"), "unknown_tool", ["tool call 1", '"sub"']),
        (SUM.replace('"a": 1, ', ""), "bad_params", ["tool call 1", "parameter a"]),
        (SUM.replace("{", "[", 1), "malformed", ["tool call 1"]),
        (f"{SUM}\n<tool_call>\n{{", "truncated", ["tool call 2", "cut off"]),
        (f"<think>\n{SUM}", "malformed", ["</think>"]),
        ("<think>hm</think>", "no_marker", ["neither a tool call nor an answer", "plain text"]),
        ("<tool_response>\n3\n</tool_response>", "invented", ["a tool response", "no tool call"]),
    ],
)
def test_messages_speak_of_tool_calls(text, kind, words):
    error = refused(text)
    assert error.kind == kind
    for word in words:
        assert word in str(error)
    for other in ("ACTION", "ANSWER", "OBSERVATION", "params"):
        assert other not in str(error)


@pytest.mark.parametrize("stop", ["length", "degenerate"])
def test_text_that_was_cut_off_never_yields_a_call(stop):
    assert refused(SUM, stop).kind == "truncated"
    assert "ACTION" not in str(refused(SUM, stop))


def test_an_answer_that_was_cut_off_is_kept_and_one_that_goes_round_is_not():
    assert read("The first of", "length").answer == "The first of"
    assert refused("and so on and so on", "degenerate").kind == "truncated"


def test_reasoning_before_a_turn_is_no_part_of_it():
    assert read(f"<think>\nhm\n</think>\n\n{SUM}").calls[0].name == "add"
    assert read("<think>\nhm\n</think>\n\nIt is 3.").answer == "It is 3."


def test_an_answer_may_hold_any_signs_but_those_of_tags():
    accepts = Grammar(build_grammar([], dialect="hermes").text).accepts
    for text in (
        "1 < 2 <b>bold</b> <to> <tool> <toolbox> <tools> <tool-x>",
        "1 << 2, std::cout << x, <<<, <t<to<too<tool<x, a <t",
        "ends with <",
        "ends with <too<tool",
        "<p>begins with one</p>",
        "<<p",
    ):
        assert accepts(text), text
        assert read(text).answer == text
    for text in ("<tool_call>", "a <tool_call>", "a\n<tool_response>x", "<<tool_call>"):
        assert not accepts(text)
        assert not accepts(f"so: <too{text}")
    for text in (" a", "\na", ""):
        assert not accepts(text)


def test_a_call_without_tags_beside_one_with_tags_is_not_lost():
    other = BODY.replace("1", "7")
    for text, order in ((f"{other}\n{SUM}", [7, 1]), (f"{SUM}\n{other}", [1, 7])):
        turn = read(text)
        assert [call.input["a"] for call in turn.calls] == order
        assert [(receipt.cost, receipt.call) for receipt in turn.receipts] == [(1, "")]
        assert not Grammar(build_grammar(TOOLS, dialect="hermes").text).accepts(text)


def test_calls_without_tags_are_read_at_a_cost_and_never_taken_for_an_answer():
    turn = read(f"{BODY}\n{BODY}")
    assert [call.name for call in turn.calls] == ["add", "add"]
    assert [(receipt.cost, receipt.call) for receipt in turn.receipts] == [(1, "")]
    assert refused(f"{BODY}\n{BODY[:20]}", "length").kind == "truncated"
    assert refused(BODY.replace("add", "sub")).kind == "unknown_tool"
    assert refused(BODY.replace('"a": 1, ', "")).kind == "bad_params"


@pytest.mark.parametrize("text", ['{"name": "Ana", "age": 3}', "{}", '{"arguments": 1}', "{x}"])
def test_other_json_is_an_answer(text):
    assert read(text).answer == text


def test_the_models_own_template_presents_the_tools_where_it_can():
    shown = opening_messages(TOOLS, HERMES)[0].content
    assert '<tools>\n{"name": "add"' in shown
    assert json.dumps(ADD.parameters) in shown
    left = opening_messages(TOOLS, HERMES, in_template=True)[0].content
    assert "<tools>" not in left
    assert "RULES" in left


def test_without_tools_nothing_is_said_about_calls():
    (message,) = opening_messages([], HERMES)
    assert message == Message("system", "You answer questions in plain text.")


def test_each_response_stands_in_tags_of_its_own():
    results = [
        ToolResult(ToolCall("c1", "add", {}), "3", 1),
        ToolResult(ToolCall("c2", "search", {}), "no", 2, "failed"),
    ]
    assert observation_message(results, {"add": 4}, dialect=HERMES) == (
        "<tool_response>\n3\n(first call of add, c1, 4 left)\n</tool_response>\n"
        "<tool_response>\nERROR: no\n(second call of search, c2)\n</tool_response>"
    )


def test_a_name_with_other_letters_is_spelled_as_it_is():
    tool = ToolContract.from_schema("größe", "d", {"properties": {}})
    text = example_call(tool, HERMES)
    assert '"größe"' in text
    assert Grammar(build_grammar([tool], dialect="hermes").text).accepts(text)
