"""Sets of characters, and how they are written as part of a JSON text in GBNF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Ranges = tuple[tuple[int, int], ...]
"""Code points, both ends included; sorted, apart from each other."""

LAST = 0x10FFFF
_SHORT = {0x22: '"', 0x5C: "\\", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t"}
_ESCAPED = (*range(0x20), 0x22, 0x5C, 0x7F)
_SPECIAL = frozenset(map(ord, '\\]^-["'))


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted and joined."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def inverse(taken: Ranges) -> Ranges:
    """All other code points."""
    left, at = [], 0
    for low, high in taken:
        if low > at:
            left.append((at, low - 1))
        at = high + 1
    return (*left, (at, LAST)) if at <= LAST else tuple(left)


def contains(taken: Ranges, point: int) -> bool:
    return any(low <= point <= high for low, high in taken)


def characters(text: str) -> Ranges:
    return ranges((ord(character), ord(character)) for character in text)


def json_unit(taken: Ranges) -> str | None:
    """A GBNF expression for one character of the set inside a JSON text; None for an empty set.

    Characters that JSON must escape are written in the spelling of `json.dumps`.
    """
    raw = inverse(ranges([*inverse(taken), *((point, point) for point in _ESCAPED)]))
    raw = _without_surrogates(raw)
    escaped = [point for point in _ESCAPED if contains(taken, point)]
    options = [gbnf_class(raw)] if raw else []
    if len(escaped) == len(_ESCAPED):
        options.append('"\\\\" key-escape')
    elif escaped:
        options.append(_escapes(escaped))
    if not options:
        return None
    return options[0] if len(options) == 1 else f"( {' | '.join(options)} )"


def gbnf_class(taken: Ranges) -> str:
    """A character class, negated where that is shorter."""
    others = inverse(taken)
    if contains(taken, LAST) or len(others) < len(taken) // 2:
        return f"[^{_spans(others)}]" if others else r"[^\x00]"
    return f"[{_spans(taken)}]"


def _spans(taken: Ranges) -> str:
    text = ""
    for low, high in taken:
        joint = "-" if high > low + 1 else ""
        text += class_point(low) + (joint + class_point(high) if high > low else "")
    return text


def class_point(point: int) -> str:
    """A character as a class spells it."""
    if point < 0x20 or point == 0x7F or point in _SPECIAL:
        return f"\\x{point:02x}"
    return chr(point)


def _without_surrogates(taken: Ranges) -> Ranges:
    """Ranges do not begin or end within the surrogates, which have no encoding."""
    kept = []
    for low, high in taken:
        low = 0xE000 if 0xD800 <= low <= 0xDFFF else low
        high = 0xD7FF if 0xD800 <= high <= 0xDFFF else high
        if low <= high:
            kept.append((low, high))
    return tuple(kept)


def _escapes(points: Sequence[int]) -> str:
    """The escapes of some of the characters that need one."""
    short = "".join(class_point(ord(_SHORT[point])) for point in points if point in _SHORT)
    options = [f"[{short}]"] if short else []
    rows: dict[str, str] = {}
    for point in points:
        if point not in _SHORT:
            digits = f"{point:02x}"
            rows[digits[0]] = rows.get(digits[0], "") + digits[1]
    options += [f'"u00{first}" [{seconds}]' for first, seconds in rows.items()]
    return f'"\\\\" ( {" | ".join(options)} )'


def escape_unit(character: str) -> str | None:
    """What follows the backslash where JSON must escape the character; None where it need not."""
    point = ord(character)
    if point in _SHORT:
        return _SHORT[point]
    return f"u{point:04x}" if point in _ESCAPED and point != 0x7F else None


def escapes_but(units: Iterable[str]) -> str | None:
    """A GBNF expression for any escape but these, without the backslash."""
    taken = set(units)
    left = [p for p in _ESCAPED if (escape_unit(chr(p)) or "u007f") not in taken]
    return _escapes(left)[len('"\\\\" ') :] if left else None
