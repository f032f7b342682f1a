"""Checks a call against its tool's contract; only faithful changes, each with a receipt."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from runner.core.contract import ToolContract
from runner.core.conversation import Receipt
from runner.core.errors import ProtocolError
from runner.protocol.call import closest, read_call, shown
from runner.protocol.json_text import JsonNumber, JsonObject
from runner.protocol.messages import message
from runner.protocol.payload import Payload, read_value
from runner.protocol.prompt import kind_of

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,17})?")


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
        coerced, more = _coerced(contract, schema, value)
        receipts += [Receipt(r.stage, r.what, where, r.cost) for r in more]
        optional = name not in contract.required
        if coerced is None and optional and not _is_valid(contract, schema, None):
            receipts.append(Receipt("contract", "left out a null", where))
            continue
        checked[name] = _plain(contract, coerced, name)
    problem = best_match(_validator(_key(contract.parameters)).iter_errors(checked))
    if problem is not None:
        raise _invalid(contract, problem)
    return checked, receipts


def _check_names(contract: ToolContract, params: Mapping[str, Any]) -> None:
    """Raise where parameters are unknown or missing; one message for all of them."""
    problems = []
    for name in params:
        if name not in contract.properties and not _is_open(contract):
            close = closest(name, list(contract.properties))
            known = ", ".join(contract.properties) or "none"
            shown_name = json.dumps(name, ensure_ascii=False)
            values = {"param": shown_name, "close": " or ".join(close), "known": known}
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
            raise _bad(contract, place, message("details", "not_finite", value=written))
        return float(value)
    if isinstance(value, dict):
        for key in value:
            _plain(contract, key, place)
        return {key: _plain(contract, part, f"{place}.{key}") for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(contract, part, f"{place}[{i}]") for i, part in enumerate(value)]
    return value


def _coerced(contract: ToolContract, schema: Any, value: Any) -> tuple[Any, list[Receipt]]:
    """``value``, or the one value that it stands for under ``schema`` beyond doubt."""
    if isinstance(value, (JsonNumber, float)) and not math.isfinite(value):
        return value, []
    if _is_valid(contract, schema, value):
        if isinstance(value, float) and value.is_integer() and _wants(schema, "integer"):
            return _exact_integer(value), []
        return value, []
    for candidate, more in _readings(schema, value):
        if _is_valid(contract, schema, candidate):
            what = f"read {shown(value)} as {shown(candidate)}"
            return candidate, [*more, Receipt("contract", what)]
    return value, []


def _exact_integer(value: float) -> Any:
    """The integer that was written as ``5.0``; as text, which is refused, where a float lost it."""
    written = value.text if isinstance(value, JsonNumber) else repr(value)
    whole, point, fraction = written.partition(".")
    if point and not fraction.strip("0"):
        return int(whole)
    return int(value) if abs(value) < 2**53 else written


def _readings(schema: Any, value: Any) -> list[tuple[Any, list[Receipt]]]:
    """What ``value`` may stand for under ``schema``."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [(str(value), [])]
    if isinstance(value, JsonNumber):
        return [(value.text, [])]
    if isinstance(value, dict) and any(isinstance(v, str) for v in value.values()):
        return _decoded_inside(schema, value)
    if not isinstance(value, str):
        return []
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return [(int(text), [])]
    if _NUMBER.fullmatch(text):
        return [] if _wants(schema, "integer") else [(float(text), [])]
    if text.lower() in ("true", "false"):
        return [(text.lower() == "true", [])]
    if text[:1] in ("[", "{"):
        try:
            return [read_value(text)]
        except ValueError:
            return []
    return []


def _decoded_inside(schema: Any, value: dict[str, Any]) -> list[tuple[Any, list[Receipt]]]:
    """An object with those members decoded that its schema wants as objects or arrays."""
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    decoded = JsonObject(list(value.items()))
    receipts: list[Receipt] = []
    for name, inner in value.items():
        kind = properties.get(name, {})
        if isinstance(inner, str) and (_wants(kind, "object") or _wants(kind, "array")):
            try:
                decoded[name], more = read_value(inner)
            except ValueError:
                return []
            receipts += more
    return [(decoded, receipts)]


def _wants(schema: Any, kind: str) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == kind


def _is_open(contract: ToolContract) -> bool:
    """Whether the contract takes parameters that it does not name."""
    return contract.parameters.get("additionalProperties", False) is not False


def _is_valid(contract: ToolContract, schema: Any, value: Any) -> bool:
    whole = dict(schema) if isinstance(schema, Mapping) else {"allOf": [schema]}
    for definitions in ("$defs", "definitions"):
        if definitions in contract.parameters:
            whole[definitions] = contract.parameters[definitions]
    return bool(_validator(_key(whole)).is_valid(value))


def _key(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema)


@functools.lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    return Draft202012Validator(json.loads(schema))


def _invalid(contract: ToolContract, problem: ValidationError) -> ProtocolError:
    path = ".".join(str(part) for part in problem.absolute_path)
    found = shown(problem.instance)
    if problem.validator == "type":
        expected = problem.validator_value
        detail = message("details", "kind", expected=_article(expected), found=found)
    elif problem.validator in ("enum", "const"):
        value: Any = problem.validator_value
        values = value if problem.validator == "enum" else [value]
        expected = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        close = _closest_value(problem.instance, values)
        detail = message("details", "enum", expected=expected, found=found, close=close)
    else:
        detail = message("details", "other", detail=problem.message)
    return _bad(contract, path or "params", detail)


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
