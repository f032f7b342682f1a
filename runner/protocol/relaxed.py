"""Reads relaxed JSON: the tokens of `relaxed_tokens`, put together by `grammars/relaxed_json.lark`.

What has one reading is taken, with a receipt that says what it cost. What could mean two things is
refused.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from lark import Lark, Token, Tree, UnexpectedToken

from runner.core.conversation import Receipt
from runner.protocol.grammar_files import grammar_text
from runner.protocol.json_text import JsonNumber, JsonObject, integer
from runner.protocol.relaxed_strings import decode_key, decode_string
from runner.protocol.relaxed_tokens import SPACE, RelaxedError, Tokens
from runner.protocol.relaxed_words import is_plain

STAGE = "relaxed"
ENDS_EARLY = "the text ends too early"
_LARGEST = 200_000
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}
_INPUT_KEYS = frozenset(
    ["params", "parameters", "arguments", "args", "input", "action_input", "tool_input", "kwargs"]
)


def read_relaxed(text: str) -> tuple[Any, list[Receipt]]:
    """The value of a whole text; see `read_relaxed_at`."""
    value, end, receipts = read_relaxed_at(text, 0)
    if end != len(text):
        raise RelaxedError("there is more text behind the value", end)
    return value, receipts


def read_relaxed_at(text: str, start: int, *, mend: bool = False) -> tuple[Any, int, list[Receipt]]:
    """The value that begins at ``start``, where it ends, and what had to be understood.

    Takes JSON5 and, beyond it: Python's words, curly and full-width quotes and signs, unescaped
    quotes and backslashes where they have one reading, and plain words without quotes.

    Parameters
    ----------
    mend
        The text may be a call whose very last brace is missing.

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
    fed: list[Token] = []
    receipts: dict[str, int] = {}
    try:
        for token in tokens:
            parser.feed_token(token)
            fed.append(token)
        end = tokens.skip_rest() if tokens.end else start
        is_cut = "$END" not in parser.accepts()  # type: ignore[no-untyped-call]
        if is_cut:
            if not mend or text[tokens.end :].strip(SPACE) or not _lacks_last_brace(fed):
                raise RelaxedError(ENDS_EARLY, len(text))
            parser.feed_token(Token("RBRACE", "}"))
        tree = cast("Tree[Token]", parser.feed_eof())  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        at = error.token.start_pos
        at = len(text) if at is None else at
        raise RelaxedError(f"{str(error.token)!r} was not expected there", at) from error
    if tokens.comments is not None:
        receipts["took comments out"] = tokens.comments
    if tokens.missing_commas:
        receipts["added a comma between lines"] = 1
    (inner,) = tree.children
    assert isinstance(inner, Tree)
    value = _Reader(receipts).value(inner)
    if is_cut:
        if any(receipts.values()):
            # With a second fault, where the first one is can no longer be known.
            raise RelaxedError(ENDS_EARLY, len(text))
        receipts["added '}', which was missing at the end"] = 1
    return value, end, [Receipt(STAGE, what, cost=cost) for what, cost in receipts.items()]


def _lacks_last_brace(tokens: list[Token]) -> bool:
    """Whether the tokens are a call with flat params that ends behind them, but for one brace.

    If the params were open as well, more of them may have been cut off. If they held an object,
    the missing brace may be that one's, and what is behind it would stand in the wrong object.
    """
    braces = [i for i, token in enumerate(tokens) if token.type in ("LBRACE", "RBRACE")]
    if [tokens[i].type for i in braces] != ["LBRACE", "LBRACE", "RBRACE"]:
        return False
    first, opened, closed = braces
    if tokens[-2].type == "COMMA":
        return False  # the comma announced more
    if first != 0 or opened < 4 or closed != len(tokens) - 1 or tokens[opened - 2].type != "KEY":
        return False
    return decode_key(str(tokens[opened - 2]))[0] in _INPUT_KEYS


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
        digits = text.lstrip("+-")
        is_hex = digits[:2] in ("0x", "0X")
        if is_hex or digits.isdecimal():
            if is_hex:
                self.receipts["read a hexadecimal number"] = 0
            elif text.startswith("+"):
                self.receipts["took a plus sign away"] = 0
            try:
                return integer(text, int(text, 16 if is_hex else 10))
            except ValueError as error:
                at = token.start_pos or 0
                raise RelaxedError("the number has too many digits", at, doubt=True) from error
        if digits.startswith(".") or ("." in digits and not _digit_behind_point(digits)):
            self.receipts["completed a decimal point"] = 1
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
        if not is_plain(text):
            problem = f"{text[:60]!r} is no value; write text between double quotes"
            raise RelaxedError(problem, token.start_pos or 0, doubt=True)
        self.receipts[f"read {text!r} as text, which had no quotes"] = 1
        return text


def _digit_behind_point(digits: str) -> bool:
    behind = digits.partition(".")[2]
    return behind[:1].isdigit()


@functools.cache
def _lark() -> Lark:
    return Lark(grammar_text("relaxed_json.lark"), parser="lalr", lexer="basic")
