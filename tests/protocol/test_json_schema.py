import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from recognizer import Grammar
from shapes import near, schema, written

from runner import ToolContract
from runner.core.errors import ConfigError
from runner.core.gbnf import gbnf_problems
from runner.protocol import build_grammar

TEXT = {"type": "string"}
CLOSED = {"additionalProperties": False}


def built(value_schema, **root):
    parameters = {"properties": {"v": value_schema}, "required": ["v"], **root}
    return build_grammar([ToolContract.from_schema("t", "d", parameters)], thought=False)


def line(text):
    return 'ACTION: {"tool": "t", "params": {"v": ' + text + "}}"


def fits(value_schema, value, **root):
    """Whether the grammar takes the value, given as JSON text or as data."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Grammar(built(value_schema, **root).text).accepts(line(text))


def noted(value_schema, **root):
    """Place and keyword of what is not enforced."""
    found = []
    for note in built(value_schema, **root).notes:
        assert note.endswith(" is not enforced by the grammar, it is checked after")
        place, keyword = note.split(": ")
        found.append((place.partition("parameter ")[2].strip("'"), keyword.split("'")[1]))
    return found


@pytest.mark.parametrize(
    ("value_schema", "good", "bad"),
    [
        ({"minLength": 2}, ['"ab"', "1", "null", "[]", "{}"], ['"a"']),
        ({"properties": {"a": TEXT}}, ["3", '{"a": "x"}', '{"b": 1}'], ['{"a": 1}']),
        ({"type": ["integer", "null"]}, ["1", "null"], ['"1"', "1.5"]),
        ({"type": ["number", "integer"]}, ["1.5", "-2e10"], ["1e999", "01", ".5"]),
        ({"type": "integer"}, ["3", "3.0", "-12", "9" * 30], ["3.5", "1e3", "9" * 31]),
        ({"const": 2}, ["2", "2.0"], ["3", '"2"', "2.5"]),
        ({"const": -2.0}, ["-2", "-2.0"], ["2"]),
        ({"const": 1.5}, ["1.5"], ["1", "1.50"]),
        ({"const": {"a": 1, "b": [True]}}, ['{"a": 1, "b": [true]}', '{"b": [true], "a": 1}'], []),
        ({"enum": [1, "a", None, [0]]}, ["1", '"a"', "null", "[0]", "[0.0]"], ["true", "2"]),
        ({"enum": ["a", 1, "abc"], "type": "string", "maxLength": 2}, ['"a"'], ['"abc"', "1"]),
        ({"type": "string", "nullable": True}, ['"x"', "null"], ["1"]),
        ({"enum": ["a"], "nullable": True}, ['"a"', "null"], ['"b"']),
        (True, ["1", "[[[[1]]]]"], []),
        ({"items": False}, ["[]", "1"], ["[1]"]),
    ],
)
def test_values_of_any_type_are_held_to_the_keywords_of_their_type(value_schema, good, bad):
    assert [text for text in good if not fits(value_schema, text)] == []
    assert [text for text in bad if fits(value_schema, text)] == []
    assert noted(value_schema) == []


@pytest.mark.parametrize(
    ("low", "high"),
    [(5, 30), (-123, 42), (0, 0), (1, None), (None, -9999), (0, 900719925474091), (99, 1001)],
)
def test_bounds_of_integers_are_exact(low, high):
    keywords = {"minimum": low, "maximum": high}
    value_schema = {"type": "integer", **{k: v for k, v in keywords.items() if v is not None}}
    grammar = Grammar(built(value_schema).text)
    near_by = {(bound or 0) + step for bound in (low, high) for step in (-100, -11, -1, 0, 1, 9)}
    for number in near_by:
        inside = (low is None or number >= low) and (high is None or number <= high)
        assert grammar.accepts(line(str(number))) == inside
        assert not grammar.accepts(line(f"0{number}"))


def test_exclusive_and_fractional_bounds_of_integers_are_exact():
    value_schema = {"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 4}
    assert [n for n in range(-1, 6) if fits(value_schema, n)] == [2, 3]


def test_bounds_of_numbers_are_left_to_the_check():
    assert noted({"type": "number", "minimum": 0}) == [("v", "minimum")]


def test_properties_come_in_order_with_optional_ones_in_place():
    value_schema = {"type": "object", "properties": dict.fromkeys("abc", TEXT), "required": ["b"]}
    assert fits(value_schema, {"a": "", "b": "", "c": ""})
    assert fits(value_schema, {"b": ""})
    assert fits(value_schema, {"b": "", "c": ""})
    assert not fits(value_schema, {"b": "", "a": ""})
    assert not fits(value_schema, {"a": "", "c": ""})
    assert not fits(value_schema, {})


def test_an_open_object_takes_others_but_no_named_one_twice():
    value_schema = {"type": "object", "properties": {"ab": {"type": "integer"}, "abc": TEXT}}
    for key in ("a", "abcd", "b", "", "é", 'q"', "\n", "x" * 128):
        assert fits(value_schema, {key: [1]}), key
        assert fits(value_schema, {"ab": 1, key: [1], "z": {}}), key
    assert not fits(value_schema, {"ab": "x"})
    assert not fits(value_schema, {"z": 1, "ab": "x"})
    assert not fits(value_schema, r'{"\u0061b": "x"}')
    assert not fits(value_schema, r'{"a\u0062": "x"}')


def test_keys_that_need_escapes_are_told_from_others():
    value_schema = {"properties": {'q"t': TEXT, "a\n": TEXT, "a\x01": TEXT, "b\\s": TEXT}}
    for key in value_schema["properties"]:
        assert fits(value_schema, {key: "x"})
        assert not fits(value_schema, {key: 1})
    for key in ("q", 'q"', "a", "a\t", "a\x02", "b\\", "b\\t", "\\"):
        assert fits(value_schema, {key: 1}), key
    assert not fits(value_schema, r'{"a\u000a": 1}')


def test_other_properties_are_held_to_their_schema():
    value_schema = {"properties": {"a": TEXT}, "additionalProperties": {"type": "integer"}}
    assert fits(value_schema, {"a": "x", "b": 1})
    assert not fits(value_schema, {"a": "x", "b": "y"})
    assert not fits({"properties": {"a": TEXT}, **CLOSED}, {"b": 1})
    assert not fits({"properties": {"a": False}}, {"a": 1})


def test_required_names_without_a_schema_must_be_there_in_any_order():
    value_schema = {"type": "object", "properties": {"a": TEXT}, "required": ["x", "y"]}
    assert fits(value_schema, {"a": "", "x": 1, "y": 2})
    assert fits(value_schema, {"y": 2, "other": 0, "x": 1})
    assert not fits(value_schema, {"a": "", "x": 1})


def test_the_params_are_closed_unless_they_say_otherwise():
    for more, taken in (({}, False), ({"additionalProperties": True}, True)):
        assert Grammar(built(TEXT, **more).text).accepts(line('"x", "w": 1')) == taken


def test_params_with_conditions_at_the_top_are_held_too():
    parameters = {
        "properties": {"a": TEXT, "b": TEXT},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    grammar = build_grammar([ToolContract.from_schema("t", "d", parameters)])
    assert grammar.notes == (
        "tool 't': 'oneOf' is not enforced by the grammar, it is checked after",
    )
    reader = Grammar(grammar.text)
    assert reader.accepts('ACTION: {"tool": "t", "params": {"b": "x"}}')
    assert not reader.accepts('ACTION: {"tool": "t", "params": {}}')


@pytest.mark.parametrize(
    ("value_schema", "good", "bad"),
    [
        (
            {"prefixItems": [TEXT, {"type": "integer"}]},
            [[], ["a"], ["a", 1, {}]],
            [[1], ["a", "b"]],
        ),
        ({"prefixItems": [TEXT, TEXT], "items": False}, [["a", "b"]], [["a", "b", "c"]]),
        ({"prefixItems": [TEXT], "items": {"type": "null"}, "minItems": 2}, [["a", None]], [["a"]]),
        ({"type": "array", "minItems": 2, "maxItems": 3}, [[1, 2], [1, 2, 3]], [[1], [1, 2, 3, 4]]),
        ({"type": "array", "prefixItems": [True, False]}, [[1]], [[1, 2]]),
        ({"type": "array", "maxItems": 0}, [[]], [[1]]),
        ({"type": "array", "items": TEXT, "minItems": 100}, [["a"] * 100], [["a"] * 99]),
        ({"type": "array", "items": TEXT, "maxItems": 1000}, [["a"] * 1000], [["a"] * 1001]),
        ({"type": "array", "items": TEXT}, [["a"] * 64], [["a"] * 65]),
    ],
)
def test_arrays_are_held_to_places_and_sizes(value_schema, good, bad):
    assert [value for value in good if not fits(value_schema, value)] == []
    assert [value for value in bad if fits(value_schema, value)] == []
    assert noted(value_schema) == []


@pytest.mark.parametrize(
    ("low", "high"), [(0, 5), (3, 3), (0, 2500), (1990, 2300), (2000, 2000), (250, 5000)]
)
def test_lengths_of_texts_are_exact_above_what_one_repetition_can_hold(low, high):
    grammar = Grammar(built({"type": "string", "minLength": low, "maxLength": high}).text)
    for size in {low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1}:
        if size >= 0:
            assert grammar.accepts(line('"' + "x" * size + '"')) == (low <= size <= high)


def test_a_text_without_a_bound_cannot_run_for_ever():
    assert fits(TEXT, "x" * 0 + '"' + "x" * 1900 + '"')
    assert not fits(TEXT, '"' + "x" * 1901 + '"')


def test_conjunctions_are_merged():
    value_schema = {
        "properties": {"a": {"type": "integer", "minimum": 3}},
        "allOf": [
            {"properties": {"a": {"maximum": 5}, "b": TEXT}, "required": ["a"]},
            {"type": "object"},
        ],
    }
    assert fits(value_schema, {"a": 4, "b": "x"})
    assert not fits(value_schema, {"a": 6})
    assert not fits(value_schema, {"b": "x"})
    assert not fits(value_schema, {"a": 4, "b": 1})
    assert noted(value_schema) == []


def test_additional_properties_count_for_the_names_of_their_own_branch():
    value_schema = {
        "type": "object",
        "allOf": [{"properties": {"a": {}}}],
        "additionalProperties": {"type": "boolean"},
    }
    assert fits(value_schema, {"a": True})
    assert not fits(value_schema, {"a": 1})


def test_keywords_beside_a_choice_or_a_reference_count():
    beside = {"type": "string", "anyOf": [{"maxLength": 2}, {"minLength": 4}]}
    assert [text for text in ("ab", "abc", "abcd") if fits(beside, json.dumps(text))] == [
        "ab",
        "abcd",
    ]
    assert not fits(beside, "1")
    definitions = {"$defs": {"List": {"type": "array"}}}
    assert fits({"$ref": "#/$defs/List", "maxItems": 1}, [1], **definitions)
    assert not fits({"$ref": "#/$defs/List", "maxItems": 1}, [1, 2], **definitions)


def test_one_of_is_held_where_options_exclude_each_other():
    by_kind = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, kind: TEXT},
            "required": ["kind"],
        }
        for kind in ("mail", "post")
    ]
    for options in ([TEXT, {"type": "null"}], [{"const": "a"}, {"const": "b"}], by_kind):
        assert noted({"oneOf": options}) == []
    assert noted({"oneOf": [TEXT, {"minLength": 2}]}) == [("v", "oneOf")]
    assert not fits({"oneOf": by_kind}, {"kind": "fax"})


def test_too_many_combinations_are_weakened_not_multiplied():
    many = {"allOf": [{"anyOf": [{"minLength": n}, {"minItems": n}]} for n in range(12)]}
    assert ("v", "anyOf") in noted(many)
    assert len(built(many).text) < 5000


def test_a_long_list_of_words_with_titles_is_a_list_of_words():
    options = [{"const": f"word-{n}", "title": "T"} for n in range(300)]
    assert noted({"type": "string", "oneOf": options}) == []
    assert fits({"oneOf": options}, '"word-299"')
    assert not fits({"oneOf": options}, '"word-300"')
    twice = {"oneOf": [{"const": "a"}, {"const": "a"}, {"const": "b"}]}
    assert not fits(twice, '"a"')


def test_recursion_is_followed_for_some_levels_and_noted():
    node = {"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}}, **CLOSED}
    root = {"$defs": {"Node": node}}
    assert fits({"$ref": "#/$defs/Node"}, {"n": {"n": {"n": {}}}}, **root)
    assert not fits({"$ref": "#/$defs/Node"}, {"n": {"n": {"m": {}}}}, **root)
    ((place, keyword),) = noted({"$ref": "#/$defs/Node"}, **root)
    assert (place, keyword) == ("v.n.n.n.n", "recursive $ref #/$defs/Node")


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("not", {"type": "null"}),
        ("uniqueItems", True),
        ("contains", {"type": "integer"}),
        ("multipleOf", 3),
        ("patternProperties", {"^x": {}}),
        ("propertyNames", {"maxLength": 3}),
        ("minProperties", 1),
        ("dependentRequired", {"a": ["b"]}),
        ("unevaluatedProperties", False),
        ("pattern", "(?=x)"),
    ],
)
def test_what_a_grammar_cannot_say_is_noted_at_its_place_alone(keyword, value):
    value_schema = {"properties": {"x": {"items": {keyword: value}}, "y": {"type": "integer"}}}
    assert noted(value_schema) == [("v.x[]", keyword)]
    assert not fits(value_schema, {"y": "no"})


def test_keywords_that_ask_for_nothing_or_for_other_types_are_not_noted():
    idle = {"uniqueItems": False, "minContains": 2, "if": {"type": "null"}, "propertyNames": True}
    assert noted(idle) == []
    assert noted({"type": "string", "multipleOf": 3, "contains": {}}) == []
    assert noted({"format": "date", "default": 3, "title": "T", "x-order": 1}) == []


def test_pattern_properties_exempt_their_names_from_the_rest():
    value_schema = {"patternProperties": {"^x": {}}, **CLOSED}
    assert fits(value_schema, {"x1": 1})
    assert noted(value_schema) == [("v", "patternProperties"), ("v", "additionalProperties")]


@pytest.mark.parametrize(
    "value_schema",
    [
        False,
        {"enum": []},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "array", "minItems": 3, "maxItems": 2},
        {"allOf": [TEXT, {"type": "integer"}]},
        {"type": "string", "enum": [1, 2]},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
    ],
)
def test_a_tool_that_no_call_can_satisfy_is_left_out_by_name_and_the_others_stay(value_schema):
    never = ToolContract.from_schema(
        "never", "d", {"properties": {"v": value_schema}, "required": ["v"]}
    )
    fine = ToolContract.from_schema("fine", "d", {})
    grammar = build_grammar([never, fine])
    assert grammar.left_out == ("never",)
    assert "tool 'never' is left out" in grammar.notes[0]
    assert Grammar(grammar.text).accepts('ACTION: {"tool": "fine", "params": {}}')
    assert "never" not in grammar.text


def test_a_tool_too_large_for_a_grammar_is_left_out_by_name():
    huge = ToolContract.from_schema("huge", "d", {"properties": {"v": {"enum": ["x" * 1_000_000]}}})
    grammar = build_grammar([huge, ToolContract.from_schema("fine", "d", {})])
    assert grammar.left_out == ("huge",)
    assert "fine" in grammar.text


def test_a_property_that_can_have_no_value_is_left_out_where_it_is_optional():
    assert fits({"type": "object", "properties": {"a": False}}, {})
    assert not fits({"type": "object", "properties": {"a": False}}, {"a": 1})


def test_a_grammar_is_made_once_for_the_same_contracts():
    def tools():
        return [ToolContract.from_schema("t", "d", {"properties": {"a": TEXT}})]

    assert build_grammar(tools()) is build_grammar(tools())
    assert build_grammar(tools()) is not build_grammar(tools(), max_calls=1)


def test_names_of_rules_say_what_they_are_for():
    text = built({"properties": {"unit price": {"minimum": 3, "type": "integer"}}}).text
    assert "-unit-price ::=" in text


REFERENCES = ("#/$defs/A", "#/$defs/B")


def drawn(seed):
    """A contract, its grammar, and a check of params; None where the contract is refused."""
    rng = random.Random(seed)
    root = {
        "properties": {"v": schema(rng, 3, REFERENCES)},
        "required": ["v"],
        "additionalProperties": False,
        "$defs": {"A": schema(rng, 2, REFERENCES), "B": schema(rng, 1, REFERENCES)},
    }
    try:
        tool = ToolContract.from_schema("t", "d", root)
    except ConfigError:
        return None
    grammar = build_grammar([tool], thought=False)
    return rng, root, grammar, Draft202012Validator(tool.parameters)


@given(st.integers(0, 2**32))
@settings(max_examples=150)
def test_the_grammar_takes_just_the_valid_values(seed):
    found = drawn(seed)
    if found is None:
        return
    rng, root, grammar, validator = found
    reader = Grammar(grammar.text)
    weakened = any("not enforced" in note for note in grammar.notes)
    for _ in range(8):
        value = near(rng, root["properties"]["v"], root)
        taken = reader.accepts(line(written(value, root["properties"]["v"], root)))
        valid = validator.is_valid({"v": value})
        assert taken if valid else weakened or not taken


@given(st.integers(0, 2**32))
@settings(max_examples=150)
def test_whatever_the_grammar_writes_is_valid_where_nothing_is_noted(seed):
    found = drawn(seed)
    if found is None or found[2].notes:
        return
    rng, _, grammar, validator = found
    reader = Grammar(grammar.text)
    for _ in range(4):
        call = json.loads(reader.sample(rng, "call"))
        assert validator.is_valid(call["params"])


@given(st.integers(0, 2**32))
@settings(max_examples=100)
def test_every_grammar_is_portable(seed):
    found = drawn(seed)
    if found is not None:
        assert gbnf_problems(found[2].text) == []


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_another_engine_reads_every_grammar(seed):
    llguidance = pytest.importorskip("llguidance")
    found = drawn(seed)
    if found is not None:
        grammar = llguidance.grammar_from("gbnf", found[2].text)
        assert llguidance.LLMatcher.validate_grammar(grammar) == ""
