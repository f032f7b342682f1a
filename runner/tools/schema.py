"""Makes pydantic's JSON Schemas plain: no titles, references only where they recurse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PREFIX = "#/$defs/"
_NULL = {"type": "null"}
_MAPS = ("properties", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "propertyNames", "contains", "not")


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema in fewer words, for prompts and grammars.

    Titles are dropped, definitions are written where they are used (unless they refer to
    themselves), and an optional parameter whose default is null is simply its type: a call leaves
    it out.

    Parameters
    ----------
    schema
        A JSON Schema (2020-12) of type ``object`` with its definitions under ``$defs``.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    recursive = {name for name in definitions if _refers(definitions[name], name, definitions)}
    plain: dict[str, Any] = _plain(
        {key: value for key, value in schema.items() if key != "$defs"}, definitions, recursive
    )
    plain["properties"] = {
        name: _without_null(sub) for name, sub in plain.get("properties", {}).items()
    }
    used = {name for name in recursive if _refers(plain, name, definitions)}
    if used:
        plain["$defs"] = {
            name: _plain(definitions[name], definitions, recursive)
            for name in definitions
            if name in used
        }
    return plain


def _plain(node: Any, definitions: Mapping[str, Any], recursive: set[str]) -> Any:
    if not isinstance(node, Mapping):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in _MAPS:
            result[key] = {k: _plain(v, definitions, recursive) for k, v in value.items()}
        elif key in _LISTS:
            result[key] = [_plain(option, definitions, recursive) for option in value]
        elif key in _SINGLE:
            result[key] = _plain(value, definitions, recursive)
        elif key != "title":
            result[key] = value
    name = str(result.get("$ref", "")).removeprefix(_PREFIX)
    if name in definitions and name not in recursive:
        del result["$ref"]
        return {**_plain(definitions[name], definitions, recursive), **result}
    return result


def _refers(node: Any, wanted: str, definitions: Mapping[str, Any]) -> bool:
    """Whether ``node`` refers to the definition ``wanted``, directly or through others."""
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Mapping):
            name = str(current.get("$ref", "")).removeprefix(_PREFIX)
            if name == wanted:
                return True
            if name in definitions and name not in seen:
                seen.add(name)
                waiting.append(definitions[name])
            waiting += current.values()
        elif isinstance(current, list):
            waiting += current
    return False


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("default", ...) is not None or _NULL not in schema.get("anyOf", ()):
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    options = [option for option in schema["anyOf"] if option != _NULL]
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}
