"""From what an ACTION holds to a tool's contract and its input: other keys, wrappers, names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.core.contract import ToolContract
from runner.core.conversation import Receipt
from runner.core.errors import ProtocolError
from runner.protocol.json_text import JsonObject
from runner.protocol.messages import message
from runner.protocol.payload import Payload, read_value
from runner.protocol.relaxed_words import is_placeholder

_NAME_KEYS = ("tool", "name", "tool_name", "function_name", "function", "action")
_PARAMS_KEYS = (
    "params", "parameters", "arguments", "args", "input", "action_input", "tool_input", "kwargs",
    "param", "parameter", "argument", "inputs",
)  # fmt: skip
_WRAPPERS = ("tool_call", "function_call", "function", "call", "action", "tool_calls", "tool_use")
# What may stand beside a call without being part of it, where its value is no structure.
_COMMENTARY = frozenset(
    ("id", "type", "index", "step", "call_id", "tool_call_id", "thought", "thoughts", "reason",
     "reasoning", "rationale", "why", "purpose", "explanation", "comment", "confidence")
)  # fmt: skip
_PLACEHOLDER = re.compile(r"<[^<>]+>|\.\.\.|…")
_PREFIXES = ("functions.", "tools.", "function.", "tool.", "functions::", "default_api.")


@dataclass(frozen=True)
class RawCall:
    """A tool's contract and the input as it was written, not checked yet."""

    contract: ToolContract
    params: Mapping[str, Any]
    receipts: tuple[Receipt, ...]


def is_tool(name: str, tools: Sequence[ToolContract]) -> bool:
    """Whether ``name`` names exactly one tool, spelled its own way or a little otherwise."""
    return len(_candidates(name, tools)) == 1


def read_call(
    payload: Payload, tools: Sequence[ToolContract], number: int, keys: tuple[str, str]
) -> RawCall:
    """The contract that a payload calls, and the input.

    Parameters
    ----------
    number
        Number of the call in its turn, for messages.
    keys
        How the dialect calls the name and the input; other usual keys are read with a receipt.

    Raises
    ------
    ProtocolError
        It has not the shape of a call, names no tool, or gives two names or inputs.
    """
    receipts = list(payload.receipts)
    data = _unwrapped(payload.data, number, receipts)
    name = _given_once(data, _NAME_KEYS, number)
    if name is None:
        data = _named_by_key(data, tools, number, receipts, keys)
        name = keys[0]
    if not isinstance(data[name], str):
        raise _error("malformed", "tool_not_text", number=number, found=shown(data[name]))
    if name != keys[0]:
        what = f"read the key {name!r} as {keys[0]!r}"
        receipts.append(Receipt("call", what, f"ACTION {number}"))
    contract = _contract(data[name], tools, number, receipts)
    if payload.tail:
        _check_tail(payload.tail, contract, number)
    given = _given_once(data, _PARAMS_KEYS, number)
    if given in contract.properties and given != keys[1] and not isinstance(data[given], dict):
        given = None
    if given is None and payload.tail:
        # The object was closed too early, and these words may have been its params.
        found = shown(payload.tail.strip())
        raise _error("bad_params", "beside", contract, number=number, param=found)
    if given is None:
        return RawCall(contract, _beside_the_name(data, contract, receipts), tuple(receipts))
    if given != keys[1]:
        what = f"read the key {given!r} as {keys[1]!r}"
        receipts.append(Receipt("call", what, contract.name))
    params = _input(data[given], contract, number, receipts)
    others = {key for key in data if key.casefold() not in (*_NAME_KEYS, *_PARAMS_KEYS)}
    for key in sorted(others):
        is_param = key in contract.properties and params.get(key, data) != data[key]
        if is_param or not _is_commentary(key, data[key]):
            shown_key = shown(key)
            raise _error("bad_params", "beside", contract, number=number, param=shown_key)
    _note_commentary(others, contract, receipts)
    return RawCall(contract, params, tuple(receipts))


def _unwrapped(data: Any, number: int, receipts: list[Receipt]) -> dict[str, Any]:
    """The object that holds the call: out of JSON in a string, and out of wrappers."""
    where = f"ACTION {number}"
    if isinstance(data, str):
        try:
            data, more = read_value(data)
        except ValueError:
            raise _error("malformed", "not_object", number=number, found=shown(data)) from None
        receipts += [*more, Receipt("call", "decoded JSON that was written as a string", where)]
    for _ in range(3):
        if not isinstance(data, dict):
            raise _error("malformed", "not_object", number=number, found=shown(data))
        inner = next((key for key in _WRAPPERS if isinstance(data.get(key), (dict, list))), None)
        if inner is None or set(data) - {inner} - _COMMENTARY:
            break
        content = data[inner]
        if isinstance(content, list):
            if len(content) != 1:
                raise _error("malformed", "wrapped_list", number=number, found=len(content))
            (content,) = content
        receipts.append(Receipt("call", f"took the wrapper {inner!r} away", where))
        data = content
    assert isinstance(data, dict)
    return data


def _given_once(data: Mapping[str, Any], keys: Sequence[str], number: int) -> str | None:
    """The first of ``keys`` that is given, in capitals or not; raises where two are and differ."""
    given = [key for name in keys for key in data if key.casefold() == name]
    repeated = [key for key in given if isinstance(data, JsonObject) and data.repeated.get(key)]
    if repeated:
        raise _error("malformed", "twice", number=number, key=shown(repeated[0]))
    for other in given[1:]:
        if json.dumps(data[other]) != json.dumps(data[given[0]]):
            raise _error(
                "malformed", "two_keys", number=number, first=shown(given[0]), second=shown(other)
            )
    return given[0] if given else None


def _is_commentary(key: str, value: Any) -> bool:
    return key.casefold() in _COMMENTARY and not isinstance(value, (dict, list))


def _note_commentary(
    keys: Collection[str], contract: ToolContract, receipts: list[Receipt]
) -> None:
    if keys:
        what = f"left out {', '.join(map(repr, sorted(keys)))}, which is no part of a call"
        receipts.append(Receipt("call", what, contract.name))


def _check_tail(tail: str, contract: ToolContract, number: int) -> None:
    """Raise where words behind the JSON, which would be dropped, name a parameter."""
    for name in contract.properties:
        sign = "" if len(name) > 2 else r"\s*[:=]"
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w){sign}", tail, re.IGNORECASE):
            raise _error("bad_params", "beside", contract, number=number, param=shown(name))


def _named_by_key(
    data: dict[str, Any],
    tools: Sequence[ToolContract],
    number: int,
    receipts: list[Receipt],
    keys: tuple[str, str],
) -> dict[str, Any]:
    """A call of the form ``{"search": {...}}``."""
    names = [key for key in data if key not in _COMMENTARY]
    if len(names) == 1 and isinstance(data[names[0]], dict) and is_tool(names[0], tools):
        what = "read the only key as the tool's name"
        receipts.append(Receipt("call", what, f"ACTION {number}"))
        return JsonObject([(keys[0], names[0]), (keys[1], data[names[0]])])
    found = ", ".join(map(shown, list(data)[:8])) or "none"
    raise _error("malformed", "wrong_keys", number=number, found=found)


def _contract(
    name: str, tools: Sequence[ToolContract], number: int, receipts: list[Receipt]
) -> ToolContract:
    exact = next((tool for tool in tools if tool.name == name), None)
    if exact is not None:
        return exact
    known = [tool.name for tool in tools]
    found = _candidates(name, tools)
    if len(found) == 1:
        what = f"read the name {name!r} as {found[0].name!r}"
        receipts.append(Receipt("call", what, f"ACTION {number}", 1))
        return found[0]
    if _PLACEHOLDER.fullmatch(name.strip()):
        raise _error("unknown_tool", "placeholder", number=number, known=", ".join(known) or "none")
    close = [tool.name for tool in found] or _parts_of(name, known) or closest(name, known)
    raise _error(
        "unknown_tool",
        "unknown_tool",
        number=number,
        tool=shown(name),
        close=" or ".join(close),
        known=", ".join(known) or "none",
    )


def _candidates(name: str, tools: Sequence[ToolContract]) -> list[ToolContract]:
    """The tools that ``name`` may mean: those of that name, else of that name spelled otherwise."""
    exact = [tool for tool in tools if tool.name == name]
    if exact:
        return exact
    bare = name.strip(" \t\r\n`'\"*").removesuffix("()")
    for prefix in ("", *_PREFIXES):
        if bare.startswith(prefix):
            plain = _plain(bare[len(prefix) :])
            found = [tool for tool in tools if plain and _plain(tool.name) == plain]
            if found:
                return found
    return []


def _plain(name: str) -> str:
    """A name without what spellings differ in: case, underscores, hyphens, blanks."""
    return re.sub(r"[\s_\\-]", "", name).casefold()


def _parts_of(name: str, known: Sequence[str]) -> list[str]:
    """Names that hold ``name`` as a whole part, such as ``mail.send`` for ``send``."""
    return [other for other in known if name in re.split(r"[._\-/:]", other)]


def _input(
    params: Any, contract: ToolContract, number: int, receipts: list[Receipt]
) -> Mapping[str, Any]:
    """The object of parameters, out of what else stands in its place."""
    where = contract.name
    if params is None or params in ("", []):
        receipts.append(Receipt("call", "took missing params as none", where))
        return {}
    if isinstance(params, str):
        params = _decoded(params, contract, number, receipts)
    if isinstance(params, list) and len(params) == 1 and isinstance(params[0], dict):
        receipts.append(Receipt("call", "took a list around the params away", where, 1))
        (params,) = params
    if not isinstance(params, dict):
        raise _not_params(params, contract, number)
    if len(params) == 1:
        ((key, inner),) = params.items()
        if key in _PARAMS_KEYS and key not in contract.properties and isinstance(inner, dict):
            receipts.append(Receipt("call", f"took a second {key!r} away", where, 1))
            return inner
    return params


def _decoded(text: str, contract: ToolContract, number: int, receipts: list[Receipt]) -> Any:
    """Input that was written as a string: JSON, or the only parameter that is needed."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value, more = read_value(text)
        except ValueError:
            raise _not_params(text, contract, number) from None
        what = "decoded params that were written as a string"
        receipts += [*more, Receipt("call", what, contract.name)]
        return value
    only = contract.required if contract.required else tuple(contract.properties)
    if len(only) != 1 or not _is_plain_text(text, contract):
        raise _not_params(text, contract, number)
    schema = contract.properties[only[0]]
    if not isinstance(schema, Mapping) or schema.get("type") != "string":
        raise _not_params(text, contract, number)
    what = f"took the text as {only[0]!r}, the only parameter that is needed"
    receipts.append(Receipt("call", what, contract.name, 1))
    return {only[0]: text}


def _is_plain_text(text: str, contract: ToolContract) -> bool:
    """Whether ``text`` is a value and nothing else: it names no parameter, and is no stand-in."""
    bare = text.strip().strip("'\"`()")
    if is_placeholder(bare) or _PLACEHOLDER.search(bare):
        return False
    named = re.compile(r"(?:^|[\s,;({'\"`-])([\w.-]+)['\"`]?\s*[=:：]|--?([\w-]+)")
    names = {_plain(name) for name in contract.properties}
    return all(_plain(match[1] or match[2]) not in names for match in named.finditer(text))


def _beside_the_name(
    data: Mapping[str, Any], contract: ToolContract, receipts: list[Receipt]
) -> Mapping[str, Any]:
    """Parameters that stand beside the tool's name instead of in ``params``."""
    rest = {key: value for key, value in data.items() if key.casefold() not in _NAME_KEYS}
    commentary = {
        key for key, value in rest.items() if not contract.takes(key) and _is_commentary(key, value)
    }
    params = JsonObject([(key, rest[key]) for key in rest if key not in commentary])
    if isinstance(data, JsonObject):
        params.repeated = {key: data.repeated[key] for key in params if key in data.repeated}
    if params:
        what = "read the keys beside the tool's name as its params"
        receipts.append(Receipt("call", what, contract.name, 1))
    else:
        receipts.append(Receipt("call", "took missing params as none", contract.name))
    _note_commentary(commentary, contract, receipts)
    return params


def closest(name: str, known: Sequence[str]) -> list[str]:
    """The known name that is most like ``name``, if one is."""
    return difflib.get_close_matches(name, known, n=1)


def shown(value: Any) -> str:
    """A value as JSON, shortened."""
    return clipped(json.dumps(value, ensure_ascii=False))


def clipped(text: str) -> str:
    """``text``, shortened for a message."""
    return text if len(text) <= 80 else text[:77] + "..."


def _not_params(params: Any, contract: ToolContract, number: int) -> ProtocolError:
    return _error(
        "bad_params",
        "params_not_object",
        contract,
        number=number,
        names=", ".join(contract.properties) or "no keys",
        found=shown(params),
    )


def _error(
    error_kind: str, key: str, contract: ToolContract | None = None, /, **values: Any
) -> ProtocolError:
    if contract is not None:
        values["tool"] = contract.name
    tool = contract.name if contract is not None else None
    return ProtocolError(message("errors", key, **values), kind=error_kind, tool=tool)
