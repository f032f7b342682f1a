"""Run tool-using agents on local models: no network, no vendor tool-calling."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from runner.agent import Agent, RunResult
    from runner.core.contract import ToolContract
    from runner.models import ScriptedModel, load_model
    from runner.tools import tool

__all__ = ["Agent", "RunResult", "ScriptedModel", "ToolContract", "load_model", "tool"]

_HOMES = {
    "Agent": "runner.agent",
    "RunResult": "runner.agent",
    "ScriptedModel": "runner.models",
    "ToolContract": "runner.core.contract",
    "load_model": "runner.models",
    "tool": "runner.tools",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `runner --help` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'runner' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
