"""An agent: a model with tools and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.agent.loop import Run
from runner.agent.repairs import Confirm
from runner.agent.result import RunResult
from runner.core.errors import ConfigError
from runner.core.ports import Model, Recorder, Tool, View
from runner.record import Transcript


class Agent:
    """A model with tools.

    Parameters
    ----------
    model
        Anything that fulfils `runner.core.ports.Model`.
    tools
        What it may call; none for a plain question.
    max_turns
        Turns until the run ends; in the last one only an answer is possible.
    max_calls
        Tool name -> most calls in a run; overrides the limit in the tool's contract.
    max_calls_per_turn
        ACTION lines that one turn may have.
    max_tokens
        New tokens that one turn may have.
    retries
        How often a turn that cannot be used is asked for again.
    thought
        Whether a turn may begin with a THOUGHT line.
    seed
        Seed of the run; None draws one.
    recorder
        Keeps the events; None makes a transcript in the default folder for each run.
    view
        Sees events and text while they come.
    confirm
        Asked before a call that writes or executes runs although part of it had to be guessed:
        gets the call and the receipts of the guesses, and returns whether it may. None for nobody
        to ask: such a turn is then refused, and the model writes it again.
    """

    def __init__(
        self,
        model: Model,
        tools: Sequence[Tool] = (),
        *,
        max_turns: int = 10,
        max_calls: Mapping[str, int] | None = None,
        max_calls_per_turn: int = 4,
        max_tokens: int = 500,
        retries: int = 2,
        thought: bool = True,
        seed: int | None = None,
        recorder: Recorder | None = None,
        view: View | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        self.model = model
        self.tools = list(tools)
        self.contracts = [tool.contract for tool in self.tools]
        self.max_turns = max_turns
        self.max_calls = dict(max_calls or {})
        self.max_calls_per_turn = max_calls_per_turn
        self.max_tokens = max_tokens
        self.retries = retries
        self.thought = thought
        self.seed = seed
        self.recorder = recorder
        self.view = view
        self.confirm = confirm
        for limit, least in (("max_turns", 1), ("max_tokens", 1), ("retries", 0)):
            if getattr(self, limit) < least:
                raise ConfigError(
                    f"{limit} must be at least {least}, found {getattr(self, limit)}",
                    hint="leave it out for the default",
                )
        names = [contract.name for contract in self.contracts]
        for name in [*self.max_calls, *names]:
            if names.count(name) != 1:
                how_often = "twice" if name in names else "not"
                raise ConfigError(
                    f"tool {name!r} is {how_often} among this agent's tools",
                    hint=f"its tools: {', '.join(names) or 'none'}",
                )

    def run(self, task: str) -> RunResult:
        """Work on ``task`` until it is answered or a limit is reached.

        What a tool does, what the model's own errors (`ModelError`) are, and the user's Ctrl-C
        are in the result, which says how the run ended.

        Raises
        ------
        ConfigError
            The transcript cannot be written.
        """
        recorder = self.recorder or Transcript.create()
        try:
            return Run(self, task, recorder).run()
        finally:
            if self.recorder is None:
                recorder.close()
