"""Rules for JSON objects: named properties in order, each required or optional, then others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_MOST_OTHERS = 63
_MOST_BETWEEN = 16
# Sets of names are tried in any order, which takes a rule for each subset.
MOST_LOOSE = 4
Add = Callable[[str], str]


@dataclass(frozen=True)
class Pair:
    """A property: GBNF for its key and value, and whether it must be there."""

    text: str
    required: bool


def object_text(ordered: Sequence[Pair], loose: Sequence[Pair], other: str | None, add: Add) -> str:
    """A GBNF expression for an object.

    Parameters
    ----------
    ordered
        Properties that come in this order. The size of the rules grows with their number.
    loose
        Properties that come after them in any order, at most ``MOST_LOOSE``.
    other
        GBNF for a pair that is none of these, or None where no others may follow.
    add
        Makes a rule of a body and returns its name.
    """
    if not ordered and not loose and other == "key value":
        return "object"
    tail = _Tail(loose, other, add)
    first = next((at for at, pair in enumerate(ordered) if pair.required), len(ordered))
    follow = tail.after()
    for pair in reversed(ordered[first + 1 :]):
        follow = _spaced(_following(pair), follow)
    starts = [] if first < len(ordered) else tail.starts()
    optional = first == len(ordered) and tail.optional
    for at in range(min(first, len(ordered) - 1), -1, -1):
        # What follows is shared by the properties before it, or rules would grow with the square.
        if (at < first and " " in follow) or (at == first and at > 0 and " " in follow):
            follow = add(follow)
        starts.insert(0, _spaced(ordered[at].text, follow))
        follow = _spaced(_following(ordered[at]), follow)
    if not starts:
        return '"{}"'
    if len(starts) == 1 and not optional:
        return f'"{{" {starts[0]} "}}"'
    return f'"{{" ( {" | ".join(starts)} ){"?" if optional else ""} "}}"'


class _Tail:
    """What follows the ordered properties: loose ones in any order, and others anywhere there."""

    def __init__(self, loose: Sequence[Pair], other: str | None, add: Add) -> None:
        self._loose = tuple(loose)
        self._other = other
        self._add = add
        self._more = add(f'", " {other}') if other else ""
        self._rules: dict[tuple[Pair, ...], str] = {}
        self.optional = not any(pair.required for pair in loose)

    def after(self) -> str:
        """Behind a property; may be empty text."""
        return self._rest(self._loose)

    def starts(self) -> list[str]:
        """Alternatives for the beginning of the object."""
        starts = [_spaced(self._other, self._rest(self._loose))] if self._other else []
        return starts + [_spaced(pair.text, rest) for pair, rest in self._each(self._loose)]

    def _rest(self, left: tuple[Pair, ...]) -> str:
        if not left:
            return f"{self._more}{{0,{_MOST_OTHERS}}}" if self._more else ""
        if left not in self._rules:
            options = " | ".join(
                _spaced(f'", " {pair.text}', rest) for pair, rest in self._each(left)
            )
            skipped = "" if any(pair.required for pair in left) else "?"
            between = f"{self._more}{{0,{_MOST_BETWEEN}}}" if self._more else ""
            self._rules[left] = self._add(_spaced(between, f"( {options} ){skipped}"))
        return self._rules[left]

    def _each(self, left: tuple[Pair, ...]) -> list[tuple[Pair, str]]:
        return [(pair, self._rest(tuple(p for p in left if p is not pair))) for pair in left]


def _following(pair: Pair) -> str:
    return f'", " {pair.text}' if pair.required else f'( ", " {pair.text} )?'


def _spaced(*texts: str) -> str:
    return " ".join(text for text in texts if text)
