"""What a value stands for under its schema, wherever it stands."""

from __future__ import annotations

import json

import pytest

from runner.core.contract import ToolContract
from runner.core.errors import ProtocolError
from runner.protocol import parse_turn

INTEGER = {"type": "integer"}


def read(schema, written, **more):
    """The value of a parameter with this schema, written so."""
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"], **more}
    tools = [ToolContract.from_schema("t", "It does something.", parameters)]
    text = f'ACTION: {{"tool": "t", "params": {{"x": {written}}}}}'
    return parse_turn(text, tools).calls[0].input["x"]


def refused(schema, written, **more):
    with pytest.raises(ProtocolError) as error:
        read(schema, written, **more)
    return str(error.value)


@pytest.mark.parametrize(
    ("schema", "written", "expected"),
    [
        (INTEGER, "5.0", 5),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "5.0", 5),
        ({"type": ["integer", "null"]}, "5.0", 5),
        ({"$ref": "#/$defs/n"}, "5.0", 5),
        ({"$ref": "#/$defs/n"}, '"5"', 5),
        ({"type": "array", "items": INTEGER}, '[5.0, "6", 7]', [5, 6, 7]),
        ({"type": "object", "properties": {"n": INTEGER}}, '{"n": "5"}', {"n": 5}),
        ({"type": "object", "additionalProperties": INTEGER}, '{"n": 5.0}', {"n": 5}),
        ({"type": "array", "prefixItems": [INTEGER, {"type": "string"}]}, '["1", 2]', [1, "2"]),
        (
            {"anyOf": [{"type": "object", "properties": {"n": INTEGER}}, {"type": "null"}]},
            '{"n": 1.0}',
            {"n": 1},
        ),
        ({"type": "array", "items": INTEGER}, '"[1, 2]"', [1, 2]),
        ({"type": "array", "items": INTEGER}, '"[1, \\"2\\"]"', [1, 2]),
        ({"enum": [1, 2]}, '"2"', 2),
        ({"type": "boolean"}, '"True"', True),
    ],
)
def test_a_faithful_reading_is_made_at_every_depth(schema, written, expected):
    value = read(schema, written, **{"$defs": {"n": INTEGER}})
    assert value == expected
    assert json.dumps(value) == json.dumps(expected)


@pytest.mark.parametrize(
    ("schema", "written", "expected"),
    [
        ({"type": "number"}, "5.0", 5.0),
        ({"type": "string"}, '"5"', "5"),
        ({"type": "array", "items": {"type": "string"}}, '["5", "true"]', ["5", "true"]),
        ({"type": ["integer", "string"]}, '"5"', "5"),
        ({}, '"5"', "5"),
        ({}, "5.0", 5.0),
    ],
)
def test_what_is_valid_is_not_touched(schema, written, expected):
    assert json.dumps(read(schema, written)) == json.dumps(expected)


def test_a_key_given_twice_in_decoded_json_is_refused():
    schema = {"type": "object", "properties": {"n": INTEGER}}
    assert "x.n is given twice" in refused(schema, '"{\\"n\\": 1, \\"n\\": 2}"')


@pytest.mark.parametrize(
    ("schema", "written", "said"),
    [
        ({"type": "string", "minLength": 2}, '"a"', "at least 2 characters"),
        ({"type": "string", "maxLength": 1}, '"ab"', "at most 1 character,"),
        ({"type": "array", "minItems": 1}, "[]", "at least 1 item,"),
        ({"type": "array", "maxItems": 2}, "[1, 2, 3]", "at most 2 items"),
        ({"type": "array", "uniqueItems": True}, "[1, 1]", "the same item twice"),
        ({"type": "integer", "minimum": 3}, "2", "at least 3, found 2"),
        ({"type": "integer", "maximum": 3}, "4", "at most 3, found 4"),
        ({"type": "integer", "exclusiveMinimum": 3}, "3", "more than 3"),
        ({"type": "integer", "exclusiveMaximum": 3}, "3", "less than 3"),
        ({"type": "integer", "multipleOf": 5}, "7", "a multiple of 5"),
        ({"type": "string", "pattern": "^a"}, '"b"', 'the pattern "^a"'),
        ({"enum": ["on", "off"]}, '"On"', '(did you mean "on"?).'),
        ({"type": "object", "required": ["n"]}, "{}", 'x lacks "n"'),
        (
            {"type": "object", "properties": {"n": {}}, "additionalProperties": False},
            '{"m": 1}',
            'may only have the keys "n"',
        ),
        (
            {"type": "array", "items": {"type": "array", "items": INTEGER}},
            "[[1], [true]]",
            "x[1][0]",
        ),
        ({"not": {"type": "string"}}, '"a"', 'the rule "not"'),
    ],
)
def test_messages_are_in_plain_words(schema, written, said):
    message = refused(schema, written)
    assert said in message
    assert "parameter x" in message


@pytest.mark.parametrize("written", ["-0", "0x10", "+7", "5.0"])
def test_a_tool_gets_plain_integers(written):
    assert type(read(INTEGER, written)) is int


def test_multiples_are_exact():
    assert read({"type": "number", "multipleOf": 0.1}, "0.3") == 0.3
    assert read({"type": "number", "multipleOf": 0.01}, "19.99") == 19.99
    huge = 3 * 10**400
    assert read({"type": "integer", "multipleOf": 3}, str(huge)) == huge
    assert "multiple" in refused({"type": "number", "multipleOf": 0.5}, "1.25")
