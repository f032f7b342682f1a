"""Whether a text is in the language of a GBNF grammar, asked of llguidance.

A reader of grammars that is not ours, so that a fault of ours cannot hide itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runner.core.errors import ConfigError, GrammarError

Accepts = Callable[[str], bool]
"""Tells whether a whole text belongs to one grammar."""

Matcher = Callable[[str], Accepts]
"""Compiles GBNF text."""


def llguidance_matcher(grammar: str) -> Accepts:
    """Compile GBNF text with the start rule ``root``; takes milliseconds, a text microseconds.

    Raises
    ------
    ConfigError
        llguidance is not installed.
    GrammarError
        It does not take the grammar.
    """
    library, convert, tokenizer = _library()
    try:
        converted = convert(grammar)
    except Exception as error:
        raise GrammarError(f"llguidance cannot read the grammar: {error}") from error
    matcher = library(tokenizer, library.grammar_from_lark(converted), log_level=0)
    if matcher.is_error():
        raise GrammarError(f"llguidance refuses the grammar: {matcher.get_error()}")

    def accepts(text: str) -> bool:
        data = list(text.encode())
        matcher.reset()
        taken = matcher.try_consume_tokens(data)
        if matcher.is_error():
            raise GrammarError(f"llguidance failed on {text!r}: {matcher.get_error()}")
        return bool(taken == len(data) and matcher.is_accepting())

    return accepts


@functools.cache
def _library() -> tuple[Any, Callable[[str], str], Any]:
    try:
        from llguidance import LLMatcher, LLTokenizer
        from llguidance.gbnf_to_lark import gbnf_to_lark
    except ImportError as error:
        raise ConfigError(
            "llguidance, which matches texts against grammars here, is not installed",
            hint="scripts/setup --dev gets it, or: pip install llguidance",
        ) from error
    return LLMatcher, gbnf_to_lark, LLTokenizer("byte")
