"""What the model reads: the conversation of a run, spelled in the dialect of its model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.core.contract import ToolContract
from runner.core.conversation import Message, ModelTurn, ToolResult
from runner.core.errors import ProtocolError
from runner.protocol.dialects import find_dialect
from runner.protocol.messages import message
from runner.protocol.prompt import example_call, observation_message, opening_messages


class Context:
    """The conversation of one run.

    Parameters
    ----------
    contracts
        The tools of the run.
    dialect
        How turns are spelled.
    in_template
        Whether the model's own chat template can present tools.

    Attributes
    ----------
    messages
        What was said so far.
    template_tools
        Contracts that the model's template must present; empty where the system prompt does.
    """

    def __init__(
        self, contracts: Sequence[ToolContract], dialect: str, *, in_template: bool
    ) -> None:
        self.dialect = find_dialect(dialect)
        self.contracts = contracts
        in_template = in_template and self.dialect.tools_in_template
        self.template_tools = tuple(contracts) if in_template else ()
        self.messages = opening_messages(contracts, self.dialect, in_template=in_template)

    def opening(self) -> list[dict[str, Any]]:
        """The messages so far as JSON-ready data."""
        return [asdict(message) for message in self.messages]

    def task(self, text: str) -> None:
        """Add what the user wants."""
        self.messages.append(Message("user", text))

    def turn(self, turn: ModelTurn, written: str) -> None:
        """Add a turn that was understood.

        As it was written where nothing had to be repaired, so that its tokens in the cache still
        fit; in the dialect's own spelling otherwise, so that no fault spreads.
        """
        said = self.dialect.spelled(turn) if turn.receipts else written
        self.messages.append(Message("assistant", said))

    def rejection(self, error: ProtocolError, written: str, *, with_example: bool) -> str:
        """Add a turn that was not understood and what was wrong with it; return the latter."""
        problem = str(error)
        if with_example and self.contracts:
            named = [contract for contract in self.contracts if contract.name == error.tool]
            example = example_call((named or [*self.contracts])[0], self.dialect)
            problem = message("loop", "example", problem=problem, example=example)
        if written.strip():
            self.messages.append(Message("assistant", written))
        self.messages.append(Message("user", message("loop", "retry", problem=problem)))
        return problem

    def observation(
        self,
        results: Sequence[ToolResult],
        remaining: Mapping[str, int | None],
        repeated: Collection[str],
    ) -> None:
        """Add what calls brought; see `runner.protocol.prompt.observation_message`."""
        text = observation_message(results, remaining, repeated, self.dialect)
        self.messages.append(Message("user", text))
