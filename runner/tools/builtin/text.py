"""Text for models: safe characters, plain counts."""

from __future__ import annotations

import re

from pydantic import JsonValue

# C0 and C1 controls but newline and tab, the line separators, and halves of surrogate pairs.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def safe(text: str) -> str:
    r"""``text`` with characters that could confuse a reader shown as escapes such as ``\x1b``.

    A byte of a file name that is not UTF-8 is shown as that byte.
    """
    return _UNSAFE.sub(_escape, text)


def one_line(text: str, most: int = 200) -> str:
    """``text`` as `safe` shows it, on one line of at most ``most`` characters."""
    line = safe(text.replace("\n", "\\n").replace("\t", "\\t"))
    return line if len(line) <= most else f"{line[: most - 3]}..."


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 line``, ``3,021 lines``, ``2 matches``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte of a name that is not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def longest(characters: int) -> dict[str, JsonValue]:
    """Schema of a text's greatest length: with it, a grammar closes a text that rambles on."""
    return {"maxLength": characters}
