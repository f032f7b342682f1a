import pytest

from runner import ToolContract
from runner.core.contract import Effect
from runner.core.errors import ConfigError

EMPTY = {"type": "object", "properties": {}}


def test_a_contract_keeps_the_order_of_its_parameters():
    contract = ToolContract.from_schema(
        "t", "d", {"properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
    )
    assert list(contract.properties) == ["z", "a"]
    assert contract.required == ()
    assert contract.effect is Effect.READ


@pytest.mark.parametrize("name", ["get.time", "get_time", "查询", "a" * 128, "mcp-x/y"])
def test_names_as_people_give_them_are_taken(name):
    assert ToolContract.from_schema(name, "d", EMPTY).name == name


@pytest.mark.parametrize("name", ["", "two words", 'quo"te', "a" * 129, "{x}", "a:b"])
def test_names_that_would_break_a_prompt_are_refused(name):
    with pytest.raises(ConfigError, match="not usable"):
        ToolContract.from_schema(name, "d", EMPTY)


def test_parameters_must_be_an_object():
    with pytest.raises(ConfigError, match="type 'array'"):
        ToolContract.from_schema("t", "d", {"type": "array"})


def test_a_required_parameter_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match="'path'"):
        ToolContract.from_schema("t", "d", {"properties": {}, "required": ["path"]})


def test_a_contract_cannot_be_changed():
    contract = ToolContract.from_schema("t", "d", EMPTY)
    with pytest.raises(ValueError, match="frozen"):
        contract.name = "other"


@pytest.mark.parametrize(
    "property_schema",
    [
        {"type": "any"},
        {"type": "string", "pattern": "["},
        {"type": "string", "maxLength": None},
        {"type": "integer", "minimum": "1"},
        {"type": "number", "multipleOf": 0},
        {"$ref": "#"},
        {"$ref": "#/properties/a"},
        {"$ref": "#/$defs/None"},
        {"$ref": "https://example.org/schema"},
        {"enum": ["\ud800"]},
    ],
)
def test_schemas_that_cannot_be_used_are_refused_when_the_contract_is_made(property_schema):
    schema = {"properties": {"x": property_schema}}
    with pytest.raises(ConfigError, match="parameters"):
        ToolContract.from_schema("t", "d", schema)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"$defs": {"A": {"$ref": "#/$defs/A"}}}, "only leads back to itself"),
        (
            {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}}},
            "itself",
        ),
        ({"$defs": {"A": {"$dynamicRef": "#x"}}}, "dynamicRef"),
        ({"$defs": {"A": {"$id": "a", "items": {"$ref": "#/$defs/A"}}}}, r"\$id 'a'"),
        ({"$defs": {"A": {"patternProperties": {"[": {}}}}}, "pattern"),
    ],
)
def test_references_that_cannot_be_followed_are_refused_with_their_name(root, message):
    with pytest.raises(ConfigError, match=message):
        ToolContract.from_schema("t", "d", {"properties": {"x": {"$ref": "#/$defs/A"}}, **root})


@pytest.mark.parametrize("keyword", ["$ref", "pattern", "default", "enum", "properties", "$id"])
def test_parameters_may_be_named_like_keywords(keyword):
    part = {"type": "object", "properties": {keyword: {"type": "string"}}}
    contract = ToolContract.from_schema("t", "d", {"properties": {keyword: part}})
    assert list(contract.properties) == [keyword]
    bad = {"properties": {keyword: {"$ref": "https://example.org/schema"}}}
    with pytest.raises(ConfigError, match="cannot be followed"):
        ToolContract.from_schema("t", "d", {"properties": {"x": bad}})


def test_names_in_references_may_be_escaped():
    definitions = {"a/b": {}, "c~d": {}, "e%f": {}, 'g"h': {}}
    names = ["a~1b", "c~0d", "e%25f", "g%22h"]
    properties = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    ToolContract.from_schema("t", "d", {"properties": properties, "$defs": definitions})


def test_nullable_is_said_in_json_schema_so_that_grammar_and_check_agree():
    given = {
        "a": {"type": "string", "nullable": True},
        "b": {"enum": ["x"], "type": "string", "nullable": True},
        "c": {"$ref": "#/$defs/C", "description": "c", "nullable": True},
        "d": {"type": "array", "items": {"type": ["integer"], "nullable": True}},
        "e": {"type": "string", "nullable": False},
        "nullable": {"type": "boolean"},
    }
    root = {"properties": given, "$defs": {"C": {"type": "string"}}, "nullable": True}
    contract = ToolContract.from_schema("t", "d", root)
    assert contract.parameters["type"] == "object"
    assert contract.properties == {
        "a": {"type": ["string", "null"]},
        "b": {"enum": ["x", None], "type": ["string", "null"]},
        "c": {"description": "c", "anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}]},
        "d": {"type": "array", "items": {"type": ["integer", "null"]}},
        "e": {"type": "string", "nullable": False},
        "nullable": {"type": "boolean"},
    }
