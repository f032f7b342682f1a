"""Checks a call against its tool's contract; only faithful changes, each with a receipt."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from runner.core.contract import ToolContract
from runner.core.conversation import Receipt
from runner.core.errors import ProtocolError
from runner.protocol.messages import message
from runner.protocol.prompt import kind_of
from runner.protocol.repair import strict_json

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,17})?")


def check_call(
    data: Any, tools: Sequence[ToolContract], number: int
) -> tuple[str, dict[str, Any], list[Receipt]]:
    """Tool name and params of the JSON of an ACTION, valid under the tool's contract.

    Parameters
    ----------
    number
        Number of the ACTION in its turn, for messages.

    Raises
    ------
    ProtocolError
        Wrong shape, unknown tool, or params that the contract does not allow.
    """
    if not isinstance(data, dict):
        raise _error("malformed", "not_object", number=number, found=_shown(data))
    if "tool" not in data or not set(data) <= {"tool", "params"}:
        found = ", ".join(json.dumps(key, ensure_ascii=False) for key in data) or "none"
        raise _error("malformed", "wrong_keys", number=number, found=found)
    name = data["tool"]
    if not isinstance(name, str):
        raise _error("malformed", "tool_not_text", number=number, found=_shown(name))
    contract = next((tool for tool in tools if tool.name == name), None)
    if contract is None:
        names = [tool.name for tool in tools]
        raise _error(
            "unknown_tool",
            "unknown_tool",
            tool=json.dumps(name, ensure_ascii=False),
            close=_closest(name, names),
            known=", ".join(names) or "none",
        )
    receipts = []
    params = data.get("params")
    if params is None:
        params = {}
        receipts.append(Receipt("contract", "took missing params as none", name))
    if not isinstance(params, dict):
        raise _error(
            "bad_params",
            "params_not_object",
            contract,
            number=number,
            names=", ".join(contract.properties) or "no keys",
            found=_shown(params),
        )
    checked, more = check_params(contract, params)
    return name, checked, receipts + more


def check_params(
    contract: ToolContract, params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Receipt]]:
    """Params valid under the contract, with receipts for the changes that this took.

    Raises
    ------
    ProtocolError
        An unknown, missing or wrong parameter; the message names it.
    """
    for name in params:
        if name not in contract.properties and not _is_open(contract):
            raise _error(
                "bad_params",
                "unknown_param",
                contract,
                param=json.dumps(name, ensure_ascii=False),
                close=_closest(name, list(contract.properties)),
                known=", ".join(contract.properties) or "none",
            )
    for name in contract.required:
        if name not in params:
            kind = kind_of(contract.properties[name])
            raise _error("bad_params", "missing_param", contract, param=name, kind=kind)
    checked: dict[str, Any] = {}
    receipts = []
    for name, value in params.items():
        schema = contract.properties.get(name, {})
        coerced = _coerced(contract, schema, value)
        if coerced is None and value is None and name not in contract.required:
            if not _is_valid(contract, schema, None):
                receipts.append(Receipt("contract", "left out a null", f"{contract.name}.{name}"))
                continue
        elif coerced is not value:
            what = f"read {_shown(value)} as {_shown(coerced)}"
            receipts.append(Receipt("contract", what, f"{contract.name}.{name}"))
        checked[name] = coerced
    problem = best_match(_validator(_key(contract.parameters)).iter_errors(checked))
    if problem is not None:
        raise _invalid(contract, problem)
    return checked, receipts


def _coerced(contract: ToolContract, schema: Any, value: Any) -> Any:
    """``value``, or the one value that it stands for under ``schema`` beyond doubt."""
    if _is_valid(contract, schema, value):
        if isinstance(value, float) and value.is_integer() and _wants(schema, "integer"):
            # Beyond this, a float no longer says which integer was written; as text it is refused.
            return int(value) if abs(value) < 2**53 else str(value)
        return value
    for candidate in _readings(schema, value):
        if _is_valid(contract, schema, candidate):
            return candidate
    return value


def _readings(schema: Any, value: Any) -> list[Any]:
    """What ``value`` may stand for under ``schema``."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [str(value)]
    if not isinstance(value, str):
        return []
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return [int(text)]
    if _NUMBER.fullmatch(text):
        return [] if _wants(schema, "integer") else [float(text)]
    if text.lower() in ("true", "false"):
        return [text.lower() == "true"]
    if text[:1] in ("[", "{"):
        try:
            return [strict_json(text)]
        except (ValueError, RecursionError):
            return []
    return []


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
    found = _shown(problem.instance)
    if problem.validator == "type":
        expected = problem.validator_value
        detail = message("details", "kind", expected=_article(expected), found=found)
    elif problem.validator in ("enum", "const"):
        value: Any = problem.validator_value
        values = value if problem.validator == "enum" else [value]
        expected = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        detail = message("details", "enum", expected=expected, found=found)
    else:
        detail = message("details", "other", detail=problem.message)
    return _error("bad_params", "bad_param", contract, param=path or "params", detail=detail)


def _article(kinds: Any) -> str:
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    return " or ".join(f"{'an' if name[0] in 'aeio' else 'a'} {name}" for name in names)


def _closest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return close[0] if close else ""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _error(
    error_kind: str, key: str, contract: ToolContract | None = None, /, **values: Any
) -> ProtocolError:
    if contract is not None:
        values["tool"] = contract.name
    tool = contract.name if contract is not None else None
    return ProtocolError(message("errors", key, **values), kind=error_kind, tool=tool)
