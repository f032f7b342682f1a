"""The last step of the ladder: what json-repair proposes for a broken text.

A repair is a proposal. It is taken only when it moved nothing but commas between members: every
string, word, number, bracket and colon of the text is there again, alone and in the same order.
Whatever is in doubt goes back to the model as an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import json_repair

from runner.protocol.json_text import strict_json

_LARGEST_REPAIR = 8_000
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_PLAIN_STRING = re.compile(r"'[^'\\\"\n]*'")
_TOKEN = re.compile(
    rf"\s*(?:(?P<string>{_STRING.pattern}|{_PLAIN_STRING.pattern})"
    r"|(?P<sign>[{}\[\],:])|(?P<word>[^\s\"'`\\{}\[\],:]+))",
    re.DOTALL,
)
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}

Token = tuple[str, str]
"""What it is, ``string``, ``word`` or ``sign``, and what it says."""


def proposal(payload: str) -> Any:
    """What json-repair makes of ``payload``, or None where more than commas changed."""
    value = _repaired(payload)
    if value is None:
        return None
    tokens = _tokens(payload)
    return value if tokens is not None and _adds_only_commas(tokens, list(_told(value))) else None


def _repaired(payload: str) -> Any:
    """What json-repair proposes, where it proposes an object."""
    if len(payload) > _LARGEST_REPAIR:
        return None
    try:
        value = json_repair.loads(payload, skip_json_loads=True)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except Exception:  # noqa: BLE001 - it may raise anything, and then it has no proposal
        return None
    return value if isinstance(value, dict) else None


def _tokens(payload: str) -> list[Token] | None:
    """The tokens of a text, or None where there is a quote too many, or a doubtful escape."""
    found: list[Token] = []
    at = 0
    payload = payload.rstrip()
    while at < len(payload):
        match = _TOKEN.match(payload, at)
        if match is None:
            return None
        kind, text = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "string":
            try:
                text = strict_json(text if text[0] == '"' else f'"{text[1:-1]}"')
            except ValueError:
                return None
        elif kind == "word":
            text = _PYTHON_WORDS.get(text, text)
        found.append((kind, text))
        at = match.end()
    return found


def _told(value: Any) -> Iterator[Token]:
    """The tokens of a value."""
    if isinstance(value, dict):
        yield "sign", "{"
        for i, (key, inner) in enumerate(value.items()):
            if i:
                yield "sign", ","
            yield "string", key
            yield "sign", ":"
            yield from _told(inner)
        yield "sign", "}"
    elif isinstance(value, list):
        yield "sign", "["
        for i, inner in enumerate(value):
            if i:
                yield "sign", ","
            yield from _told(inner)
        yield "sign", "]"
    elif isinstance(value, str):
        yield "string", value
    else:
        yield "word", json.dumps(value)


def _adds_only_commas(written: list[Token], told: list[Token]) -> bool:
    """Whether the two differ in commas before keys and closing brackets, and in quotes of keys."""
    i = 0
    for j, token in enumerate(told):
        is_key = told[j + 1 : j + 2] == [("sign", ":")]
        if token in (("sign", "}"), ("sign", "]")) and written[i : i + 1] == [("sign", ",")]:
            i += 1
        here = written[i] if i < len(written) else ("", "")
        if here == token or (is_key and here == ("word", token[1])):
            i += 1
        elif token != ("sign", ",") or told[j + 2 : j + 3] != [("sign", ":")]:
            return False
    return i == len(written)
