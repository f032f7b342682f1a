"""``runner grammar``: the grammar that holds a model to the protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from runner.cli.options import ContractsOption, DialectOption, contracts, text_from
from runner.cli.output import ExitCode, JsonOption, note, print_json

app = typer.Typer(help="The grammar that holds a model to the protocol.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """The grammar that holds a model to the protocol."""


@app.command()
def show(
    tools: ContractsOption = None,
    max_calls: Annotated[int, typer.Option(min=0, max=64, help="Most calls in a turn.")] = 4,
    thought: Annotated[bool, typer.Option(help="Whether a thought may come first.")] = True,
    dialect: DialectOption = "action",
    as_json: JsonOption = False,
) -> None:
    """Print the GBNF text for a set of tools. What it does not enforce is noted on stderr."""
    from runner.protocol import build_grammar

    grammar = build_grammar(contracts(tools), max_calls=max_calls, thought=thought, dialect=dialect)
    if as_json:
        print_json({"grammar": grammar.text, "notes": grammar.notes, "left_out": grammar.left_out})
        return
    typer.echo(grammar.text, nl=False)
    for text in grammar.notes:
        note(text)


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="A GBNF file; - for stdin.")] = "-",
    as_json: JsonOption = False,
) -> None:
    """Check GBNF text: is it read by llama.cpp, llguidance and xgrammar, and does it end?

    Prints each problem with its line, rule and a hint. Ends with exit code 2 where there are any.
    """
    from runner.core.gbnf import gbnf_problems

    problems = gbnf_problems(text_from(file, "a grammar"))
    if as_json:
        print_json({"ok": not problems, "problems": [found._asdict() for found in problems]})
    elif not problems:
        typer.echo("fine")
    else:
        for found in problems:
            typer.echo(f"{found}. Hint: {found.hint}")
    if problems:
        raise typer.Exit(ExitCode.USAGE)
