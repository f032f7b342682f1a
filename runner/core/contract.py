"""What a tool promises and demands. We own contracts; wire formats are adapters at the edge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from runner.core.errors import ConfigError, ErrorKind
from runner.core.schema import check_schema, with_null

_NAME = re.compile(r"[^\s\"'`\\{}\[\]:,]{1,128}")


class Effect(str, Enum):
    """What a call may change, from harmless to far-reaching."""

    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    NETWORK = "network"


class Limits(BaseModel):
    """Bounds of one tool within one run.

    Attributes
    ----------
    max_calls
        Calls a run may make; ``None`` for no bound but the run's own.
    max_result_chars
        Longer results are cut in the middle, with a note of how much is missing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_calls: int | None = Field(default=None, ge=0)
    max_result_chars: int = Field(default=4000, ge=200)


class Demonstration(BaseModel):
    """A call in its setting, shown to the model: small models learn best from it.

    Attributes
    ----------
    task
        What a user asks.
    params
        The input of the call that serves it.
    result
        What the tool returns.
    answer
        The answer to the user.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    params: dict[str, Any]
    result: str
    answer: str


class ToolContract(BaseModel):
    """A tool's contract: name, version, parameters, errors, effect and limits.

    Attributes
    ----------
    name
        1 to 128 characters without white space, quotes, braces, brackets, colons or commas.
    description
        One or two sentences for the model.
    parameters
        A JSON Schema (2020-12) of type ``object``; parameter order is the order of its properties.
        ``nullable: true`` is taken as OpenAPI means it.
    examples
        Inputs that are shown to the model, each valid under ``parameters``.
    demonstration
        A whole use of the tool, or None; one is then made up from the first example.
    result
        What the result text holds; for people, may be empty.
    errors
        The kinds of error that a call may end in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str
    parameters: dict[str, Any]
    version: str = "1.0"
    examples: tuple[dict[str, Any], ...] = ()
    demonstration: Demonstration | None = None
    result: str = ""
    errors: tuple[ErrorKind, ...] = ()
    effect: Effect = Effect.READ
    limits: Limits = Limits()

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"tool name {name!r} is not usable",
                hint="use 1 to 128 characters, no white space, quotes, braces, colons or commas",
            )
        return name

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type", "object") != "object":
            raise ConfigError(
                f"the parameters of a tool are a JSON Schema of type 'object', found "
                f"type {schema.get('type')!r}",
                hint='wrap it: {"type": "object", "properties": {...}, "required": [...]}',
            )
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            raise ConfigError(
                "'properties' in a tool's parameters must be an object of name -> schema, "
                f"found {type(properties).__name__}"
            )
        required = schema.get("required", [])
        missing = [name for name in required if name not in properties]
        if missing:
            raise ConfigError(
                f"'required' names {missing[0]!r}, which is not in 'properties'",
                hint="add the property, or take the name out of 'required'",
            )
        schema = {**schema, "type": "object", "properties": dict(properties)}
        schema.pop("nullable", None)
        check_schema(schema)
        plain: dict[str, Any] = with_null(schema)
        return plain

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        *,
        examples: Sequence[Mapping[str, Any]] = (),
        effect: Effect = Effect.READ,
        limits: Limits | None = None,
    ) -> ToolContract:
        """Make a contract from a JSON Schema of the parameters.

        Raises
        ------
        ConfigError
            The name or the schema is not usable.
        """
        return cls(
            name=name,
            description=description,
            parameters=dict(parameters),
            examples=tuple(dict(example) for example in examples),
            effect=effect,
            limits=limits or Limits(),
        )

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        """Parameter name -> its schema, in order."""
        properties: dict[str, dict[str, Any]] = self.parameters["properties"]
        return properties

    def takes(self, name: str) -> bool:
        """Whether a call may give a parameter of this name."""
        is_open = self.parameters.get("additionalProperties", False) is not False
        if is_open or name in self.properties:
            return True
        return any(re.search(like, name) for like in self.parameters.get("patternProperties", {}))

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that every call must give."""
        return tuple(self.parameters.get("required", ()))
