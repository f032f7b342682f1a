"""What happens between a task and its answer."""

from runner.agent.loop import Agent
from runner.agent.result import RunResult

__all__ = ["Agent", "RunResult"]
