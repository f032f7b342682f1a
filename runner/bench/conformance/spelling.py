"""Writes a value the way the protocol wants it written: one line, keys in the schema's order."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from referencing.exceptions import Unresolvable

_MOST_SPELLINGS = 120


def written(value: Any) -> str:
    """Canonical JSON text: ``", "`` and ``": "`` as separators, letters as they are."""
    return json.dumps(value, ensure_ascii=False)


def in_schema_order(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """``value`` with the keys of its objects in the order of the schema, others behind them.

    Parameters
    ----------
    root
        What ``#/...`` references are resolved in.
    """
    return _ordered(value, [schema], root)


def spellings(value: Any) -> Iterator[str]:
    """The text of a value in its own order of keys first, then in others, and with 1.0 as 1.

    A schema put together from parts does not always say which key comes first, and 1.0 is the
    same JSON number as 1. Ends after some 100 texts.
    """
    return itertools.islice(_spellings(value), _MOST_SPELLINGS)


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_value(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _spellings(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for items in itertools.permutations(value.items()):
            parts = [[f"{written(k)}: {text}" for text in spellings(v)] for k, v in items]
            for chosen in itertools.product(*parts):
                yield "{" + ", ".join(chosen) + "}"
    elif isinstance(value, list) and value:
        for chosen in itertools.product(*[list(spellings(item)) for item in value]):
            yield "[" + ", ".join(chosen) + "]"
    else:
        yield written(value)
        if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
            yield written(int(value))


def _ordered(value: Any, schemas: list[Any], root: Mapping[str, Any]) -> Any:
    if not isinstance(value, (dict, list)) or not value:
        return value
    parts: list[Mapping[str, Any]] = []
    for schema in schemas:
        _collect(schema, value, root, parts, ())
    if isinstance(value, list):
        return [_ordered(item, _of_item(i, parts), root) for i, item in enumerate(value)]
    named = [name for part in parts for name in part.get("properties", ()) if name in value]
    return {
        name: _ordered(value[name], _of_key(name, parts), root)
        for name in dict.fromkeys([*named, *value])
    }


def _collect(
    schema: Any,
    value: Any,
    root: Mapping[str, Any],
    parts: list[Mapping[str, Any]],
    followed: tuple[str, ...],
) -> None:
    """Add to ``parts`` all schemas that apply to ``value`` itself, in the order they are written.

    Of alternatives, those that the value is valid under come first.
    """
    if not isinstance(schema, Mapping):
        return
    parts.append(schema)
    for keyword, inner in schema.items():
        inside: list[Any] = []
        if keyword == "$ref" and isinstance(inner, str) and inner not in followed:
            _collect(_resolved(inner, root), value, root, parts, (*followed, inner))
        elif keyword == "allOf":
            inside = list(inner)
        elif keyword in ("anyOf", "oneOf"):
            inside = sorted(inner, key=lambda branch: not _is_valid(value, branch, root))
        elif keyword == "if":
            branch = "then" if _is_valid(value, inner, root) else "else"
            inside = [inner, schema.get(branch, True)]
        elif keyword == "dependentSchemas":
            inside = [branch for name, branch in inner.items() if name in value]
        for branch in inside:
            _collect(branch, value, root, parts, followed)


def _of_key(name: str, parts: list[Mapping[str, Any]]) -> list[Any]:
    found = []
    for part in parts:
        own = [part["properties"][name]] if name in part.get("properties", {}) else []
        patterns = part.get("patternProperties", {})
        own += [patterns[pattern] for pattern in patterns if re.search(pattern, name)]
        found += own or [part.get("additionalProperties", True)]
    return found


def _of_item(index: int, parts: list[Mapping[str, Any]]) -> list[Any]:
    found = []
    for part in parts:
        first = part.get("prefixItems", [])
        found.append(first[index] if index < len(first) else part.get("items", True))
    return found


def _resolved(reference: str, root: Mapping[str, Any]) -> Any:
    """What a reference leads to; anything goes for one that cannot be followed."""
    node: Any = root if reference.startswith("#") else True
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(key, True)
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return True
    return node


def _is_valid(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    if isinstance(schema, bool):
        return schema
    whole = {**{key: root[key] for key in ("$defs", "definitions") if key in root}, **schema}
    try:
        return bool(Draft202012Validator(whole).is_valid(value))
    except Unresolvable:
        return False
