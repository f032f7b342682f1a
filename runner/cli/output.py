"""What all commands share: exit codes, JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any

import typer

from runner.core.errors import (
    ConfigError,
    ContextOverflowError,
    ModelError,
    ProtocolError,
    RunnerError,
    WorkerError,
)

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, all else on stderr.")
]


class ExitCode(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    NO_ANSWER = 1
    USAGE = 2
    MODEL = 3
    INTERRUPTED = 130


def exit_code(error: RunnerError) -> ExitCode:
    """The exit code that an error ends a command with."""
    if isinstance(error, (ConfigError, ContextOverflowError)):
        return ExitCode.USAGE
    if isinstance(error, ModelError):
        return ExitCode.MODEL
    return ExitCode.NO_ANSWER


def error_json(error: RunnerError) -> dict[str, Any]:
    """An error as JSON-ready data."""
    data = {"type": type(error).__name__, "message": str(error), "hint": error.hint}
    if isinstance(error, ProtocolError):
        data["kind"] = error.kind
    return data


def fail(error: RunnerError) -> ExitCode:
    """Print an error as one paragraph on stderr (and as JSON where asked for)."""
    options = sys.argv[: sys.argv.index("--")] if "--" in sys.argv else sys.argv
    if "--json" in options:
        print_json({"error": error_json(error)})
    show_error(error)
    return exit_code(error)


def show_error(error: RunnerError) -> None:
    """One paragraph on stderr: what is wrong, then what to do."""
    text = f"error: {error}"
    hint = f" Hint: {error.hint}" if error.hint else ""
    note(f"{text}{'' if text.endswith('.') else '.'}{hint}")
    if isinstance(error, WorkerError) and error.log:
        note("last lines of the engine's log:")
        for line in error.log[-5:]:
            note(f"  {line}")


def note(text: str) -> None:
    """A line on stderr."""
    typer.echo(text, err=True)


def print_json(data: Any) -> None:
    """The one JSON document of a command, on stdout."""
    typer.echo(json.dumps(data, ensure_ascii=False, indent=2, default=str))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on stdout; plain columns where stdout is no terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200)
    table = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)
