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
