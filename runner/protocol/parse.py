"""Reads a model's turn: blocks by Lark, then each ACTION's JSON, then the contract."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lark import Lark, Token, Tree

from runner.core.contract import ToolContract
from runner.core.conversation import ModelTurn, Receipt, StopReason, ToolCall
from runner.core.errors import ProtocolError
from runner.protocol.coerce import check_call
from runner.protocol.grammar_files import grammar_text
from runner.protocol.messages import message
from runner.protocol.repair import read_json

_LARGEST = 200_000
_OPENED = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_CLOSED = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)
_WHITE = " \t\r\n"
"""What is white space at the edges of a block; other blanks, such as U+2028, are text."""


def parse_turn(
    text: str,
    tools: Sequence[ToolContract],
    stop: StopReason = "end",
    *,
    first_call: int = 1,
) -> ModelTurn:
    """Read one whole turn.

    Parameters
    ----------
    text
        What the model wrote.
    tools
        Contracts that its calls are checked against.
    stop
        Why the text ended. Text that was cut off (``length``) or only repeats itself
        (``degenerate``) never yields a call.
    first_call
        Number of the first call, for its id: ``c<number>``.

    Returns
    -------
    ModelTurn
        Calls or an answer; ``receipts`` say what had to be changed to read it.

    Raises
    ------
    ProtocolError
        It is neither. ``str(error)`` is the message for the model.
    """
    if not text.strip(_WHITE):
        raise _error("empty")
    if len(text) > _LARGEST:
        raise _error("too_long", "too_large", most=f"{_LARGEST:,}")
    blocks = _Blocks()
    for block in _lark().parse(text).children:
        assert isinstance(block, Tree)
        blocks.add(str(block.data), _content(block), text)
    if stop == "degenerate" and blocks.answer is None:
        raise _error("repeating", "truncated")
    if blocks.actions and blocks.answer is not None:
        raise _error("mixed")
    if blocks.answer is not None:
        return _answer(blocks, stop)
    if blocks.actions:
        if blocks.thinks:
            raise _error("thinking", "malformed")
        return _calls(blocks, tools, stop, first_call)
    raise _error("invented" if blocks.invented else "no_marker", "no_marker")


@dataclass
class _Blocks:
    """The blocks of a turn, sorted. Nothing after an invented observation counts."""

    thoughts: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    answer: str | None = None
    invented: bool = False
    thinks: bool = False
    open_tags: int = 0
    receipts: list[Receipt] = field(default_factory=list)

    def add(self, kind: str, content: str, text: str) -> None:
        if self.invented:
            return
        if kind == "observation":
            self.invented = True
            if self.actions:
                self.receipts.append(Receipt("turn", "dropped an invented OBSERVATION"))
        elif kind == "action":
            self.thinks = self.thinks or self.open_tags > 0
            self.actions.append(content)
        elif kind == "answer":
            self.answer = content
        elif content:
            self.open_tags += len(_OPENED.findall(content)) - len(_CLOSED.findall(content))
            self.thoughts.append(content)
            if kind == "text":
                self.receipts.append(
                    Receipt("turn", "took text before the first marker as thought")
                )

    @property
    def thought(self) -> str:
        return "\n".join(self.thoughts)


@functools.cache
def _lark() -> Lark:
    return Lark(grammar_text("protocol.lark"), start="turn", parser="lalr")


def _content(block: Tree[Any]) -> str:
    """Text of a block without its marker."""
    tokens = [str(token) for token in block.children if isinstance(token, Token)]
    return "".join(tokens if block.data == "text" else tokens[1:]).strip(_WHITE)


def _answer(blocks: _Blocks, stop: StopReason) -> ModelTurn:
    assert blocks.answer is not None
    if not blocks.answer:
        raise _error("empty_answer", "empty")
    if stop in ("length", "degenerate"):
        why = "the token limit cut it off" if stop == "length" else "it began to repeat itself"
        blocks.receipts.append(Receipt("cut", f"the answer is not complete: {why}"))
    return ModelTurn(blocks.thought, (), blocks.answer, tuple(blocks.receipts))


def _calls(
    blocks: _Blocks, tools: Sequence[ToolContract], stop: StopReason, first_call: int
) -> ModelTurn:
    if stop == "length" and not blocks.invented:
        raise _error("truncated", number=len(blocks.actions))
    calls = []
    for number, payload in enumerate(blocks.actions, start=1):
        data, receipts = read_json(payload, number)
        name, params, more = check_call(data, tools, number)
        blocks.receipts += receipts + more
        calls.append(ToolCall(f"c{first_call + number - 1}", name, params))
    return ModelTurn(blocks.thought, tuple(calls), None, tuple(blocks.receipts))


def _error(
    key: Literal[
        "empty",
        "no_marker",
        "mixed",
        "invented",
        "empty_answer",
        "truncated",
        "repeating",
        "thinking",
        "too_long",
    ],
    kind: str | None = None,
    /,
    **values: Any,
) -> ProtocolError:
    return ProtocolError(message("errors", key, **values), kind=kind or key)
