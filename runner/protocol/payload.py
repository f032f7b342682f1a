"""Reads what stands behind ``ACTION:``: the ladder from strict JSON to a repair that is proposed.

Each step is tried only where the one before it failed: valid JSON is never touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runner.core.conversation import Receipt
from runner.core.errors import ProtocolError
from runner.protocol.diagnose import diagnose, missing_comma, place_at
from runner.protocol.doubt import is_doubted
from runner.protocol.json_text import JsonObject, is_too_deep, strict_json, strict_json_at
from runner.protocol.messages import message
from runner.protocol.named_call import named_call
from runner.protocol.relaxed import ENDS_EARLY, read_relaxed_at
from runner.protocol.relaxed_strings import UNESCAPED
from runner.protocol.relaxed_tokens import RelaxedError
from runner.protocol.repair import proposal
from runner.protocol.shadow import MOST_CALLS
from runner.protocol.unwrap import respelled, unwrapped

_FOREIGN = re.compile(r"<function\b|<invoke\b|<parameter\b|<｜tool|<tool_use|<start_function_call>")
_TEMPLATE = re.compile(r'"(?:tool|name)"\s*:\s*"<[^"<>]+>"|\{\s*(?:\.\.\.|…)\s*\}')
# A key, a bracket or an assignment: text with one of these is no mere remark.
_STRUCTURE = re.compile(r"""["'“”][^"'“”\n]*["'“”]\s*[:：]|[{\[｛［]|=""")
_HARMLESS_TAIL = re.compile(r"[\s}\]｝］)`;,.*_]*")
# The beginning of a marker, where a stop string was cut.
_HALF_MARKER = re.compile(r"\s*(?:\w{1,12}|[*_#]{1,3}\w{0,12})?[:：]?\s*")
_MARKERS = ("OBSERVATION", "ACTION", "ANSWER", "THOUGHT", "FINAL ANSWER")
_SHOUTED = re.compile(r"\b(?:ACTION|ANSWER|OBSERVATION)\b[ \t]*[:：]")
_SEPARATOR = re.compile(r"\s*[,;]?\s*")


@dataclass(frozen=True)
class Payload:
    """One call as it was read, before its shape and its contract are looked at.

    ``cut`` says that closing brackets were missing at the end of the text, ``tail`` is what stood
    behind the JSON and was dropped.
    """

    data: Any
    receipts: tuple[Receipt, ...] = ()
    cut: bool = False
    tail: str = ""


def read_payload(
    text: str, number: int, known: Callable[[str], bool] = lambda name: False
) -> list[Payload]:
    """The calls in the text behind one ACTION marker.

    Parameters
    ----------
    number
        Number of the first of them in its turn, for messages.
    known
        Whether a name is that of a tool; decides whether ``name(...)`` is a call.

    Raises
    ------
    ProtocolError
        There is no call, it is too large, or it cannot be read without guessing.
    """
    if is_too_deep(text):
        raise _error("too_large", "too_large", number=number)
    try:
        return _entries(strict_json(text), [])
    except ValueError:
        pass
    text, changes = unwrapped(text)
    receipts = [_receipt(change, number) for change in changes]
    if not text:
        raise _error("malformed", "no_json", number=number)
    if text[0] in '{[｛［"':
        return _sequence(text, number, receipts)
    if _FOREIGN.search(text):
        raise _error("malformed", "foreign", number=number)
    return _named(text, number, known, receipts) or _behind_text(text, number, receipts)


def read_value(text: str) -> tuple[Any, list[Receipt]]:
    """The value of a text that should be JSON and nothing else: strictly, then as relaxed JSON.

    Raises
    ------
    ValueError
        It is neither, or could mean two things.
    """
    try:
        return strict_json(text), []
    except ValueError:
        value, end, receipts = read_relaxed_at(text, 0)
        if text[end:].strip():
            raise RelaxedError("there is more text behind the value", end) from None
        return value, receipts


def _named(
    text: str, number: int, known: Callable[[str], bool], receipts: list[Receipt]
) -> list[Payload]:
    """A call that is written as a name with its input."""
    try:
        call = named_call(text, known)
    except ValueError as error:
        raise _malformed(text, number, str(error), doubt=True) from error
    if call is None:
        return []
    inner = [Payload(call.value)]
    if call.json is not None:
        inner = _sequence(call.json, number, receipts)
        if len(inner) > 1:
            raise _malformed(text, number, message("details", "behind"), doubt=True)
    what = _receipt("read a name and its input as a call", number, cost=call.cost)
    data = JsonObject([("tool", call.name), ("params", inner[0].data)])
    return [replace(inner[0], data=data, receipts=(*receipts, *inner[0].receipts, what))]


def _behind_text(text: str, number: int, receipts: list[Receipt]) -> list[Payload]:
    """One call behind words that are no part of it."""
    start = re.search(r"[{｛]", text)
    if start is None:
        found = json.dumps(text if len(text) <= 60 else text[:57] + "...", ensure_ascii=False)
        raise _error("malformed", "no_object", number=number, found=found)
    if _STRUCTURE.search(text[: start.start()]):
        raise _malformed(text, number, "it does not begin with {", doubt=True)
    if is_doubted(text[: start.start()]):
        raise _error("taken_back", "taken_back", number=number)
    receipts = [*receipts, _receipt("skipped text before the JSON", number, cost=1)]
    calls = _sequence(text[start.start() :], number, receipts)
    if len(calls) > 1:
        raise _malformed(text, number, "there is text before it, and more than one object behind")
    return calls


def _sequence(text: str, number: int, receipts: list[Receipt]) -> list[Payload]:
    """One value, or several behind each other, and what may stand behind them."""
    found: list[Payload] = []
    at = 0
    while True:
        value, end, more, cut = _first_value(text, at, number + len(found))
        found += _entries(value, [*receipts, *more], cut=cut)
        receipts = []
        if len(found) > MOST_CALLS:
            raise _error("too_many", "too_many", found=len(found), most=MOST_CALLS)
        following = _SEPARATOR.match(text, end)
        at = following.end() if following else end
        if not text.startswith(("{", "｛"), at):
            break
    tail = text[end:]
    if _HARMLESS_TAIL.fullmatch(tail):
        if tail.strip():
            receipts = [_receipt("took surplus brackets or signs away", number)]
    elif _STRUCTURE.search(tail) or _SHOUTED.search(tail):
        raise _malformed(text, number, message("details", "behind"), doubt=True)
    elif is_doubted(tail):
        raise _error("taken_back", "taken_back", number=number)
    else:
        cost = 0 if _is_half_marker(tail) else 1
        receipts = [_receipt("dropped text behind the JSON", number, cost=cost)]
    last = found[-1]
    tail = "" if _HARMLESS_TAIL.fullmatch(tail) or _is_half_marker(tail) else tail
    return [*found[:-1], replace(last, receipts=(*last.receipts, *receipts), tail=tail)]


def _is_half_marker(tail: str) -> bool:
    word = tail.strip(" \t\r\n*_#:：").upper()
    return _HALF_MARKER.fullmatch(tail) is not None and any(m.startswith(word) for m in _MARKERS)


def _first_value(text: str, at: int, number: int) -> tuple[Any, int, list[Receipt], bool]:
    """The value that begins at ``at``, by the first step of the ladder that reads it."""
    where = f"ACTION {number}"
    doubt = False
    try:
        value, end = strict_json_at(text, at)
        return value, end, [], False
    except json.JSONDecodeError as error:
        problem, position = error.msg, error.pos
    except ValueError as error:
        problem, position = str(error), at
    try:
        value, end, receipts = read_relaxed_at(text, at, mend=True)
        cut = any(receipt.what.startswith("added '") for receipt in receipts)
        return value, end, [replace(receipt, where=where) for receipt in receipts], cut
    except RelaxedError as error:
        if str(error) != ENDS_EARLY:
            problem, position, doubt = str(error), error.at, error.doubt
    rest = text[at:]
    if doubt and UNESCAPED in problem and (found := missing_comma(rest)):
        problem, position = found, at
    for spelled, what in respelled(rest):
        try:
            value, receipts = read_value(spelled)
        except ValueError:
            continue
        receipts = [_receipt(what, number, cost=1), *(replace(r, where=where) for r in receipts)]
        return value, len(text), receipts, False
    value = None if doubt else proposal(rest)
    if value is not None:
        what = f"took the structure that json-repair proposes ({problem})"
        return value, len(text), [Receipt("json-repair", what, where, cost=2)], False
    raise _malformed(rest, number, problem, position - at, doubt=doubt)


def _entries(value: Any, receipts: Sequence[Receipt], *, cut: bool = False) -> list[Payload]:
    """The calls of a value: a list that holds objects is as many calls."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        first = Receipt("call", "read a list as one call for each object")
        # Which of the calls a guess was about is not known, so it touches each of them.
        guesses = tuple(receipt for receipt in receipts if receipt.cost)
        rest = [Payload(item, guesses, cut) for item in value[1:]]
        return [Payload(value[0], (*receipts, first), cut), *rest]
    return [Payload(value, tuple(receipts), cut)]


def _receipt(what: str, number: int, *, cost: int = 0) -> Receipt:
    return Receipt("call", what, f"ACTION {number}", cost)


def _malformed(
    text: str, number: int, problem: str, at: int = 0, *, doubt: bool = False
) -> ProtocolError:
    """The error for JSON that cannot be read; ``doubt`` where ``problem`` says all there is."""
    if _TEMPLATE.search(text):
        return _error("malformed", "template", number=number)
    detail, cut = (f"{place_at(text, at)}: {problem}" if at else problem), False
    if not doubt:
        detail, cut = diagnose(text, f"{problem} at character {at + 1}", at)
    key, kind = ("cut_json", "truncated") if cut else ("malformed", "malformed")
    return _error(kind, key, number=number, detail=detail)


def _error(kind: str, key: str, /, **values: Any) -> ProtocolError:
    return ProtocolError(message("errors", key, **values), kind=kind)
