"""The parameters of a Python function: their JSON Schema, and the check of a call's params."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from runner.core.errors import ConfigError, ErrorKind, ToolError
from runner.tools.schema import plain_schema

_LONGEST_SHOWN = 60
_MOST_PROBLEMS = 3


class Signature:
    """What a function takes, read from its annotations.

    Parameters
    ----------
    owner
        Name of the tool, for messages.

    Raises
    ------
    ConfigError
        A parameter that a tool cannot have; names it and says what to do.
    """

    def __init__(self, function: Callable[..., Any], owner: str) -> None:
        self._owner = owner
        self._names: dict[str, str] = {}
        self._own_defaults: set[str] = set()
        fields: dict[str, Any] = {}
        hints = _hints(function, owner)
        for number, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
            _check_kind(parameter, owner)
            _check_annotation(hints, name, owner)
            # Parameters are aliases of numbered fields, so that they may have any name.
            info = Field(alias=name)
            if parameter.default is not parameter.empty:
                self._own_defaults.add(name)
                info = Field(alias=name, default=parameter.default)
            elif _is_optional(hints[name]):
                info = Field(alias=name, default=None)
            self._names[f"p{number}"] = name
            fields[f"p{number}"] = (hints[name], info)
        self._model: type[BaseModel] = create_model(
            "Params", __config__=ConfigDict(extra="forbid"), **fields
        )

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the parameters, as a tool contract wants it."""
        return plain_schema(self._model.model_json_schema(schema_generator=_QuietSchema))

    def arguments(self, params: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function: nested models, enums and the like are objects.

        What ``params`` leaves out is left to the function's own default.

        Raises
        ------
        ToolError
            The params are not valid; the message names the parameter.
        """
        try:
            checked = self._model.model_validate(params)
        except ValidationError as error:
            message = f"{self._owner}: {problems(error, tuple(self._names.values()))}"
            raise ToolError(message, kind=ErrorKind.INVALID_INPUT) from error
        return {
            name: getattr(checked, field)
            for field, name in self._names.items()
            if field in checked.model_fields_set or name not in self._own_defaults
        }


def without_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind ``functools.partial``: it has the name, docstring and annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def problems(error: ValidationError, known: Sequence[str] = ()) -> str:
    """The first problems that pydantic found, each with the parameter, on one line."""
    found = error.errors(include_url=False)
    parts = []
    for problem in found[:_MOST_PROBLEMS]:
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            names = ", ".join(known) or "none"
            parts.append(f"there is no parameter {where}, the parameters are: {names}")
        elif problem["type"] == "missing":
            parts.append(f"parameter {where} is missing")
        else:
            message = problem["msg"].replace("Input should be", "must be")
            message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
            subject = f"parameter {where}" if where else "params"
            parts.append(f"{subject} {message}, found {_shown(problem['input'])}")
    more = f"; and {len(found) - _MOST_PROBLEMS} more" if len(found) > _MOST_PROBLEMS else ""
    return f"{'; '.join(parts)}{more}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _hints(function: Callable[..., Any], owner: str) -> dict[str, Any]:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(
            f"tool {owner!r} is an async function, but tools are called synchronously",
            hint="make it a plain function; asyncio.run(...) inside it can run async code",
        )
    try:
        hints = get_type_hints(without_partial(function), include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(
            f"tool {owner!r}: its type annotations cannot be read: {error}",
            hint="import or define the types at the top level of the module",
        ) from error
    return {name: _once_optional(hint) for name, hint in hints.items()}


def _once_optional(annotation: Any) -> Any:
    """Undo what Python 3.10 does to ``Annotated[T | None, ...]`` with None as its default.

    It becomes ``Optional[Annotated[T | None, ...]]``.
    """
    inner, *others = get_args(annotation) or (annotation,)
    twice = others == [NoneType] and get_origin(inner) is Annotated and _is_optional(inner)
    return inner if twice and get_origin(annotation) is Union else annotation


def _check_kind(parameter: inspect.Parameter, owner: str) -> None:
    whole = f"tool {owner!r}: parameter {parameter.name!r}"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise ConfigError(
            f"{whole} is {stars}{parameter.name}, but a tool's parameters must be known",
            hint="name each parameter, or take one parameter of type list or dict",
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(
            f"{whole} is positional-only, but tools are called with names",
            hint="remove the '/' from the signature",
        )


def _check_annotation(hints: dict[str, Any], name: str, owner: str) -> None:
    if name not in hints:
        hint = f"write its type, for example {name}: str"
        if name == "self":
            hint = "make a tool of the bound method instead: tool(object.method)"
        raise ConfigError(f"tool {owner!r}: parameter {name!r} has no type annotation", hint=hint)
    try:
        TypeAdapter(hints[name]).json_schema(schema_generator=_QuietSchema)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        shown = getattr(hints[name], "__name__", None) or str(hints[name])
        raise ConfigError(
            f"tool {owner!r}: the type of parameter {name!r}, {shown}, has no JSON form",
            hint="use str, int, float, bool, list, dict, Literal, Enum or a pydantic model",
        ) from error


def _is_optional(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_origin(annotation) in (Union, UnionType) and NoneType in get_args(annotation)


class _QuietSchema(GenerateJsonSchema):
    """Leaves out defaults that JSON cannot hold, without a warning."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Warn of nothing."""
