"""Reads a model's turn: its blocks, then the JSON of each ACTION, then the contract."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runner.core.contract import ToolContract
from runner.core.conversation import ModelTurn, Receipt, StopReason, ToolCall
from runner.core.errors import ProtocolError
from runner.protocol.call import is_tool
from runner.protocol.coerce import check_call
from runner.protocol.dialects import Dialect, find_dialect
from runner.protocol.json_text import strict_json
from runner.protocol.messages import message, speaking
from runner.protocol.outline import WHITE, Outline
from runner.protocol.payload import read_payload
from runner.protocol.shadow import MOST_CALLS

LARGEST = 2**20
"""Most characters of a reply."""
_FOREIGN = re.compile(
    r"<function=|<｜tool|<invoke\b|<tool_use|<start_function_call>|<function_call\b|```tool_code"
)

_CUT: dict[StopReason, str] = {
    "length": "the token limit cut it off",
    "degenerate": "it began to repeat itself",
    "cancelled": "it was stopped",
}


def parse_turn(
    text: str,
    tools: Sequence[ToolContract],
    stop: StopReason = "end",
    *,
    first_call: int = 1,
    dialect: str = "action",
) -> ModelTurn:
    """Read one whole turn.

    Parameters
    ----------
    text
        What the model wrote.
    tools
        Contracts that its calls are checked against.
    stop
        Why the text ended. Text that was cut off (``length``, ``cancelled``) or only repeats
        itself (``degenerate``) never yields a call.
    first_call
        Number of the first call, for its id: ``c<number>``.
    dialect
        How the turn is spelled; see `runner.protocol.dialects`.

    Returns
    -------
    ModelTurn
        Calls or an answer; ``receipts`` say what had to be changed to read it.

    Raises
    ------
    ProtocolError
        It is neither. ``str(error)`` is the message for the model.
    ConfigError
        There is no such dialect.
    """
    spelling = find_dialect(dialect)
    with speaking(spelling):
        return _turn(text, tools, stop, first_call, spelling)


def _turn(
    text: str,
    tools: Sequence[ToolContract],
    stop: StopReason,
    first_call: int,
    dialect: Dialect,
) -> ModelTurn:
    if not text.strip(WHITE):
        raise _error("empty")
    if len(text) > LARGEST:
        raise _error("too_long", "too_large", most=f"{LARGEST:,}")
    found = dialect.outline(text)
    if stop == "degenerate" and (found.answer is None or dialect.plain_answers):
        raise _error("repeating", "truncated")
    if found.unclosed and (found.actions or found.answer is not None):
        raise _error("thinking", "malformed")
    if (found.actions and found.answer is not None) or found.action_in_answer:
        raise _error("mixed")
    if not found.actions and not found.invented:
        found = _bare_call(found, tools, dialect) or found
    if found.answer is not None:
        return _answer(found, stop)
    if found.actions:
        return _calls(found, tools, stop, first_call, dialect)
    if found.invented:
        raise _error("invented")
    raise _error("foreign_turn" if _FOREIGN.search(text) else "no_marker", "no_marker")


def _answer(found: Outline, stop: StopReason) -> ModelTurn:
    assert found.answer is not None
    if not found.answer:
        raise _error("empty_answer", "empty")
    if _holds_json(found.text):
        raise _error("invented_json", "invented")
    receipts = list(found.receipts)
    if stop in _CUT:
        receipts.append(Receipt("cut", f"the answer is not complete: {_CUT[stop]}"))
    return ModelTurn(found.thought, (), found.answer, tuple(receipts))


def _calls(
    found: Outline,
    tools: Sequence[ToolContract],
    stop: StopReason,
    first_call: int,
    dialect: Dialect,
) -> ModelTurn:
    if stop in _CUT and not found.invented and not found.cut_off:
        raise _error("truncated", number=len(found.actions))
    calls: list[ToolCall] = []
    receipts = list(found.receipts)
    keys = (dialect.name_key, dialect.params_key)
    for text in found.actions:
        for payload in read_payload(text, len(calls) + 1, lambda name: is_tool(name, tools)):
            number = len(calls) + 1
            if number > MOST_CALLS:
                raise _error("too_many", found=number, most=MOST_CALLS)
            name, params, more = check_call(payload, tools, number, keys)
            call = ToolCall(f"c{first_call + number - 1}", name, params)
            receipts += [replace(receipt, call=call.id) for receipt in more]
            calls.append(call)
    return ModelTurn(found.thought, tuple(calls), None, tuple(receipts))


def _bare_call(found: Outline, tools: Sequence[ToolContract], dialect: Dialect) -> Outline | None:
    """A reply that is nothing but the JSON of a call to a known tool, without its marker."""
    text = (found.answer or "" if dialect.plain_answers else found.text).strip(WHITE)
    if found.thoughts or found.unclosed or not re.match(r"[{\[`~]", text):
        return None
    try:
        payloads = read_payload(text, 1)
    except ProtocolError:
        return None
    for payload in payloads:
        # Only what is a call beyond doubt; data with a key `name` is none.
        receipts = list(payload.receipts)
        try:
            receipts += check_call(payload, tools, 1, (dialect.name_key, dialect.params_key))[2]
        except ProtocolError as error:
            if error.tool is None:
                return None
        if any(receipt.cost or receipt.what.startswith("left out") for receipt in receipts):
            return None
    receipt = Receipt("turn", "took a call without its marker", cost=1)
    return replace(found, text="", answer=None, actions=[text], receipts=[receipt])


def _holds_json(text: str) -> bool:
    """Whether a line or a code fence of ``text`` is a JSON object or array."""
    parts = [line for line in text.splitlines() if line.strip()[:1] in ("{", "[")]
    parts += re.findall(r"(?ms)^```[^\n]*\n(.*?)^```", text)
    for part in parts:
        try:
            value = strict_json(part)
            if isinstance(value, dict) or (isinstance(value, list) and dict in map(type, value)):
                return True
        except ValueError:
            continue
    return False


def _error(key: str, kind: str | None = None, /, **values: Any) -> ProtocolError:
    return ProtocolError(message("errors", key, **values), kind=kind or key)
