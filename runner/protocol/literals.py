"""Fixed text in GBNF: literals, and JSON values in the spellings that mean the same."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

_ANY_ORDER = 3


@dataclass(frozen=True)
class _Gbnf:
    """A piece of a value that is no fixed text."""

    text: str


def literal(text: str) -> str:
    """A GBNF literal for ``text``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def dump(value: Any) -> str:
    """JSON as the protocol spells it."""
    return json.dumps(value, ensure_ascii=False)


def value_text(value: Any) -> str:
    """A GBNF expression for a JSON value, in the spellings that mean the same.

    Integers also with ``.0``, and the keys of small objects in any order.
    """
    return _written(_parts(_plain(value)))


def _written(parts: list[str | _Gbnf]) -> str:
    texts: list[str] = []
    fixed = ""
    for part in parts:
        if isinstance(part, _Gbnf):
            texts += [literal(fixed)] if fixed else []
            texts.append(part.text)
            fixed = ""
        else:
            fixed += part
    return " ".join([*texts, literal(fixed)] if fixed else texts)


def _parts(value: Any) -> list[str | _Gbnf]:
    """Fixed text and GBNF, one after the other."""
    if isinstance(value, list):
        items = [part for item in value for part in (", ", *_parts(item))]
        return ["[", *items[1:], "]"]
    if isinstance(value, dict):
        orders = permutations(value) if 1 < len(value) <= _ANY_ORDER else [tuple(value)]
        texts = []
        for keys in orders:
            pairs = [part for key in keys for part in (", ", f"{dump(key)}: ", *_parts(value[key]))]
            texts.append(pairs[1:])
        if len(texts) == 1:
            return ["{", *texts[0], "}"]
        return ["{", _Gbnf(f"( {' | '.join(map(_written, texts))} )"), "}"]
    if isinstance(value, int) and not isinstance(value, bool):
        return [dump(value), _Gbnf('( ".0" )?')]
    return [dump(value)]


def _plain(value: Any) -> Any:
    """The value with whole floats as integers, as far as both have a spelling to read."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value) if abs(value) < 1e30 else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
