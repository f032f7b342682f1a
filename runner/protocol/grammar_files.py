"""Finds the files of `grammars/`: in the installed package, or beside it in a checkout."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from runner.core.errors import ConfigError

_PART = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{[0-9,]*\}|([a-z][a-z0-9-]*)')
_PACKAGE = Path(__file__).parents[1]


@functools.cache
def grammar_text(name: str) -> str:
    """Text of ``grammars/<name>``.

    Raises
    ------
    ConfigError
        The file is in neither place.
    """
    places = (_PACKAGE / "grammars" / name, _PACKAGE.parent / "grammars" / name)
    for place in places:
        if place.is_file():
            return place.read_text("utf-8")
    raise ConfigError(
        f"grammar file {name!r} is missing; looked at {places[0]} and {places[1]}",
        hint="install the package again, or run from a whole checkout",
    )


@functools.cache
def gbnf_rules(name: str) -> dict[str, str]:
    """The rules of a GBNF file, name -> body. Each rule stands on a line of its own."""
    rules = {}
    for line in grammar_text(name).splitlines():
        head, separator, body = line.partition(" ::= ")
        if separator and not line.startswith("#"):
            rules[head] = body
    return rules


def names_in(body: str) -> list[str]:
    """Names of the rules that the body of a rule refers to, in order."""
    return [name for name in _PART.findall(body) if name]
