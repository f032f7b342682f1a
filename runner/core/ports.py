"""The Protocols that adapters fulfil. The loop knows these and nothing behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from runner.core.contract import ToolContract
from runner.core.conversation import Generation, Message


class View(Protocol):
    """Somebody who watches a run: a terminal, a test, a program."""

    def text(self, piece: str) -> None:
        """A piece of the turn that is being written. Not parsed yet, may still be refused."""

    def thinking(self, piece: str) -> None:
        """A piece of what the model thinks before it writes a turn. Never part of the turn."""

    def progress(self, done: int, total: int) -> None:
        """``done`` of ``total`` new prompt tokens are evaluated."""

    def event(self, kind: str, data: dict[str, Any]) -> None:
        """Something that is also in the transcript.

        One event is there as a notice in the reply that follows it: ``model.restarted`` says that
        the turn is written anew.
        """


class Model(Protocol):
    """Anything that continues a conversation with text."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str:
        """How turns are spelled; see `runner.protocol.dialects`."""

    def describe(self) -> dict[str, Any]:
        """What a transcript must say about the model: file, hash, settings, versions.

        ``template_tools`` says, where it is there, whether ``tools`` may be given to `generate`.
        """

    def generate(
        self,
        messages: Sequence[Message],
        *,
        grammar: str | None,
        max_tokens: int,
        seed: int,
        tools: Sequence[ToolContract] = (),
        view: View | None = None,
        seconds: float | None = None,
    ) -> Generation:
        """Write the next assistant turn, after some thinking where the model is set to think.

        Parameters
        ----------
        grammar
            GBNF text that the turn must follow; a model that cannot constrain ignores it.
        max_tokens
            Most new tokens of the turn; fewer where the context window ends first. Thinking has a
            budget of its own.
        tools
            Contracts that the model's own template presents; empty where the prompt presents them.
        seconds
            Most seconds of wall clock; then it returns with what there is and ``stop`` "cancelled".

        Raises
        ------
        ContextOverflowError
            The prompt and a minimal reply do not fit into the window.
        ModelError
            Loading or generating failed.
        """

    def close(self) -> None:
        """Give back memory and processes. Safe to call twice."""


class Tool(Protocol):
    """A contract with something that fulfils it."""

    @property
    def contract(self) -> ToolContract: ...

    def __call__(self, params: dict[str, Any]) -> str:
        """Do the work and return the text for the model.

        Raises
        ------
        ToolError
            It could not be done; the message is for the model.
        """


class Recorder(Protocol):
    """Keeps what happened, in order, for good."""

    @property
    def location(self) -> str:
        """Where the record can be read."""

    def record(self, kind: str, data: dict[str, Any]) -> None:
        """Append one event; it is safe on return."""

    def close(self) -> None: ...
