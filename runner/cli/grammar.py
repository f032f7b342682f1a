"""``runner grammar``: the grammar that holds a model to the protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from runner.cli.options import ContractsOption, contracts
from runner.cli.output import JsonOption, note, print_json

app = typer.Typer(help="The grammar that holds a model to the protocol.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """The grammar that holds a model to the protocol."""


@app.command()
def show(
    tools: ContractsOption = None,
    max_calls: Annotated[int, typer.Option(min=0, help="Most ACTION lines in a turn.")] = 4,
    thought: Annotated[bool, typer.Option(help="Whether a THOUGHT line may come first.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Print the GBNF text for a set of tools. What it does not enforce is noted on stderr."""
    from runner.protocol import build_grammar

    grammar = build_grammar(contracts(tools), max_calls=max_calls, thought=thought)
    if as_json:
        print_json({"grammar": grammar.text, "notes": grammar.notes})
        return
    typer.echo(grammar.text, nl=False)
    for text in grammar.notes:
        note(text)
