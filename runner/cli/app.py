"""Puts the command groups together. Commands import what is heavy when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from runner import __version__
from runner.cli import bench, doctor, grammar, models, parse, record, run, tools

app = typer.Typer(
    name="runner",
    help="Run tool-using agents on local models: no network, no vendor tool-calling.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("parse")(parse.parse)
app.command("doctor")(doctor.doctor)
app.add_typer(models.app, name="models")
app.add_typer(tools.app, name="tools")
app.add_typer(grammar.app, name="grammar")
app.add_typer(record.app, name="record")
app.add_typer(bench.app, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Run tool-using agents on local models: no network, no vendor tool-calling."""
