"""The ReAct loop: the model writes a turn, the turn is parsed, its calls run, results go back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runner import __version__
from runner.agent.calls import CallRunner, repetitions
from runner.agent.context import Context
from runner.agent.limits import CallLimits, TurnLimit, check_number_of_calls
from runner.agent.repairs import check_repairs
from runner.agent.result import RunResult, Status
from runner.core.contract import ToolContract
from runner.core.conversation import ModelTurn, ToolCall, ToolResult, Usage
from runner.core.errors import ContextOverflowError, ProtocolError, RunnerError
from runner.core.ports import Recorder
from runner.protocol import parse_turn, tool_grammar
from runner.protocol.messages import message

if TYPE_CHECKING:
    from runner.agent.agent import Agent


class _GaveUpError(Exception):
    """No usable turn after all retries."""


class Run:
    """One run: its conversation, its counters and its record."""

    def __init__(self, agent: Agent, task: str, recorder: Recorder) -> None:
        self.agent = agent
        self.recorder = recorder
        self.seed = secrets.randbits(32) if agent.seed is None else agent.seed
        self.turn_limit = TurnLimit(agent.max_turns)
        self.call_limits = CallLimits(agent.contracts, agent.max_calls)
        self.calls = CallRunner(agent.tools, self.call_limits, self.emit)
        self.turns: list[ModelTurn] = []
        self.results: list[ToolResult] = []
        self.usage = Usage()
        self.generations = 0
        self.rejected = 0
        self.answer_now = agent.max_turns == 1
        self.task = task

    def emit(self, kind: str, data: dict[str, Any]) -> None:
        self.recorder.record(kind, data)
        if self.agent.view is not None:
            self.agent.view.event(kind, data)

    def run(self) -> RunResult:
        agent = self.agent
        self.emit(
            "run.start",
            {
                "version": __version__,
                "task": self.task,
                "seed": self.seed,
                "tools": [contract.model_dump(mode="json") for contract in agent.contracts],
                "max_turns": agent.max_turns,
                "max_tokens": agent.max_tokens,
            },
        )
        try:
            model = agent.model.describe()
            in_template = bool(model.get("template_tools"))
            context = Context(agent.contracts, agent.model.dialect, in_template=in_template)
            self.emit("model.ready", {**model, "opening": context.opening()})
            context.task(self.task)
            return self._turns(context)
        except KeyboardInterrupt:
            return self._end("interrupted", reason="interrupted")
        except _GaveUpError:
            return self._end("gave_up", self._fallback(), reason="no usable turn was written")
        except ContextOverflowError as error:
            if self.generations:
                return self._end("limit", reason=str(error))
            return self._end("failed", reason=str(error), error=error)
        except RunnerError as error:
            return self._end("failed", reason=str(error), error=error)
        except Exception as error:
            # A fault of a model or view that is not ours: the transcript still gets its end.
            self._end("failed", reason=f"{type(error).__name__}: {error}")
            raise

    def _turns(self, context: Context) -> RunResult:
        while self.turn_limit.take():
            turn = self._turn(context, self._callable_tools())
            self.turns.append(turn)
            if turn.answer is not None:
                cut = [receipt.what for receipt in turn.receipts if receipt.stage == "cut"]
                return self._end("answered", turn.answer, reason="; ".join(cut))
            if self.answer_now:
                break  # calls again, from a model that follows no grammar
            self._observe(context, turn.calls)
        return self._end("limit", reason=f"no answer within {self.turn_limit.used} turns")

    def _callable_tools(self) -> list[ToolContract]:
        """What may be called now: nothing where only an answer is left."""
        return [] if self.answer_now else self.call_limits.open(self.agent.contracts)

    def _turn(self, context: Context, tools: Sequence[ToolContract]) -> ModelTurn:
        """A turn that was understood, after as many retries as are allowed."""
        agent = self.agent
        grammar = tool_grammar(
            tools,
            max_calls=agent.max_calls_per_turn,
            thought=agent.thought and bool(tools),
            dialect=context.dialect.name,
        )
        number = self.turn_limit.used
        digest = hashlib.sha256(grammar.encode()).hexdigest()[:16]
        self.emit("turn.start", {"turn": number, "grammar": digest})
        for attempt in range(agent.retries + 1):
            generation = agent.model.generate(
                context.messages,
                grammar=grammar,
                max_tokens=agent.max_tokens,
                seed=(self.seed + self.generations) % 2**32,
                tools=context.template_tools,
                view=agent.view,
            )
            self.generations += 1
            self.usage += generation.usage
            reply = {"turn": number, "attempt": attempt + 1, **asdict(generation)}
            self.emit("model.reply", reply)
            try:
                turn = parse_turn(
                    generation.text,
                    agent.contracts,
                    generation.stop,
                    first_call=len(self.results) + 1,
                    dialect=context.dialect.name,
                )
                check_number_of_calls(turn, agent.max_calls_per_turn)
                check_repairs(turn, tools, context.dialect, agent.confirm, self.emit)
            except ProtocolError as error:
                self._reject(context, error, generation.text, attempt)
            else:
                self.emit("turn.parsed", {"turn": number, **asdict(turn)})
                context.turn(turn, generation.text)
                return turn
        raise _GaveUpError

    def _reject(self, context: Context, error: ProtocolError, text: str, attempt: int) -> None:
        """Tell the model what was wrong; from the second time on with an example."""
        self.rejected += 1
        problem = context.rejection(error, text, with_example=attempt > 0)
        where = {"turn": self.turn_limit.used, "attempt": attempt + 1}
        self.emit("model.rejected", {**where, "kind": error.kind, "message": problem})

    def _observe(self, context: Context, calls: Sequence[ToolCall]) -> None:
        """Run calls, give their results to the model, and see what it may still do.

        The last turn leaves only an answer, and so does a turn that brought nothing new: a small
        model that repeats itself once would do so to the end.
        """
        earlier = [*self.results]
        for result in self.calls.run(calls):
            # At once, so that a call is in the result of the run even if the next is interrupted.
            self.results.append(result)
        results = self.results[len(earlier) :]
        repeated = repetitions(results, earlier)
        self.answer_now = self.turn_limit.remaining == 1 or len(repeated) == len(results)
        names = {result.call.name for result in results}
        left = {name: self.call_limits.remaining(name) for name in names}
        context.observation(results, left, repeated)

    def _fallback(self) -> str:
        last = self.results[-1].text if self.results else ""
        return message("loop", "gave_up", attempts=self.agent.retries + 1, last=last)

    def _end(
        self,
        status: Status,
        answer: str | None = None,
        *,
        reason: str = "",
        error: RunnerError | None = None,
    ) -> RunResult:
        result = RunResult(
            status=status,
            answer=answer,
            turns=tuple(self.turns),
            calls=tuple(self.results),
            usage=self.usage,
            transcript=self.recorder.location,
            seed=self.seed,
            reason=reason,
            retries=self.rejected,
            error=error,
        )
        self.emit("run.end", result.ending())
        return result
