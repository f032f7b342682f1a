"""Reads relaxed JSON: the tokens of `relaxed_tokens`, put together by `grammars/relaxed_json.lark`.

What has one reading is taken, with a receipt that says what it cost. What could mean two things is
refused.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from lark import Lark, Token, Tree, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from runner.core.conversation import Receipt
from runner.protocol.grammar_files import grammar_text
from runner.protocol.json_text import JsonNumber, JsonObject
from runner.protocol.relaxed_strings import decode_key, decode_string
from runner.protocol.relaxed_tokens import RelaxedError, Tokens

STAGE = "relaxed"
ENDS_EARLY = "the text ends too early"
_LARGEST = 200_000
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}
_CLOSERS = {"RBRACE": "}", "RBRACKET": "]"}
# Where a text may have been cut off inside the last token, closing its brackets would be a guess.
_WHOLE = ("STRING", "RBRACE", "RBRACKET")


def read_relaxed(text: str) -> tuple[Any, list[Receipt]]:
    """The value of a whole text; see `read_relaxed_at`."""
    value, end, receipts = read_relaxed_at(text, 0)
    if end != len(text):
        raise RelaxedError("there is more text behind the value", end)
    return value, receipts


def read_relaxed_at(text: str, start: int) -> tuple[Any, int, list[Receipt]]:
    """The value that begins at ``start``, where it ends, and what had to be understood.

    Takes JSON5 and, beyond it: Python's words, curly and full-width quotes and signs, unescaped
    quotes and backslashes where they have one reading, plain words without quotes, and brackets
    that are missing at the very end.

    Raises
    ------
    RelaxedError
        A `ValueError`: it is none of this, or could mean two things; ``at`` says where.
    """
    if len(text) - start > _LARGEST:
        raise RelaxedError(
            f"a broken text of more than {_LARGEST:,} characters is not mended", start
        )
    tokens = Tokens(text, start)
    parser = _lark().parse_interactive("")
    kind = ""
    receipts: dict[str, int] = {}
    try:
        for token in tokens:
            parser.feed_token(token)
            kind = token.type
        end = tokens.skip_rest() if tokens.end else start
        missing = ""
        while "$END" not in (accepted := _accepted(parser)):
            closer = next((closer for closer in _CLOSERS if closer in accepted), None)
            if closer is None or kind not in _WHOLE:
                raise RelaxedError(ENDS_EARLY, len(text))
            parser.feed_token(Token(closer, _CLOSERS[closer]))
            missing += _CLOSERS[closer]
        tree = cast("Tree[Token]", parser.feed_eof())  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        at = error.token.start_pos
        at = len(text) if at is None else at
        raise RelaxedError(f"{str(error.token)!r} was not expected there", at) from error
    if missing:
        receipts[f"added {missing!r}, which was missing at the end"] = 1
    if tokens.comments:
        receipts["took comments out"] = 0
    if tokens.missing_commas:
        receipts["added a comma between lines"] = 1
    (inner,) = tree.children
    assert isinstance(inner, Tree)
    value = _Reader(receipts).value(inner)
    return value, end, [Receipt(STAGE, what, cost=cost) for what, cost in receipts.items()]


def _accepted(parser: InteractiveParser) -> set[str]:
    """Names of the tokens that may come next."""
    return set(parser.accepts())  # type: ignore[no-untyped-call]


class _Reader:
    """Turns the tree into a value and notes in ``receipts`` what it understood."""

    def __init__(self, receipts: dict[str, int]) -> None:
        self.receipts = receipts

    def value(self, tree: Tree[Token]) -> Any:
        parts = tree.children
        if tree.data == "object":
            pairs = [part for part in parts if isinstance(part, Tree)]
            self._structure(parts)
            return JsonObject([self.pair(pair) for pair in pairs])
        if tree.data == "array":
            self._structure(parts)
            return [self.value(part) for part in parts if isinstance(part, Tree)]
        token = parts[0]
        assert isinstance(token, Token)
        return getattr(self, f"_{tree.data}")(token)

    def pair(self, tree: Tree[Token]) -> tuple[str, Any]:
        key, colon, value = tree.children
        assert isinstance(key, Token) and isinstance(colon, Token) and isinstance(value, Tree)
        self._structure([colon])
        text, notes = decode_key(str(key))
        self.receipts.update(notes)
        return text, self.value(value)

    def _structure(self, parts: list[Any]) -> None:
        tokens = [part for part in parts if isinstance(part, Token)]
        if any(token not in ("{", "}", "[", "]", ":", ",") for token in tokens):
            self.receipts["read full-width signs as structure"] = 0
        if [token.type for token in tokens[-2:-1]] == ["COMMA"] and len(parts) > 2:
            last = parts[-2]
            if isinstance(last, Token) and last.type == "COMMA":
                self.receipts["took a trailing comma away"] = 0

    def _string(self, token: Token) -> str:
        text, notes = decode_string(str(token), token.start_pos or 0)
        self.receipts.update(notes)
        return text

    def _number(self, token: Token) -> Any:
        text = str(token)
        sign = -1 if text.startswith("-") else 1
        digits = text.lstrip("+-")
        if digits[:2] in ("0x", "0X"):
            self.receipts["read a hexadecimal number"] = 0
            return sign * int(digits, 16)
        if digits.isdecimal():
            if text.startswith("+"):
                self.receipts["took a plus sign away"] = 0
            return _integer(text, token)
        if digits.startswith(".") or ("." in digits and not _digit_behind_point(digits)):
            self.receipts["completed a decimal point"] = 0
        return JsonNumber(text)

    def _word(self, token: Token) -> Any:
        text = str(token)
        name = text.lstrip("+-").lower()
        if name in _WORDS:
            if text not in _WORDS:
                self.receipts[f"read {text} as JSON"] = 0
            return _WORDS[name]
        self.receipts[f"read {text} as a number"] = 0
        return JsonNumber(text)

    def _bare(self, token: Token) -> str:
        text = str(token)
        if "..." in text or (not any(c.isalpha() for c in text) and not _is_date(text)):
            raise RelaxedError(f"{text!r} is no value", token.start_pos or 0, doubt=True)
        if text.lower() in ("undefined", "nil", "nan", "inf"):
            raise RelaxedError(f"{text!r} is no value", token.start_pos or 0, doubt=True)
        self.receipts[f"read {text!r} as text, which had no quotes"] = 1
        return text


def _integer(text: str, token: Token) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise RelaxedError("the number has too many digits", token.start_pos or 0) from error


def _digit_behind_point(digits: str) -> bool:
    behind = digits.partition(".")[2]
    return behind[:1].isdigit()


def _is_date(text: str) -> bool:
    return text[:1].isdigit() and text[-1:].isdigit() and set(text) <= set("0123456789-./")


@functools.cache
def _lark() -> Lark:
    return Lark(grammar_text("relaxed_json.lark"), parser="lalr", lexer="basic")
