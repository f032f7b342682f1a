"""The last step of the ladder: what json-repair proposes for a broken text.

A repair is a proposal. It is taken only when it changed the structure and nothing else: the text
did not end early, its words and figures are all there again in the same order, and every string
stands in the text just as it was read. Whatever is in doubt goes back to the model as an error.
"""

from __future__ import annotations

import json
import re
from typing import Any

import json_repair

from runner.protocol.json_text import strings_in

_LARGEST_REPAIR = 8_000
_MOST_STRINGS = 400
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'", re.DOTALL)
# In a broken text, `\b` may be the letter b of a Windows path as well as a backspace.
_DOUBTFUL_ESCAPE = re.compile(r"\\[^\"\\/n]")
_EMPTY_SLOT = re.compile(r"[,\[{]\s*,")
_SINGLE_QUOTES = re.compile(r"[{\[:,]\s*'")
_PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}


def proposal(payload: str) -> Any:
    """What json-repair makes of ``payload``, or None where more than structure changed."""
    value = _repaired(payload)
    return value if value is not None and _same_content(value, payload) else None


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
    if _EMPTY_SLOT.search(_QUOTED.sub("x", payload)):
        return False
    if _words(json.dumps(value, ensure_ascii=False)) != _words(payload):
        return False
    if not _same_structure(json.dumps(value, ensure_ascii=False), payload):
        return False
    strings = list(strings_in(value))
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


def _words(text: str) -> list[str]:
    """Words and figures of a JSON-like text, in order, without what repair may change."""
    text = re.sub(r"\\[nrtbf]", " ", text)
    for json_word, python_word in _PYTHON_WORDS.items():
        text = re.sub(rf"\b{python_word}\b", json_word, text)
    return re.findall(r"[^\s\"'\\{}\[\]:,`]+", text)
