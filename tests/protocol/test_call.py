"""From what an ACTION holds to a contract and its input: no parameter is lost or made up."""

from __future__ import annotations

import json

import pytest

from runner.core.contract import ToolContract
from runner.core.errors import ProtocolError
from runner.protocol import parse_turn


def tool(name, required=(), *, extra=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolContract.from_schema(name, "It does something.", {**schema, **(extra or {})})


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS = [
    tool("search", ["query"], query=STRING, limit=INTEGER),
    tool("list_files", path=STRING, recursive={"type": "boolean"}),
    tool("now"),
    tool("send", ["to", "text"], to=STRING, text=STRING),
    tool("open", extra={"additionalProperties": True}),
    tool("tagged", extra={"patternProperties": {"^x-": STRING}}),
    tool("tell", ["input"], input=STRING),
    tool("mark", id=INTEGER),
]


def read(call):
    text = call if isinstance(call, str) else json.dumps(call)
    turn = parse_turn(f"ACTION: {text}", TOOLS)
    (only,) = turn.calls
    return only.name, only.input, max((receipt.cost for receipt in turn.receipts), default=0)


def refused(call):
    with pytest.raises(ProtocolError) as error:
        read(call)
    return str(error.value)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"tool": "list_files", "Params": {"path": "src"}}, {"path": "src"}),
        ({"tool": "list_files", "PARAMETERS": {"path": "src"}}, {"path": "src"}),
        ({"tool": "list_files", "inputs": {"path": "src"}}, {"path": "src"}),
        ({"Tool": "list_files", "params": {"path": "src"}}, {"path": "src"}),
        (
            {"tool": "list_files", "params": {"path": "src"}, "thought": "look", "id": 1},
            {"path": "src"},
        ),
        ({"tool": "list_files"}, {}),
    ],
)
def test_other_spellings_of_the_keys_are_read_at_no_cost(call, expected):
    assert read(call) == ("list_files", expected, 0)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"tool": "list_files", "path": "src"}, ("list_files", {"path": "src"}, 1)),
        ({"tool": "open", "a": 1, "b": {"c": 2}}, ("open", {"a": 1, "b": {"c": 2}}, 1)),
        ({"tool": "tagged", "x-a": "1"}, ("tagged", {"x-a": "1"}, 1)),
        ({"tool": "tell", "input": "hello"}, ("tell", {"input": "hello"}, 1)),
        ({"tool": "mark", "id": 4}, ("mark", {"id": 4}, 1)),
    ],
)
def test_parameters_beside_the_name_are_all_taken(call, expected):
    assert read(call) == expected


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"tool": "list_files", "prams": {"path": "src"}}, "prams"),
        ({"tool": "list_files", "options": {"path": "src"}}, "options"),
        ({"tool": "now", "timezone": "UTC"}, "timezone"),
        ({"tool": "tagged", "y-a": "1"}, "y-a"),
        ({"tool": "list_files", "params": {"path": "src"}, "recursive": True}, "recursive"),
        ({"tool": "list_files", "params": {"path": "src"}, "Recursive": True}, "Recursive"),
        ({"tool": "list_files", "params": {"path": "src"}, "dir": "lib"}, "dir"),
        ({"tool": "list_files", "params": {}, "tool_calls": [{"tool": "now"}]}, "tool_calls"),
        ({"tool": "mark", "params": {}, "id": 4}, "id"),
        ({"tool": "send", "to": "a"}, "text"),
        ('{"tool": "search", "params": {"query": "x"}}, limit: 5', "limit"),
        ('{"tool": "search", "params": {"query": "x"}} with limit 5', "limit"),
        ('{"tool": "list_files", "params": {}} path: src', "path"),
        ('{"tool": "list_files", }"pa', "pa"),
        ('{"tool": "list_files"} params', "params"),
        ('{"tool": "list_files"}, "', '", '),
        ('{"tool": "now"} please', "please"),
    ],
)
def test_no_parameter_is_lost(call, named):
    assert named in refused(call)


@pytest.mark.parametrize(
    "call",
    [
        '{"tool": "send", "to": "a", "to": "b", "text": "x"}',
        '{"tool": "send", "params": "{\\"to\\": \\"a\\", \\"to\\": \\"b\\", \\"text\\": \\"x\\"}"}',
    ],
)
def test_a_parameter_given_twice_is_refused_wherever_it_stands(call):
    assert "to is given twice" in refused(call)


def test_only_what_is_missing_is_called_missing():
    message = refused({"tool": "send", "to": "a"})
    assert "needs the parameter text" in message
    assert "parameter to" not in message


@pytest.mark.parametrize("text", ["elk", "elk: a deer", "C:\\elk", "5", "a - b"])
def test_text_in_place_of_params_is_the_one_that_is_needed(text):
    assert read({"tool": "search", "params": text}) == ("search", {"query": text}, 1)


@pytest.mark.parametrize(
    "text",
    [
        "x, limit: 5", "Query: x", "(query: x)", "--query x", "query=x", "'query': x",
        "", "  ", "null", "None", "undefined", "<query>", "...",
    ],
)  # fmt: skip
def test_text_that_is_more_than_a_value_is_refused(text):
    assert "must be an object" in refused({"tool": "search", "params": text}) or not text.strip()


def test_names_in_messages_are_short():
    message = refused({"tool": "x" * 5000, "params": {}})
    assert len(message) < 500
    message = refused({"x" * 5000: 1, "tool": "now"})
    assert len(message) < 500


def test_half_a_surrogate_pair_in_a_name_gives_a_message_that_can_be_written():
    for call in ('{"tool": "\\ud83c", "params": {}}', '{"tool": "now", "params": {"\\ud83c": 1}}'):
        refused(call).encode("utf-8")
