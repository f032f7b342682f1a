"""``runner run``: one task, one answer."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from runner.cli.confirm import ask, can_ask
from runner.cli.options import ConfigOption, RecordsOption, tool_names
from runner.cli.output import (
    ExitCode,
    JsonOption,
    error_json,
    exit_code,
    note,
    print_json,
    show_error,
)
from runner.core.errors import ConfigError


def run(
    task: Annotated[str, typer.Argument(help="What to do. '-' reads it from stdin.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="Name of a model in models.toml. Default: its `default`.", show_default=False
        ),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(help="Tools to offer, parted by commas; '' for none.", show_default=False),
    ] = None,
    toolset: Annotated[
        str | None,
        typer.Option(help="A named set of tools, see `runner tools list`.", show_default=False),
    ] = None,
    workspace: Annotated[
        Path, typer.Option(help="Folder that file tools are confined to.")
    ] = Path(),
    max_turns: Annotated[
        int, typer.Option(min=1, help="Turns until the run ends; the last can only answer.")
    ] = 10,
    max_calls: Annotated[
        list[str] | None,
        typer.Option(
            help="Most calls of a tool, as TOOL=N. May be given again.", show_default=False
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=16, help="New tokens a turn may have.")] = 500,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a turn that cannot be used is asked for again.")
    ] = 2,
    thought: Annotated[
        bool, typer.Option(help="Whether a turn may begin with a THOUGHT line.")
    ] = True,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**32 - 1, help="Seed of the run. Default: drawn.", show_default=False
        ),
    ] = None,
    config: ConfigOption = None,
    records: RecordsOption = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show the answer only, no steps.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Work on TASK with a local model and tools, and print the answer.

    Steps go to stderr, the answer alone to stdout. Where a call that writes or executes had to be
    repaired by a guess, you are asked at a terminal; otherwise it does not run and the model
    writes it again.

    Exit codes: 0 answered, 1 ended without an answer, 2 wrong use or configuration, 3 model or
    native failure, 130 interrupted.
    """
    from runner.models import load_model

    task = sys.stdin.read() if task == "-" else task
    if not task.strip():
        raise ConfigError("the task is empty", hint='say what to do: runner run "What is 2 + 2?"')
    signal.signal(signal.SIGTERM, interrupt)
    limits = _call_limits(max_calls or [])
    with load_model(model, config=config) as loaded:
        # Meanwhile the model loads.
        from runner.agent import Agent
        from runner.cli.terminal import QuietView, TerminalView
        from runner.record import Transcript
        from runner.tools.builtin import builtin_tools

        chosen = builtin_tools(tool_names(tools, toolset), workspace)
        view = QuietView() if quiet else TerminalView()
        with Transcript.create(records) as transcript:
            agent = Agent(
                loaded,
                chosen,
                max_turns=max_turns,
                max_calls=limits,
                max_tokens=max_tokens,
                retries=retries,
                thought=thought,
                seed=seed,
                recorder=transcript,
                view=view,
                confirm=ask if can_ask() and not as_json else None,
            )
            result = agent.run(task)
    if as_json:
        document = result.to_json()
        if result.error is not None:
            document["error"] = error_json(result.error)
        print_json(document)
    else:
        view.finish(result.answer)
    failed = sum(call.error is not None for call in result.calls)
    if failed and not quiet:
        note(f"{failed} of {len(result.calls)} calls failed; the answer may rest on that")
    if result.error is not None:
        show_error(result.error)
    elif result.reason:
        note(f"{result.status}: {result.reason}")
    if not quiet:
        note(f"transcript: {result.transcript}")
    if result.status != "answered":
        code = exit_code(result.error) if result.error is not None else ExitCode.NO_ANSWER
        raise typer.Exit(ExitCode.INTERRUPTED if result.status == "interrupted" else code)


def interrupt(number: int, frame: FrameType | None) -> None:
    """A polite request to end (SIGTERM) is treated like Ctrl-C: the transcript is closed."""
    raise KeyboardInterrupt


def _call_limits(texts: list[str]) -> dict[str, int]:
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not re.fullmatch("[0-9]{1,9}", number):
            raise ConfigError(
                f"--max-calls {text!r}: expected TOOL=N",
                hint="for example --max-calls calculator=3",
            )
        limits[name] = int(number)
    return limits
