"""What passes between the loop, the model and the tools. Objects inside, text at the border."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from runner.core.errors import ErrorKind

Role = Literal["system", "user", "assistant"]
StopReason = Literal["end", "length", "stop", "degenerate", "cancelled"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation. ``content`` is plain text, never template markup."""

    role: Role
    content: str


@dataclass(frozen=True)
class ToolCall:
    """A call as the model made it. ``id`` is unique within a run (``c1``, ``c2``, ...)."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """What came of a call. ``number`` counts the calls of this tool in the run, from 1."""

    call: ToolCall
    text: str
    number: int
    error: ErrorKind | None = None


@dataclass(frozen=True)
class Receipt:
    """One thing that reading a turn had to change.

    Attributes
    ----------
    stage
        The step of the reader: ``turn``, ``relaxed``, ``json-repair``, ``call``, ``contract``.
        Stage ``cut`` is no repair: the text of an answer ended early.
    what
        What was done.
    where
        The ACTION, or the parameter as ``tool.parameter``.
    cost
        0 where the text had one reading and was only spelled otherwise; 1 where the likely one of
        several readings was taken; 2 where a repair library proposed it.
    call
        Id of the call that it belongs to; empty for the turn as a whole.
    """

    stage: str
    what: str
    where: str = ""
    cost: int = 0
    call: str = ""


@dataclass(frozen=True)
class ModelTurn:
    """A turn that was understood: calls, or an answer, never both and never neither."""

    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True)
class Usage:
    """What a generation (or a whole run) cost. Token counts, and seconds of wall clock.

    ``prompt_tokens`` is the whole prompt, ``reused_tokens`` the part of it that was still in the
    KV cache; ``masked_tokens`` are those where the grammar refused the model's first choice;
    ``thinking_tokens`` is the part of ``generated_tokens`` that was written before the turn itself,
    ``forced_tokens`` the part that the grammar left no choice about. Of ``draft_tokens``, which
    were guessed ahead, the model wrote ``accepted_tokens`` itself.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    generated_tokens: int = 0
    masked_tokens: int = 0
    prompt_seconds: float = 0.0
    decode_seconds: float = 0.0
    thinking_tokens: int = 0
    forced_tokens: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Generation:
    """The raw text of one turn, why it stopped, and its cost.

    ``thinking`` is the reasoning text that the model wrote before the turn, without its tags. It is
    no part of ``text``, follows no grammar and is never shown to the model again.
    ``stop`` is ``end`` (the model ended its turn), ``length`` (token limit or full context),
    ``stop`` (a stop string of the template), ``degenerate`` (it only repeated itself) or
    ``cancelled`` (somebody stopped it, or its time was over).
    ``notices`` are sentences for the user: about a busy machine, a restarted worker, markup that
    was found in texts. ``cut`` says where the prompt left what was cached, if it did.
    """

    text: str
    stop: StopReason = "end"
    usage: Usage = field(default_factory=Usage)
    thinking: str = ""
    notices: tuple[str, ...] = ()
    cut: str = ""
