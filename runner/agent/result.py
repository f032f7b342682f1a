"""What a run came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from runner.core.conversation import ModelTurn, ToolResult, Usage
from runner.core.errors import RunnerError

Status = Literal["answered", "gave_up", "limit", "interrupted", "failed"]


@dataclass(frozen=True)
class RunResult:
    """The end of a run.

    Attributes
    ----------
    status
        ``answered``; ``gave_up`` (no usable turn after all retries, ``answer`` says so);
        ``limit`` (turns or context window used up); ``interrupted``; ``failed`` (see ``error``).
    answer
        The answer's text, or None.
    turns
        Every turn that was understood.
    calls
        Every call with its result, in order.
    usage
        Tokens and seconds of all generations together.
    transcript
        Where the record of the run can be read.
    seed
        Seed of the run; the same seed, model and task give the same run.
    reason
        Why it did not end with a whole answer; empty where it did.
    retries
        Turns that had to be written again.
    """

    status: Status
    answer: str | None
    turns: tuple[ModelTurn, ...]
    calls: tuple[ToolResult, ...]
    usage: Usage
    transcript: str
    seed: int
    reason: str = ""
    retries: int = 0
    error: RunnerError | None = None

    def ending(self) -> dict[str, Any]:
        """What the event ``run.end`` says: all that earlier events do not."""
        told = ("turns", "calls", "transcript", "seed")
        data = {key: value for key, value in self.to_json().items() if key not in told}
        log = getattr(self.error, "log", ())
        return {**data, "log": log} if log else data

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data; the keys are stable."""
        return {
            "status": self.status,
            "answer": self.answer,
            "reason": self.reason,
            "turns": [asdict(turn) for turn in self.turns],
            "calls": [
                {
                    "id": result.call.id,
                    "name": result.call.name,
                    "input": result.call.input,
                    "result": result.text,
                    "error": result.error,
                }
                for result in self.calls
            ],
            "retries": self.retries,
            "usage": asdict(self.usage),
            "seed": self.seed,
            "transcript": self.transcript,
        }
