"""What a value that was written stands for under its schema: only changes that lose nothing.

``"120"`` is the integer 120 where the schema wants an integer, never where it wants a string, and
``"1,000"`` is neither. JSON in a string is decoded where the schema wants an object or an array.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from runner.core.conversation import Receipt
from runner.protocol.call import shown
from runner.protocol.json_text import JsonNumber, JsonObject
from runner.protocol.payload import read_value

Schema = Mapping[str, Any]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,17})?")
_DEEPEST_SCHEMA = 16


def coerced_value(root: Schema, schema: Any, value: Any) -> tuple[Any, list[Receipt]]:
    """``value``, or the one value that it stands for under ``schema`` beyond doubt.

    Parameters
    ----------
    root
        The whole schema of the parameters, which ``$ref`` refers to.

    Where nothing fits, ``value`` comes back as it is; the caller checks it.
    """
    receipts: list[Receipt] = []
    if isinstance(value, (dict, list)):
        value, receipts = _inside(root, schema, value)
    if isinstance(value, float) and not math.isfinite(value):
        return value, receipts
    if is_valid(root, schema, value):
        is_integer = isinstance(value, float) and value.is_integer()
        if is_integer and _wants(root, schema, "integer") and not _wants(root, schema, "number"):
            return _exact_integer(value), receipts
        return value, receipts
    for candidate, more in _candidates(value, wants_integer=_wants(root, schema, "integer")):
        inner: list[Receipt] = []
        if isinstance(candidate, (dict, list)):
            candidate, inner = _inside(root, schema, candidate)
        if is_valid(root, schema, candidate):
            what = f"read {shown(value)} as {shown(candidate)}"
            return candidate, [*receipts, *more, *inner, Receipt("contract", what)]
    return value, receipts


def is_valid(root: Schema, schema: Any, value: Any) -> bool:
    """Whether ``value`` is valid under ``schema``, a part of ``root``."""
    whole = dict(schema) if isinstance(schema, Mapping) else {"allOf": [schema]}
    for definitions in ("$defs", "definitions"):
        if definitions in root:
            whole[definitions] = root[definitions]
    return bool(validator(whole).is_valid(value))


def validator(schema: Schema) -> Any:
    """The validator for a schema; made once for each."""
    return _validator(json.dumps(schema))


def _multiple_of(_: Any, divisor: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    """``multipleOf`` in exact arithmetic: 0.3 is three times 0.1, and no integer is too large."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if isinstance(value, float) and not math.isfinite(value):
        return
    written = value.text if isinstance(value, JsonNumber) else str(value)
    if Fraction(written) % Fraction(str(divisor)):
        yield ValidationError(f"{value!r} is not a multiple of {divisor}")


_extend: Any = extend
_Validator = _extend(Draft202012Validator, {"multipleOf": _multiple_of})


@functools.lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    return _Validator(json.loads(schema))


def _inside(root: Schema, schema: Any, value: Any) -> tuple[Any, list[Receipt]]:
    """An object or array with its members coerced."""
    receipts: list[Receipt] = []
    if isinstance(value, list):
        items = []
        for i, item in enumerate(value):
            read, more = coerced_value(root, _item_schema(root, schema, i), item)
            items.append(read)
            receipts += more
        return items, receipts
    pairs = []
    for key, member in value.items():
        read, more = coerced_value(root, _member_schema(root, schema, key), member)
        pairs.append((key, read))
        receipts += more
    found = JsonObject(pairs)
    found.repeated = getattr(value, "repeated", {})
    return found, receipts


def _item_schema(root: Schema, schema: Any, number: int) -> Any:
    for part in _only(root, schema, "array"):
        prefix = part.get("prefixItems", [])
        if number < len(prefix):
            return prefix[number]
        if "items" in part:
            return part["items"]
    return {}


def _member_schema(root: Schema, schema: Any, name: str) -> Any:
    for part in _only(root, schema, "object"):
        if name in part.get("properties", {}):
            return part["properties"][name]
        if isinstance(part.get("additionalProperties"), Mapping):
            return part["additionalProperties"]
    return {}


def _only(root: Schema, schema: Any, kind: str) -> list[Schema]:
    """The one part of a schema that allows ``kind``; none where several do."""
    parts = [part for part in _parts(root, schema) if kind in _kinds(part)]
    return parts if len(parts) == 1 else []


def _wants(root: Schema, schema: Any, kind: str) -> bool:
    return any(kind in _kinds(part) for part in _parts(root, schema))


def _kinds(part: Schema) -> tuple[str, ...]:
    kinds = part.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _parts(root: Schema, schema: Any, depth: int = 0) -> Iterator[Schema]:
    """A schema and what it is put together from: what ``$ref`` names, and alternatives."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST_SCHEMA:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        yield from _parts(root, target, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(keyword, ()):
            yield from _parts(root, option, depth + 1)


def _exact_integer(value: float) -> Any:
    """The integer that was written as ``5.0``; as text, which is refused, where a float lost it."""
    written = value.text if isinstance(value, JsonNumber) else repr(value)
    whole, point, fraction = written.partition(".")
    if point and not fraction.strip("0"):
        return int(whole)
    return int(value) if abs(value) < 2**53 else written


def _candidates(value: Any, *, wants_integer: bool) -> list[tuple[Any, list[Receipt]]]:
    """What ``value`` may stand for where it is not valid as it is."""
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return []
    if isinstance(value, (int, float)):
        return [(str(getattr(value, "text", value)), [])]
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return [(int(text), [])]
    if _NUMBER.fullmatch(text):
        return [] if wants_integer else [(float(text), [])]
    if text.lower() in ("true", "false"):
        return [(text.lower() == "true", [])]
    if text[:1] in ("[", "{"):
        try:
            return [read_value(text)]
        except ValueError:
            return []
    return []
