"""Reads regular expressions (`grammars/pattern.lark`) into trees.

Classes mean what ECMA-262 says, as JSON Schema asks: ``\\d`` and ``\\w`` are ASCII.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput

from runner.protocol.characters import Ranges, characters, inverse, ranges
from runner.protocol.grammar_files import grammar_text


class PatternError(ValueError):
    """The pattern is outside what a grammar can hold."""


@dataclass(frozen=True)
class Unit:
    """One character of a set."""

    points: Ranges


@dataclass(frozen=True)
class Anchor:
    """``^`` or ``$``."""

    sign: str


@dataclass(frozen=True)
class Series:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of several; with one option it is that."""

    options: tuple[Series, ...]


@dataclass(frozen=True)
class Repeat:
    """``most`` is None without a bound."""

    inner: Unit | Choice
    least: int
    most: int | None


Node = Unit | Anchor | Choice | Repeat

_DIGIT = ranges([(0x30, 0x39)])
_WORD = ranges([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_SPACE = ranges(
    [*characters("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000"), (0x2000, 0x200A)]
)
# White space in ECMA-262 or in Python, which checks a call, but not in both.
_DOUBTFUL = characters("\x1c\x1d\x1e\x1f\x85\ufeff")
_SETS = {
    "d": _DIGIT, "D": inverse(_DIGIT), "w": _WORD, "W": inverse(_WORD), "s": _SPACE,
    "S": inverse(ranges([*_SPACE, *_DOUBTFUL])), ".": inverse(characters("\n\r\u2028\u2029")),
}  # fmt: skip
_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}


@functools.lru_cache(maxsize=256)
def parse_pattern(pattern: str) -> Choice:
    """The tree of a regular expression.

    Raises
    ------
    PatternError
        It uses what a grammar cannot hold, such as look-around or references.
    """
    try:
        tree = _parser().parse(pattern)
    except (UnexpectedInput, RecursionError) as error:
        raise PatternError(f"{pattern!r} cannot be held by a grammar") from error
    found: Choice = _Tree().transform(tree)
    return found


@functools.cache
def _parser() -> Lark:
    return Lark(grammar_text("pattern.lark"), parser="lalr", maybe_placeholders=True)


class _Tree(Transformer[Token, Any]):
    def start(self, children: Sequence[Choice]) -> Choice:
        return children[0]

    def alternatives(self, children: Sequence[Series]) -> Choice:
        return Choice(tuple(children))

    def sequence(self, children: Sequence[Node]) -> Series:
        return Series(tuple(children))

    def repeated(self, children: Sequence[Any]) -> Node:
        inner, quantifier = children
        if quantifier is None:
            return inner  # type: ignore[no-any-return]
        return Repeat(inner, *_bounds(quantifier))

    def BEGIN(self, token: Token) -> Anchor:  # noqa: N802 -- named as in the grammar
        return Anchor(str(token))

    def END(self, token: Token) -> Anchor:  # noqa: N802
        return Anchor(str(token))

    def CHARACTER(self, token: Token) -> Unit:  # noqa: N802
        if token == ".":
            return Unit(_SETS["."])
        if not token.startswith("\\"):
            return Unit(characters(token))
        return Unit(_escape(token[1:]))

    def CLASS(self, token: Token) -> Unit:  # noqa: N802
        return Unit(_class(str(token)))


def _bounds(text: str) -> tuple[int, int | None]:
    if text in "?*+":
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[text]
    least, comma, most = text[1:-1].partition(",")
    return int(least[:9]), (int(most[:9]) if most else None if comma else int(least[:9]))


def _escape(text: str) -> Ranges:
    """The set that stands behind a backslash."""
    kind = text[0]
    if kind in _SETS and kind != ".":
        return _SETS[kind]
    if kind in "ux" and len(text) > 1:
        return ((int(text[1:], 16),) * 2,)
    if kind in _CONTROLS:
        return ((_CONTROLS[kind],) * 2,)
    if kind.isascii() and kind.isalnum():
        raise PatternError(f"the escape \\{kind} cannot be held by a grammar")
    return characters(kind)


def _class(text: str) -> Ranges:
    """The set of a class in brackets."""
    negative = text.startswith("[^")
    inner = text[2 if negative else 1 : -1]
    members: list[Ranges] = []
    hyphens: list[bool] = []
    at = 0
    while at < len(inner):
        width = 1
        if inner[at] == "\\":
            width = {"u": 6, "x": 4}.get(inner[at + 1], 2)
            members.append(
                ((8, 8),) if inner[at + 1] == "b" else _escape(inner[at + 1 : at + width])
            )
        else:
            members.append(characters(inner[at]))
        hyphens.append(inner[at] == "-")
        at += width
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(members):
        if at + 2 < len(members) and hyphens[at + 1]:
            (low, high), (first, last) = members[at][0], members[at + 2][-1]
            if low != high or first != last or low > last or len(members[at + 2]) > 1:
                raise PatternError(f"the range in {text} cannot be read")
            found.append((low, last))
            at += 3
        else:
            found += members[at]
            at += 1
    joined = ranges(found)
    return inverse(joined) if negative else joined
