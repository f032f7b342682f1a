"""Run tool-using agents on local models: no network, no vendor tool-calling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.core.lazy import lazy

__version__ = "0.1.0"

if TYPE_CHECKING:
    from runner.agent import Agent, RunResult
    from runner.core.contract import ToolContract
    from runner.models import ScriptedModel, load_model
    from runner.tools import tool

__all__ = ["Agent", "RunResult", "ScriptedModel", "ToolContract", "load_model", "tool"]

# When they are first used, so that `runner --help` stays quick.
_HOMES = {
    "Agent": "runner.agent",
    "RunResult": "runner.agent",
    "ScriptedModel": "runner.models",
    "ToolContract": "runner.core.contract",
    "load_model": "runner.models",
    "tool": "runner.tools",
}
__getattr__ = lazy(__name__, _HOMES)
