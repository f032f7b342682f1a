"""Checks a call against its tool's contract; only faithful changes, each with a receipt."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError, best_match

from runner.core.contract import ToolContract
from runner.core.conversation import Receipt
from runner.core.errors import ProtocolError
from runner.protocol.call import clipped, closest, read_call, shown
from runner.protocol.json_text import JsonNumber, JsonObject
from runner.protocol.messages import message
from runner.protocol.payload import Payload
from runner.protocol.prompt import kind_of
from runner.protocol.readings import coerced_value, is_valid, validator

_SURROGATE = re.compile("[\ud800-\udfff]")
# JSON Schema keyword -> the message that says what it demands.
_LIMITS = {
    "minLength": "min_length", "maxLength": "max_length", "minItems": "min_items",
    "maxItems": "max_items", "uniqueItems": "unique_items", "minimum": "minimum",
    "maximum": "maximum", "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum", "multipleOf": "multiple_of", "pattern": "pattern",
    "minProperties": "min_properties", "maxProperties": "max_properties",
}  # fmt: skip


def check_call(
    payload: Payload, tools: Sequence[ToolContract], number: int, keys: tuple[str, str]
) -> tuple[str, dict[str, Any], list[Receipt]]:
    """Tool name and params of the payload of an ACTION, valid under the tool's contract.

    Parameters
    ----------
    number
        Number of the call in its turn, for messages.
    keys
        The dialect's keys for the tool's name and its input.

    Raises
    ------
    ProtocolError
        Wrong shape, unknown tool, or params that the contract does not allow.
    """
    call = read_call(payload, tools, number, keys)
    try:
        params, receipts = check_params(call.contract, call.params)
    except ProtocolError as error:
        key, kind = ("cut_call", "truncated") if payload.cut else ("in_action", error.kind)
        text = message("errors", key, number=number, problem=str(error))
        raise ProtocolError(text, kind=kind, tool=error.tool) from error
    return call.contract.name, params, [*call.receipts, *receipts]


def check_params(
    contract: ToolContract, params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Receipt]]:
    """Params valid under the contract, with receipts for the changes that this took.

    Raises
    ------
    ProtocolError
        An unknown, missing or wrong parameter; the message names it.
    """
    _check_names(contract, params)
    _check_repeated(contract, params, "")
    checked: dict[str, Any] = {}
    receipts = []
    for name, value in params.items():
        schema = contract.properties.get(name, {})
        where = f"{contract.name}.{name}"
        coerced, more = coerced_value(contract.parameters, schema, value)
        if more:
            _check_repeated(contract, coerced, name)
        receipts += [Receipt(r.stage, r.what, where, r.cost) for r in more]
        optional = name not in contract.required
        if coerced is None and optional and not is_valid(contract.parameters, schema, None):
            receipts.append(Receipt("contract", "left out a null", where))
            continue
        checked[name] = _plain(contract, coerced, name)
    problem = best_match(validator(contract.parameters).iter_errors(checked))
    if problem is not None:
        raise _invalid(contract, problem)
    return checked, receipts


def _check_names(contract: ToolContract, params: Mapping[str, Any]) -> None:
    """Raise where parameters are unknown or missing; one message for all of them."""
    problems = []
    for name in params:
        if not contract.takes(name):
            close = closest(name, list(contract.properties))
            known = ", ".join(contract.properties) or "none"
            values = {"param": shown(name), "close": " or ".join(close), "known": known}
            problems.append(message("errors", "unknown_param", tool=contract.name, **values))
    for name in contract.required:
        if name not in params:
            kind = kind_of(contract.properties[name])
            problems.append(
                message("errors", "missing_param", tool=contract.name, param=name, kind=kind)
            )
    if problems:
        raise ProtocolError(" ".join(problems[:4]), kind="bad_params", tool=contract.name)


def _check_repeated(contract: ToolContract, value: Any, place: str) -> None:
    """Raise where an object gives a key twice with different values."""
    if isinstance(value, JsonObject):
        for key, differs in value.repeated.items():
            if differs:
                detail = message("details", "duplicate")
                raise _bad(contract, f"{place}.{key}" if place else key, detail)
    inner = value.items() if isinstance(value, Mapping) else ()
    for key, part in inner:
        _check_repeated(contract, part, f"{place}.{key}" if place else key)
    for i, part in enumerate(value if isinstance(value, list) else ()):
        _check_repeated(contract, part, f"{place}[{i}]")


def _plain(contract: ToolContract, value: Any, place: str) -> Any:
    """``value`` in plain Python types; raises where it cannot be passed on as it is."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise _bad(contract, place, message("details", "surrogate"))
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            written = value.text if isinstance(value, JsonNumber) else str(value)
            raise _bad(contract, place, message("details", "not_finite", value=clipped(written)))
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        for key in value:
            _plain(contract, key, place)
        return {key: _plain(contract, part, f"{place}.{key}") for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(contract, part, f"{place}[{i}]") for i, part in enumerate(value)]
    return value


def _invalid(contract: ToolContract, problem: ValidationError) -> ProtocolError:
    path = [str(part) if isinstance(part, str) else f"[{part}]" for part in problem.absolute_path]
    place = ".".join(path).replace(".[", "[") or "params"
    return _bad(contract, place, _expected(problem))


def _expected(problem: ValidationError) -> str:
    """What was expected and found, in the project's own words where it has some."""
    instance: Any = problem.instance
    value: Any = problem.validator_value
    schema: Any = problem.schema
    rule, found = str(problem.validator), shown(instance)
    if rule == "type":
        return message("details", "kind", expected=_article(value), found=found)
    if rule in ("enum", "const"):
        values = value if rule == "enum" else [value]
        expected = ", ".join(map(shown, values[:20])) + (", ..." if len(values) > 20 else "")
        close = _closest_value(instance, values)
        return message("details", "enum", expected=expected, found=found, close=close)
    if rule == "required":
        missing = [name for name in value if name not in instance]
        return message("details", "required", names=", ".join(map(shown, missing)))
    if rule == "additionalProperties":
        known = ", ".join(map(shown, schema.get("properties", {}))) or "none"
        return message("details", "unknown_keys", known=known, found=found)
    if rule in _LIMITS:
        return message("details", _LIMITS[rule], value=shown(value), found=found)
    return message("details", "other", rule="false" if schema is False else rule, found=found)


def _bad(contract: ToolContract, place: str, detail: str) -> ProtocolError:
    text = message("errors", "bad_param", tool=contract.name, param=place, detail=detail)
    return ProtocolError(text, kind="bad_params", tool=contract.name)


def _closest_value(found: Any, values: Sequence[Any]) -> str:
    """The text among ``values`` that is most like ``found``, as JSON, or nothing."""
    texts = {value.casefold(): value for value in values if isinstance(value, str)}
    close = closest(found.strip().casefold(), list(texts)) if isinstance(found, str) else []
    return json.dumps(texts[close[0]], ensure_ascii=False) if close else ""


def _article(kinds: Any) -> str:
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    words = {"boolean": "true or false", "null": "null"}
    return " or ".join(
        words.get(name, f"{'an' if name[0] in 'aeio' else 'a'} {name}") for name in names
    )
