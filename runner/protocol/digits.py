"""Ranges of integers as digits: from 5 to 30 is ``[5-9] | [12] [0-9] | "30"``."""

from __future__ import annotations

MOST_DIGITS = 30
_LARGEST = 10**MOST_DIGITS - 1


def integers(low: int | None, high: int | None) -> list[str]:
    """GBNF alternatives that together match the integers from ``low`` to ``high``.

    Without a bound there are up to 30 digits, or one more than the other bound has. Empty where
    ``low`` is above ``high``.
    """
    if high is not None and high > 10 * _LARGEST and (low is None or low < _LARGEST):
        high = None
    if low is not None and low < -10 * _LARGEST and (high is None or high > -_LARGEST):
        low = None
    if low is None:
        low = -_LARGEST if high is None or high > -_LARGEST // 10 else high * 10
    if high is None:
        high = _LARGEST if low < _LARGEST // 10 else low * 10
    options = []
    if low < 0 and low <= high:
        below = _naturals(max(-high, 1), -low)
        options.append(f'"-" {_joined(below)}')
    if high >= 0 and low <= high:
        options += _naturals(max(low, 0), high)
    return options


def _joined(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"( {' | '.join(options)} )"


def _naturals(low: int, high: int) -> list[str]:
    """Alternatives for natural numbers, none with a leading zero."""
    options = []
    if low == 0:
        options.append('"0"')
        low = 1
    full: list[int] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        least, most = 10 ** (length - 1), 10**length - 1
        first, last = str(max(low, least)), str(min(high, most))
        if low > high:
            break
        if int(first) == least and int(last) == most:
            full.append(length)
            continue
        options += _whole(full)
        full = []
        options += _same_length(first, last)
    return options + _whole(full)


def _whole(lengths: list[int]) -> list[str]:
    if not lengths:
        return []
    return [f"[1-9] {_any(lengths[0] - 1, lengths[-1] - 1)}".strip()]


def _same_length(low: str, high: str) -> list[str]:
    """Alternatives for numbers between two of the same length; leading zeros belong to them."""
    if low == high:
        return [f'"{low}"']
    shared = 0
    while low[shared] == high[shared]:
        shared += 1
    head = f'"{low[:shared]}" ' if shared else ""
    rest = len(low) - shared - 1
    first, last = int(low[shared]), int(high[shared])
    options = []
    if set(low[shared + 1 :]) - {"0"}:
        options += _from(low[shared:], up=True)
        first += 1
    tail: list[str] = []
    if set(high[shared + 1 :]) - {"9"}:
        tail = _from(high[shared:], up=False)
        last -= 1
    if first <= last:
        options.append(f"{_digit(first, last)} {_any(rest, rest)}".strip())
    return [head + option for option in options + tail]


def _from(text: str, *, up: bool) -> list[str]:
    """Numbers of this length with this first digit, from it up to 99, or from 00 up to it."""
    head, tail = text[0], text[1:]
    options = [f'"{text}"']
    for place in range(len(tail) - 1, -1, -1):
        digit = int(tail[place])
        low, high = (digit + 1, 9) if up else (0, digit - 1)
        if low <= high:
            rest = len(tail) - place - 1
            options.append(f'"{head}{tail[:place]}" {_digit(low, high)} {_any(rest, rest)}'.strip())
    return options


def _digit(low: int, high: int) -> str:
    return f'"{low}"' if low == high else f"[{low}-{high}]"


def _any(least: int, most: int) -> str:
    if most == 0:
        return ""
    if (least, most) == (1, 1):
        return "[0-9]"
    return f"[0-9]{{{least}}}" if least == most else f"[0-9]{{{least},{most}}}"
