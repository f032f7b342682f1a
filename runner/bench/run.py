"""Runs the tasks with a model and adds up what came of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.agent import Agent
from runner.bench.tasks import Task, make_workspace
from runner.core.conversation import Usage
from runner.core.ports import Model
from runner.record import Transcript
from runner.tools.builtin import builtin_tools, toolset


@dataclass(frozen=True)
class Outcome:
    """One task with one model."""

    task: str
    solved: bool
    status: str
    answer: str | None
    turns: int
    calls: int
    retries: int
    repairs: int
    seconds: float
    usage: Usage
    transcript: str


@dataclass(frozen=True)
class Report:
    """All tasks with one model.

    The figures are totals, but for ``valid_turns`` (share of model replies that could be used at
    once), ``strict_turns`` (share of usable turns that needed no repair) and the two rates, which
    are tokens a second of prompt evaluation and of writing.
    """

    model: str
    facts: dict[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def solved(self) -> int:
        return sum(outcome.solved for outcome in self.outcomes)

    def summary(self) -> dict[str, Any]:
        """The figures, JSON-ready."""
        usage = sum((outcome.usage for outcome in self.outcomes), Usage())
        turns = sum(outcome.turns for outcome in self.outcomes)
        retries = sum(outcome.retries for outcome in self.outcomes)
        repairs = sum(outcome.repairs for outcome in self.outcomes)
        evaluated = usage.prompt_tokens - usage.reused_tokens
        return {
            "model": self.model,
            "tasks": len(self.outcomes),
            "solved": self.solved,
            "valid_turns": _share(turns, turns + retries),
            "strict_turns": _share(turns - repairs, turns),
            "repairs": repairs,
            "retries": retries,
            "turns": turns,
            "calls": sum(outcome.calls for outcome in self.outcomes),
            "seconds": round(sum(outcome.seconds for outcome in self.outcomes), 2),
            "prompt_tokens_per_second": _rate(evaluated, usage.prompt_seconds),
            "written_tokens_per_second": _rate(usage.generated_tokens, usage.decode_seconds),
            "prompt_tokens": usage.prompt_tokens,
            "reused_tokens": usage.reused_tokens,
            "generated_tokens": usage.generated_tokens,
        }

    def to_json(self) -> dict[str, Any]:
        """Summary, facts about the model, and every outcome."""
        outcomes = [asdict(outcome) for outcome in self.outcomes]
        return {**self.summary(), "facts": self.facts, "outcomes": outcomes}


def run_tasks(
    model: Model,
    tasks: Sequence[Task],
    *,
    seed: int = 1,
    records: Path | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """Every task through the whole loop, with the default tools, each in a fresh folder.

    Parameters
    ----------
    done
        Called after each task.
    """
    facts = model.describe()
    outcomes = []
    for task in tasks:
        with tempfile.TemporaryDirectory(prefix="runner-bench-") as folder:
            outcome = _run(model, task, Path(folder), seed, records)
        outcomes.append(outcome)
        done(outcome)
    return Report(model.name, facts, tuple(outcomes))


def _run(model: Model, task: Task, folder: Path, seed: int, records: Path | None) -> Outcome:
    make_workspace(folder)
    tools = builtin_tools(toolset("default"), folder)
    with Transcript.create(records) as transcript:
        started = time.perf_counter()
        result = Agent(model, tools, seed=seed, recorder=transcript).run(task.prompt)
        seconds = time.perf_counter() - started
    if result.error is not None:
        raise result.error
    return Outcome(
        task=task.name,
        solved=task.solved_by(result),
        status=result.status,
        answer=result.answer,
        turns=len(result.turns),
        calls=len(result.calls),
        retries=result.retries,
        repairs=sum(any(r.stage != "cut" for r in turn.receipts) for turn in result.turns),
        seconds=round(seconds, 3),
        usage=result.usage,
        transcript=result.transcript,
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _rate(tokens: int, seconds: float) -> float:
    return round(tokens / seconds, 1) if seconds else 0.0
