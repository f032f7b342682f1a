"""Strict JSON, read without losing what the contract must judge.

Nothing is decided here: a key that is given twice, a number that is too large for a float, and how
a number was spelled are kept for `runner.protocol.coerce`.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 64
"""Most brackets that may be open at once."""
# An open string reaches to the end of the text, so that no place is looked at twice.
_STRING = re.compile(r'\\.|"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


class JsonObject(dict[str, Any]):
    """An object that remembers keys which were given more than once.

    ``repeated`` maps such a key to whether its values differ.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: dict[str, bool] = {}
        if len(self) == len(pairs):
            return
        first: dict[str, str] = {}
        for key, value in pairs:
            # As text, since Python takes 1 and true for equal, and 1.10 and 1.1.
            text = getattr(value, "text", None) or repr(value)
            if key in first:
                self.repeated[key] = self.repeated.get(key, False) or first[key] != text
            first.setdefault(key, text)


class JsonNumber(float):
    """A number with a fraction or an exponent, and the ``text`` that it was written as."""

    text: str

    def __new__(cls, text: str) -> JsonNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number


class JsonInteger(int):
    """An integer that is not spelled as Python writes it, such as ``-0``, and its ``text``."""

    text: str

    def __new__(cls, value: int, text: str = "") -> JsonInteger:
        number = super().__new__(cls, value)
        number.text = text
        return number


def integer(text: str, value: int | None = None) -> int:
    """The integer that ``text`` spells, as a `JsonInteger` where Python would write it otherwise.

    Parameters
    ----------
    value
        What it is, where the text is not decimal.

    Raises
    ------
    ValueError
        It has more digits than Python writes.
    """
    number = int(text) if value is None else value
    return number if str(number) == text else JsonInteger(number, text)


def strict_json(text: str, *, control_characters: bool = False) -> Any:
    """The value of a JSON text (RFC 8259): `json.loads` without NaN and infinity.

    Parameters
    ----------
    control_characters
        Take line breaks and tabs inside strings as they stand.

    Raises
    ------
    ValueError
        Not valid JSON, nested deeper than Python reads, or an integer with too many digits.
    """
    value, end = strict_json_at(text, _skip(text, 0), control_characters=control_characters)
    end = _skip(text, end)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def strict_json_at(text: str, start: int, *, control_characters: bool = False) -> tuple[Any, int]:
    """The JSON value that begins at ``start``, and where it ends; see `strict_json`."""
    decoder = _TOLERANT if control_characters else _STRICT
    try:
        return decoder.raw_decode(text, start)
    except StopIteration as error:
        raise json.JSONDecodeError("Expecting value", text, start) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def is_too_deep(text: str) -> bool:
    """Whether more than 64 brackets are open at once in a JSON-like text, outside its strings."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    now = 0
    for character in _STRING.sub("", text):
        if character in "{[":
            now += 1
            if now > DEEPEST:
                return True
        elif character in "}]" and now:
            now -= 1
    return False


def _not_finite(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        strict=strict,
        object_pairs_hook=JsonObject,
        parse_constant=_not_finite,
        parse_float=JsonNumber,
        parse_int=integer,
    )


_STRICT = _decoder(strict=True)
_TOLERANT = _decoder(strict=False)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
