import pytest
from simple_tools import ADD, SEARCH

from runner import ToolContract
from runner.core.contract import Demonstration
from runner.core.conversation import ModelTurn, ToolCall, ToolResult
from runner.protocol import parse_turn
from runner.protocol.dialects import ACTION
from runner.protocol.prompt import (
    kind_of,
    observation_message,
    opening_messages,
    ordinal,
    system_prompt,
)


def result(number=1, name="add", text="3", error=None):
    return ToolResult(ToolCall(f"c{number}", name, {"a": 1}), text, number, error)


def test_the_system_prompt_has_four_parts_with_every_tool_and_parameter():
    text = system_prompt([ADD, SEARCH])
    parts = [text.index(part) for part in ("You are an agent", "TOOLS", "FORMAT", "RULES")]
    assert parts == sorted(parts)
    assert "- add: Add two numbers." in text
    assert "limit (integer, optional)" in text
    assert "query (string)" in text


def test_the_format_shows_one_call_several_calls_and_a_direct_answer():
    text = system_prompt([ADD, SEARCH])
    example = text[text.index("FORMAT") : text.index("RULES")]
    assert example.count("ACTION: ") == 3
    assert example.count("ANSWER: ") == 1


@pytest.mark.parametrize("tools", [[ADD], [ADD, SEARCH], [ADD, SEARCH, ADD]])
def test_every_example_is_itself_a_valid_turn(tools):
    written = [m.content for m in opening_messages(tools) if m.role == "assistant"]
    assert len(written) >= 3
    for text in written:
        assert parse_turn(text, tools).receipts == ()


def test_a_contracts_own_demonstration_is_played_through():
    story = Demonstration(task="Sum?", params={"a": 4, "b": 5}, result="9", answer="It is 9.")
    messages = opening_messages([ADD.model_copy(update={"demonstration": story})])
    assert [(m.role, m.content) for m in messages[3:7]] == [
        ("user", "Sum?"),
        ("assistant", 'ACTION: {"tool": "add", "params": {"a": 4, "b": 5}}'),
        ("user", "OBSERVATION [c1 add]: 9\n(first call of add)"),
        ("assistant", "ANSWER: It is 9."),
    ]


def test_without_tools_only_answers_are_asked_for():
    (message,) = opening_messages([])
    assert "ACTION" not in message.content


def test_observations_name_call_tool_and_number():
    text = observation_message([result(1), result(2, text="5")], {"add": 1})
    assert "OBSERVATION [c1 add]: 3\n(first call of add, 1 left)" in text
    assert "OBSERVATION [c2 add]: 5\n(second call of add, 1 left)" in text


def test_a_repeated_call_is_told():
    assert "nothing new" in observation_message([result(2)], repeated=["c2"])


def test_failed_calls_are_marked():
    assert "]: ERROR: no" in observation_message([result(text="no", error="failed")])


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "first"),
        (2, "second"),
        (10, "tenth"),
        (11, "11th"),
        (12, "12th"),
        (21, "21st"),
        (22, "22nd"),
        (103, "103rd"),
        (111, "111th"),
    ],
)
def test_ordinals(number, word):
    assert ordinal(number) == word


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer"}, "integer"),
        ({"enum": ["a", 1]}, 'one of "a", 1'),
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": ["number", "null"]}, "number or null"),
        ({}, "any value"),
    ],
)
def test_schemas_in_few_words(schema, words):
    assert kind_of(schema) == words


def test_a_turn_reads_back_as_it_was_written():
    turn = ModelTurn("hm", (ToolCall("c1", "search", {"query": 'größe "x"\n'}),))
    assert parse_turn(ACTION.spelled(turn), [SEARCH]) == turn


def test_a_tool_without_examples_gets_a_made_up_one_that_its_contract_allows():
    tool = ToolContract.from_schema(
        "t",
        "d",
        {
            "properties": {
                "color": {"enum": ["red"]},
                "size": {"type": "integer", "minimum": 3},
                "parts": {"type": "array", "items": {"type": "number"}},
            },
            "required": ["color", "size", "parts"],
        },
    )
    (text,) = [m.content for m in opening_messages([tool]) if m.content.startswith("ACTION")]
    assert parse_turn(text, [tool]).calls[0].input == {"color": "red", "size": 3, "parts": [1.5]}
