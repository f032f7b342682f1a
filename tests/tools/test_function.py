"""A typed function becomes a tool: its contract, its calls, and what it cannot be."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, field_validator

from runner.core.contract import Effect
from runner.core.errors import ConfigError, ErrorKind, ToolError
from runner.tools import FunctionTool, tool


class Unit(Enum):
    METRE = "m"
    FOOT = "ft"


class Point(BaseModel):
    x: int
    y: int = 0

    @field_validator("x")
    @classmethod
    def check_x(cls, x: int) -> int:
        if x == 13:
            raise ValueError("must not be 13")
        return x


class Tree(BaseModel):
    title: str
    children: list[Tree] = []


@dataclass
class Pair:
    left: int
    right: str


@tool
def forecast(
    city: str,
    days: Annotated[int, Field(description="how many days", ge=1, le=7)] = 3,
    unit: Literal["C", "F"] = "C",
) -> str:
    """Tell the weather
    of the next days.

    Longer explanations are for people.
    """
    return f"{city} {days} {unit}"


def refused(function: Callable[..., Any], **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        tool(**options)(function)
    assert caught.value.hint or "example" in str(caught.value)
    return caught.value


def failed(made: FunctionTool, params: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        made(params)
    return caught.value


def test_the_contract_comes_from_the_signature_and_the_docstring() -> None:
    contract = forecast.contract
    assert contract.name == "forecast"
    assert contract.description == "Tell the weather of the next days."
    assert (contract.version, contract.effect) == ("1.0", Effect.READ)
    assert contract.limits.max_calls is None
    assert contract.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string"},
            "days": {
                "type": "integer",
                "description": "how many days",
                "minimum": 1,
                "maximum": 7,
                "default": 3,
            },
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        },
        "required": ["city"],
    }
    assert list(contract.properties) == ["city", "days", "unit"]


def test_options_of_the_decorator_go_into_the_contract() -> None:
    @tool(
        name="pay",
        description="Pay a bill.",
        version="1.1",
        effect=Effect.WRITE,
        max_calls=3,
        max_result_chars=500,
        result="the receipt",
        errors=[ErrorKind.DENIED],
        examples=[{"amount": 5}],
    )
    def _pay(amount: int) -> None: ...

    contract = _pay.contract
    assert (contract.name, contract.description, contract.version) == ("pay", "Pay a bill.", "1.1")
    assert (contract.effect, contract.errors) == (Effect.WRITE, (ErrorKind.DENIED,))
    assert (contract.limits.max_calls, contract.limits.max_result_chars) == (3, 500)
    assert (contract.result, contract.examples) == ("the receipt", ({"amount": 5},))


def test_the_plain_function_stays_at_hand() -> None:
    assert forecast.function("Oslo") == "Oslo 3 C"
    assert forecast({"city": "Oslo"}) == "Oslo 3 C"


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Unit, {"type": "string", "enum": ["m", "ft"]}),
        (list[Unit], {"type": "array", "items": {"type": "string", "enum": ["m", "ft"]}}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            },
        ),
    ],
    ids=str,
)
def test_types_become_plain_schemas(annotation: Any, schema: dict[str, Any]) -> None:
    def take(value: Any) -> None:
        """Take a value."""

    take.__annotations__["value"] = annotation
    contract = tool(take).contract
    assert contract.properties == {"value": schema}
    assert contract.required == ("value",)
    assert "$defs" not in contract.parameters


@pytest.mark.parametrize(
    "annotation",
    [
        Optional[int],  # noqa: UP045 - both spellings are in use
        int | None,
        Annotated[int | None, "number"],
    ],
)
def test_what_may_be_none_may_be_left_out(annotation: Any) -> None:
    def take(value: Any) -> str:
        """Take a value."""
        return repr(value)

    take.__annotations__["value"] = annotation
    made = tool(take)
    assert made.contract.parameters["properties"] == {"value": {"type": "integer"}}
    assert made.contract.required == ()
    assert [made({}), made({"value": None}), made({"value": 5})] == ["None", "None", "5"]


def test_a_default_of_none_needs_no_second_null() -> None:
    @tool
    def take(value: Annotated[int | None, Field(description="number")] = None) -> str:
        """Take a value."""
        return repr(value)

    assert take.contract.properties == {"value": {"type": "integer", "description": "number"}}
    assert [take({}), take({"value": None}), take({"value": 5})] == ["None", "None", "5"]


def test_a_null_that_is_no_default_stays() -> None:
    @tool
    def take(value: int | None = 5) -> str:
        """Take a value."""
        return repr(value)

    assert take.contract.properties["value"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": 5,
    }
    assert [take({}), take({"value": None})] == ["5", "None"]


def test_a_type_that_holds_itself_keeps_its_definition() -> None:
    @tool
    def count(tree: Tree) -> int:
        """Count the nodes."""
        return 1 + len(tree.children)

    assert count.contract.properties == {"tree": {"$ref": "#/$defs/Tree"}}
    assert count.contract.parameters["$defs"] == {
        "Tree": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "children": {
                    "type": "array",
                    "items": {"$ref": "#/$defs/Tree"},
                    "default": [],
                },
            },
            "required": ["title"],
        }
    }
    assert count({"tree": {"title": "a", "children": [{"title": "b"}]}}) == "2"


def test_parameters_may_have_any_name() -> None:
    @tool
    def odd(json: str, _x: int, model_config: int = 1, p0: int = 2, copy: bool = False) -> str:
        """Take odd names."""
        return f"{json} {_x} {model_config} {p0} {copy}"

    assert list(odd.contract.properties) == ["json", "_x", "model_config", "p0", "copy"]
    assert odd({"json": "a", "_x": 3, "p0": 4}) == "a 3 1 4 False"


def test_arguments_arrive_as_objects() -> None:
    seen: list[Any] = []

    @tool
    def take(point: Point, unit: Unit, points: list[Point], path: Path) -> None:
        """Take objects."""
        seen.extend([point, unit, points, path])

    params = {"point": {"x": 1}, "unit": "ft", "points": [{"x": 2, "y": 3}], "path": "a/b"}
    take(params)
    assert seen == [Point(x=1), Unit.FOOT, [Point(x=2, y=3)], Path("a/b")]
    assert params["point"] == {"x": 1}


def test_what_is_left_out_is_left_to_the_function() -> None:
    marker = object()

    @tool
    def take(value: Any = marker, number: int = 5) -> bool:
        """Take a value."""
        return value is marker and number == 5

    assert take({}) == "true"
    assert "default" not in take.contract.properties["value"]


def test_bound_methods_and_partial_functions_are_functions_too() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = 0

        def add(self, number: int) -> int:
            """Add to the total."""
            self.total += number
            return self.total

    counter = Counter()
    add = tool(counter.add)
    assert (add({"number": 2}), add({"number": 3}), counter.total) == ("2", "5", 5)
    partial = functools.partial(forecast.function, "Oslo")
    made = tool(partial)
    assert made.contract.description == forecast.contract.description
    assert list(made.contract.properties) == ["days", "unit"]
    assert made({"days": 2}) == "Oslo 2 C"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "forecast: parameter city is missing"),
        ({"city": 5}, "forecast: parameter city must be a valid string, found 5"),
        (
            {"city": "Oslo", "days": 9},
            "forecast: parameter days must be less than or equal to 7, found 9",
        ),
        (
            {"city": "Oslo", "unit": "K"},
            "forecast: parameter unit must be 'C' or 'F', found \"K\"",
        ),
        (
            {"city": "Oslo", "day": 1},
            "forecast: there is no parameter day, the parameters are: city, days, unit",
        ),
    ],
)
def test_a_wrong_param_is_named(params: dict[str, Any], message: str) -> None:
    error = failed(forecast, params)
    assert (str(error), error.kind) == (message, ErrorKind.INVALID_INPUT)


def test_messages_about_params_stay_short() -> None:
    @tool
    def take(points: list[Point]) -> None:
        """Take points."""

    long = "x" * 10_000
    message = str(failed(take, {"points": [{"x": long}, {"x": 13}, {}, {}, {}]}))
    assert "points.0.x must be a valid integer" in message
    assert "points.1.x must not be 13, found 13" in message
    assert "points.2.x is missing; and 2 more" in message
    assert len(message) < 400


def test_wrong_params_never_reach_the_function() -> None:
    @tool
    def explode(number: int) -> None:
        """Explode."""
        raise AssertionError("it was called")

    assert failed(explode, {"number": "many"}).kind is ErrorKind.INVALID_INPUT
    assert failed(explode, ["number"]).kind is ErrorKind.INVALID_INPUT  # type: ignore[arg-type]
    assert failed(explode, {"number": 1, "\ud800": 2}).kind is ErrorKind.INVALID_INPUT


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, "done"),
        (42, "42"),
        (0.5, "0.5"),
        (True, "true"),
        ({"name": "Zoë", "ids": [1, 2]}, '{"name":"Zoë","ids":[1,2]}'),
        ([1, "a", None], '[1,"a",null]'),
        ((1, 2), "[1,2]"),
        ([Pair(1, "a")], '[{"left":1,"right":"a"}]'),
        (Point(x=1), '{"x":1,"y":0}'),
        ([Point(x=1)], '[{"x":1,"y":0}]'),
        ({"at": Path("a/b"), "unit": Unit.FOOT}, '{"at":"a/b","unit":"ft"}'),
        (Unit.METRE, "m"),
        (Decimal("1.50"), "1.50"),
        (Path("a/b"), "a/b"),
        ([object], "[\"<class 'object'>\"]"),
    ],
    ids=repr,
)
def test_results_become_text(result: Any, text: str) -> None:
    @tool
    def give() -> Any:
        """Give a value."""
        return result

    assert give({}) == text


def test_a_tool_error_passes_through() -> None:
    error = ToolError("not today", kind=ErrorKind.DENIED, hint="tomorrow")

    @tool
    def refuse() -> None:
        """Refuse."""
        raise error

    assert failed(refuse, {}) is error


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ValueError("too low"), "ValueError: too low"),
        (KeyError("name"), "KeyError: 'name'"),
        (RuntimeError(), "RuntimeError"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
    ids=repr,
)
def test_any_other_failure_becomes_a_tool_error(problem: Exception, message: str) -> None:
    @tool
    def fail() -> None:
        """Fail."""
        raise problem

    error = failed(fail, {})
    assert (str(error), error.kind) == (message, ErrorKind.FAILED)
    assert error.__cause__ is problem


def test_a_result_that_has_no_text_is_a_tool_error() -> None:
    loop: list[Any] = []
    loop.append(loop)

    @tool
    def give() -> Any:
        """Give a list that holds itself."""
        return loop

    assert failed(give, {}).kind is ErrorKind.FAILED


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit])
def test_an_interruption_passes_through(problem: type[BaseException]) -> None:
    @tool
    def stop() -> None:
        """Stop."""
        raise problem

    with pytest.raises(problem):
        stop({})


def test_a_parameter_needs_an_annotation() -> None:
    def search(query) -> None:  # type: ignore[no-untyped-def]
        """Search."""

    error = refused(search)
    assert "'search'" in str(error)
    assert "'query'" in str(error)
    assert "query: str" in error.hint


def test_a_method_needs_its_object() -> None:
    class Shop:
        def buy(self, item: str) -> None:
            """Buy."""

    assert "bound method" in refused(Shop.buy).hint


def test_parameters_must_be_known_by_name() -> None:
    def stars(*words: str) -> None:
        """Take words."""

    def double(**options: str) -> None:
        """Take options."""

    def unnamed(word: str, /) -> None:
        """Take a word."""

    assert "'words' is *words" in str(refused(stars))
    assert "'options' is **options" in str(refused(double))
    assert "'word' is positional-only" in str(refused(unnamed))


@pytest.mark.parametrize("docstring", [None, "", "  \n "])
def test_a_docstring_is_needed(docstring: str | None) -> None:
    def silent() -> None: ...

    silent.__doc__ = docstring
    assert "'silent' has no docstring" in str(refused(silent))
    assert tool(description="Be silent.")(silent).contract.description == "Be silent."


@pytest.mark.parametrize("annotation", [Callable[[], int], type, list[type]])
def test_a_type_must_have_a_json_form(annotation: Any) -> None:
    def take(value: Any) -> None:
        """Take a value."""

    take.__annotations__["value"] = annotation
    error = refused(take)
    assert "'take'" in str(error)
    assert "'value'" in str(error)
    assert "pydantic model" in error.hint


def test_types_must_be_known() -> None:
    def take(value: Nowhere) -> None:  # type: ignore[name-defined] # noqa: F821
        """Take a value."""

    assert "Nowhere" in str(refused(take))


def test_async_functions_are_not_called_without_being_awaited() -> None:
    async def wait() -> None:
        """Wait."""

    assert "async" in str(refused(wait))


def test_examples_must_be_valid() -> None:
    error = refused(forecast.function, examples=[{"city": "Oslo"}, {"town": "Oslo"}])
    assert "'forecast'" in str(error)
    assert "town" in str(error)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"name": "two words"}, "two words"),
        ({"max_calls": -1}, "max_calls must be greater than or equal to 0"),
    ],
)
def test_options_must_be_valid(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        tool(**options)(forecast.function)
