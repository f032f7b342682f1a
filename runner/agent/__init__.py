"""What happens between a task and its answer."""

from runner.agent.agent import Agent
from runner.agent.result import RunResult

__all__ = ["Agent", "RunResult"]
