"""The tools that come with the runner, and the named sets of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from runner.core.errors import ConfigError
from runner.core.ports import Tool
from runner.tools.builtin.calculator import calculator
from runner.tools.builtin.clock import get_time
from runner.tools.builtin.files import list_files_tool, read_file_tool
from runner.tools.builtin.search import search_files_tool
from runner.tools.builtin.workspace import Workspace
from runner.tools.builtin.write import write_file_tool

__all__ = [
    "TOOLSETS",
    "Workspace",
    "builtin_names",
    "builtin_tools",
    "calculator",
    "get_time",
    "toolset",
]

_MAKERS: Mapping[str, Callable[[Workspace], Tool]] = {
    "calculator": lambda workspace: calculator,
    "get_time": lambda workspace: get_time,
    "list_files": list_files_tool,
    "read_file": read_file_tool,
    "search_files": search_files_tool,
    "write_file": write_file_tool,
}
TOOLSETS: dict[str, tuple[str, ...]] = {
    "default": ("calculator", "get_time", "read_file", "list_files", "search_files"),
    "math": ("calculator",),
    "time": ("get_time",),
    "files": ("list_files", "read_file", "search_files"),
    "files-write": ("list_files", "read_file", "search_files", "write_file"),
    "all": tuple(_MAKERS),
}


def builtin_names() -> tuple[str, ...]:
    """Names of all built-in tools."""
    return tuple(_MAKERS)


def builtin_tools(names: Sequence[str], workspace: Path) -> list[Tool]:
    """Built-in tools, in the order of ``names``, each once.

    Parameters
    ----------
    names
        Names of tools, see `builtin_names`.
    workspace
        The folder that file tools are confined to.

    Raises
    ------
    ConfigError
        An unknown name, or a workspace that is no folder.
    """
    for name in names:
        if name not in _MAKERS:
            if name in TOOLSETS:
                raise ConfigError(
                    f"{name!r} is a toolset, not a tool",
                    hint=f"ask for the toolset, or for its tools: {', '.join(TOOLSETS[name])}",
                )
            _unknown("tool", name, builtin_names())
    confined = Workspace(workspace)
    return [_MAKERS[name](confined) for name in dict.fromkeys(names)]


def toolset(name: str) -> tuple[str, ...]:
    """Names of the tools in a toolset.

    Raises
    ------
    ConfigError
        There is no such toolset.
    """
    if name not in TOOLSETS:
        _unknown("toolset", name, tuple(TOOLSETS))
    return TOOLSETS[name]


def _unknown(what: str, name: str, known: Sequence[str]) -> NoReturn:
    close = difflib.get_close_matches(name, known, 1)
    question = f"did you mean {close[0]!r}? " if close else ""
    raise ConfigError(
        f"there is no built-in {what} {name!r}",
        hint=f"{question}known {what}s: {', '.join(known)}",
    )
