"""Adapters to work: what fulfils a tool's contract."""

from __future__ import annotations

from runner.tools.function import FunctionTool, tool

__all__ = ["FunctionTool", "tool"]
