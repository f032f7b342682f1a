"""Checks that a JSON Schema can be used for parameters, before anything relies on it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from runner.core.errors import ConfigError

_REFERENCE = re.compile(r"#/(\$defs|definitions)/[^/]+")
_ONE = {
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
}  # fmt: skip
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `ConfigError` where a schema is no valid JSON Schema (2020-12) or cannot be used.

    Cannot be used: references to anything but this schema's own ``$defs`` or ``definitions``, or
    that lead back to themselves, patterns that Python cannot compile, and text that has no
    encoding.
    """
    # A check of schemas is not needed for `runner --help`, and its import takes a while.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        json.dumps(schema, ensure_ascii=False).encode()
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(str(part) for part in error.absolute_path) or "parameters"
        raise ConfigError(
            f"the parameters are no valid JSON Schema: {place}: {error.message}",
            hint="see https://json-schema.org/draft/2020-12 for what a keyword takes",
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"the parameters cannot be written as JSON: {error}") from error
    for part in subschemas(schema):
        _check_dialect(part.get("$schema"))
        _check_reference(schema, part.get("$ref"))
        if "$dynamicRef" in part:
            raise ConfigError(
                f"$dynamicRef {part['$dynamicRef']!r} in the parameters cannot be followed",
                hint="use $ref, such as '#/$defs/Name'",
            )
        _check_pattern(part.get("pattern"))
        for pattern in part.get("patternProperties", ()):
            _check_pattern(pattern)
        if part is not schema and "$id" in part and any("$ref" in p for p in subschemas(part)):
            raise ConfigError(
                f"$id {part['$id']!r} inside the parameters changes what the $ref beneath it means",
                hint="take the $id out; references are read from the top of the parameters",
            )
    _check_ends(schema)


def resolve(root: Mapping[str, Any], reference: str) -> Any:
    """What a ``$ref`` that `check_schema` has passed stands for."""
    _, section, name = reference.split("/")
    return root[section][_pointer_part(name)]


def subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all schemas inside it. Data in ``enum``, ``const`` and the like is none."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        yield part
        for keyword, inner in part.items():
            if keyword in _ONE:
                waiting.append(inner)
            elif keyword in _LISTS and isinstance(inner, list):
                waiting += inner
            elif keyword in _NAMED and isinstance(inner, Mapping):
                waiting += inner.values()


def with_null(schema: Any) -> Any:
    """The schema with ``nullable: true`` (OpenAPI) said in JSON Schema.

    ``null`` is added to ``type`` and to ``enum``; validators do not know ``nullable``.
    """
    if isinstance(schema, list):
        return [with_null(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    changed: dict[str, Any] = {}
    for keyword, inner in schema.items():
        if keyword in _ONE or keyword in _LISTS:
            inner = with_null(inner)
        elif keyword in _NAMED and isinstance(inner, Mapping):
            inner = {name: with_null(part) for name, part in inner.items()}
        changed[keyword] = inner
    if changed.get("nullable") is not True:
        return changed
    del changed["nullable"]
    return _nullable(changed)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        schema["type"] = [kinds, "null"] if kinds != "null" else kinds
    elif isinstance(kinds, list) and "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if any(keyword in schema for keyword in ("$ref", "allOf", "anyOf", "oneOf", "const")):
        about: dict[str, Any] = {
            word: schema.pop(word) for word in ("title", "description") if word in schema
        }
        return {**about, "anyOf": [schema, {"type": "null"}]}
    return schema


def _check_dialect(dialect: Any) -> None:
    if dialect is not None and not re.match(r"https?://json-schema\.org/", str(dialect)):
        raise ConfigError(
            f"the parameters are written for {dialect!r}, which is no JSON Schema draft",
            hint="leave '$schema' out and write JSON Schema 2020-12",
        )


def _check_reference(schema: Mapping[str, Any], reference: Any) -> None:
    if reference is None:
        return
    hint = "only references such as '#/$defs/Name', inside the same schema, can be followed"
    match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if match is None:
        raise ConfigError(f"$ref {reference!r} in the parameters cannot be followed", hint=hint)
    section = schema.get(match[1], {})
    if _pointer_part(reference.rpartition("/")[2]) not in section:
        raise ConfigError(f"$ref {reference!r} leads nowhere in the parameters", hint=hint)


def _pointer_part(text: str) -> str:
    return unquote(text).replace("~1", "/").replace("~0", "~")


def _check_ends(root: Mapping[str, Any]) -> None:
    """A reference that leads to itself without a step into the value has no meaning."""
    ended: set[str] = set()

    def follow(schema: Any, passed: tuple[str, ...]) -> None:
        if not isinstance(schema, Mapping):
            return
        reference = schema.get("$ref")
        if reference is not None and reference not in ended:
            if reference in passed:
                raise ConfigError(
                    f"$ref {reference!r} in the parameters only leads back to itself",
                    hint="let it lead to a schema that says what the value is",
                )
            follow(resolve(root, reference), (*passed, reference))
            ended.add(reference)
        for keyword in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(keyword, ()):
                follow(part, passed)

    for part in subschemas(root):
        if "$ref" in part:
            follow(part, ())


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, str):
        return
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"the pattern {pattern!r} in the parameters cannot be used: {error}",
            hint="write it as a regular expression that Python knows",
        ) from error
