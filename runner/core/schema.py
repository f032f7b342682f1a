"""Checks that a JSON Schema can be used for parameters, before anything relies on it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from runner.core.errors import ConfigError

_REFERENCE = re.compile(r"#/(\$defs|definitions)/[^/]+")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `ConfigError` where a schema is no valid JSON Schema (2020-12) or cannot be used.

    Cannot be used: references to anything but this schema's own ``$defs`` or ``definitions``,
    patterns that Python cannot compile, and text that has no encoding.
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
    for part in _parts(schema):
        _check_reference(schema, part.get("$ref"))
        _check_pattern(part.get("pattern"))


def _check_reference(schema: Mapping[str, Any], reference: Any) -> None:
    if reference is None:
        return
    hint = "only references such as '#/$defs/Name', inside the same schema, can be followed"
    match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if match is None:
        raise ConfigError(f"$ref {reference!r} in the parameters cannot be followed", hint=hint)
    name = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    if name not in schema.get(match[1], {}):
        raise ConfigError(f"$ref {reference!r} leads nowhere in the parameters", hint=hint)


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


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object inside a schema. Data in ``enum``, ``const`` and the like is no schema."""
    if isinstance(value, Mapping):
        yield value
        for key, inner in value.items():
            if key not in ("enum", "const", "default", "examples"):
                yield from _parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner)
