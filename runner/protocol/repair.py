"""Reads the JSON of one ACTION: strictly where it is valid, by json-repair where it is broken.

A repair is a proposal. It is taken only when it changed the structure and nothing else: the text
did not end early, its words and figures are all there again in the same order, and every string
stands in the text just as it was read. Whatever is in doubt goes back to the model as an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import json_repair

from runner.core.conversation import Receipt
from runner.core.errors import ProtocolError
from runner.protocol.messages import message

_LARGEST = 200_000
_DEEPEST = 64
_LARGEST_REPAIR = 8_000
_MOST_STRINGS = 400
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'", re.DOTALL)
# In a broken text, `\b` may be the letter b of a Windows path as well as a backspace.
_DOUBTFUL_ESCAPE = re.compile(r"\\[^\"\\/n]")
_SINGLE_QUOTES = re.compile(r"[{\[:,]\s*'")
_PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}


def read_json(payload: str, number: int) -> tuple[Any, list[Receipt]]:
    """The value of the text behind ``ACTION:``, and receipts for what had to be changed.

    Parameters
    ----------
    number
        Number of the ACTION in its turn, for messages.

    Raises
    ------
    ProtocolError
        There is no JSON, it is too large, or it cannot be read without guessing.
    """
    where = f"ACTION {number}"
    if "{" not in payload:
        raise ProtocolError(message("errors", "no_json", number=number), kind="malformed")
    if len(payload) > _LARGEST or _depth(payload) > _DEEPEST:
        raise ProtocolError(message("errors", "too_large", number=number), kind="too_large")
    receipts = []
    inner = _without_fence(payload)
    if inner != payload:
        payload = inner
        receipts.append(Receipt("json-repair", "took the code fence away", where))
    try:
        return strict_json(payload), receipts
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos + 1}"
    except ValueError as error:
        raise _malformed(str(error), number) from error
    try:
        value = strict_json(payload, control_characters=True)
    except ValueError:
        value = _repaired(payload)
        if value is None or not _same_content(value, payload):
            raise _malformed(problem, number) from None
    receipts.append(Receipt("json-repair", f"structure ({problem})", where))
    return value, receipts


def strict_json(text: str, *, control_characters: bool = False) -> Any:
    """`json.loads` without its leniencies.

    Parameters
    ----------
    control_characters
        Take line breaks and tabs inside strings as they stand.

    Raises
    ------
    ValueError
        Not valid JSON, a key twice with different values, NaN or infinity, a lone surrogate,
        or an integer of more digits than Python reads.
    """
    value = json.loads(
        text,
        strict=not control_characters,
        object_pairs_hook=_unique,
        parse_constant=_not_finite,
        parse_float=_finite,
    )
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(message("details", "surrogate")) from error
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        # As text, since Python takes 1 and true for equal.
        if key in found and json.dumps(found[key]) != json.dumps(value):
            raise ValueError(message("details", "duplicate", key=json.dumps(key)))
        found[key] = value
    return found


def _not_finite(text: str) -> Any:
    raise ValueError(message("details", "not_finite", value=text))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(message("details", "not_finite", value=text))
    return value


def _without_fence(payload: str) -> str:
    """The inside of a code fence or of backticks around the whole payload."""
    if payload.startswith("```") and payload.endswith("```") and len(payload) > 6:
        return payload[3:-3].lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").strip()
    if payload.startswith("`") and payload.endswith("`"):
        return payload.strip("`")
    return payload


def _repaired(payload: str) -> Any:
    """What json-repair proposes, where it proposes an object."""
    if len(payload) > _LARGEST_REPAIR:
        return None
    try:
        value = json_repair.loads(payload, skip_json_loads=True)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (RecursionError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _same_content(value: Any, payload: str) -> bool:
    """Whether ``value`` is ``payload`` with nothing but its structure changed."""
    if not payload.rstrip().endswith("}") or _DOUBTFUL_ESCAPE.search(payload):
        return False
    if _words(json.dumps(value, ensure_ascii=False)) != _words(payload):
        return False
    if not _same_structure(json.dumps(value, ensure_ascii=False), payload):
        return False
    strings = list(_strings(value))
    if len(strings) > _MOST_STRINGS:
        return False
    quotes = sum(string.count('"') for string in strings)
    if quotes != payload.count('\\"'):
        return False
    if _SINGLE_QUOTES.search(payload) and any("'" in string for string in strings):
        return False
    return all(_stands_in(string, payload) for string in strings)


def _same_structure(dumped: str, payload: str) -> bool:
    """Whether brackets and colons come in the same order, but for closing ones at the very end."""
    ours, theirs = (re.sub(r"[^{}\[\]:]", "", _QUOTED.sub("", text)) for text in (dumped, payload))
    short, long = sorted((ours, theirs), key=len)
    return long.startswith(short) and not long[len(short) :].strip("}]")


def _stands_in(string: str, payload: str) -> bool:
    """Whether a string is there as it was read, between quotes or bare."""
    inner = re.escape(json.dumps(string, ensure_ascii=False)[1:-1])
    for quote in ('"', "'"):
        if re.search(f"(?<!{quote}){quote}{inner}{quote}(?!{quote})", payload):
            return True
    bare = rf"[{{\[:,]\s*{re.escape(string)}\s*[,}}\]:]"
    return bool(string) and re.search(bare, payload) is not None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _words(text: str) -> list[str]:
    """Words and figures of a JSON-like text, in order, without what repair may change."""
    text = re.sub(r"\\[nrtbf]", " ", text)
    for json_word, python_word in _PYTHON_WORDS.items():
        text = re.sub(rf"\b{python_word}\b", json_word, text)
    return re.findall(r"[^\s\"'\\{}\[\]:,`]+", text)


def _depth(text: str) -> int:
    """Most brackets that are open at once; brackets in strings count too, which is safe."""
    depth = deepest = 0
    for character in text:
        if character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]" and depth:
            depth -= 1
    return deepest


def _malformed(problem: str, number: int) -> ProtocolError:
    text = message("errors", "malformed", number=number, detail=problem)
    return ProtocolError(text, kind="malformed")
