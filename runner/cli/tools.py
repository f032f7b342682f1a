"""``runner tools``: what a model may call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli.options import ContractsOption, contracts, tools_in_file
from runner.cli.output import ExitCode, JsonOption, print_json, print_table
from runner.core.errors import ConfigError

if TYPE_CHECKING:
    from runner.core.contract import ToolContract

app = typer.Typer(help="The tools that a model may call.", no_args_is_help=True)


@app.command("list")
def list_tools(as_json: JsonOption = False) -> None:
    """List the built-in tools and toolsets."""
    from runner.tools.builtin import TOOLSETS, builtin_names, builtin_tools

    contracts = [tool.contract for tool in builtin_tools(builtin_names(), Path.cwd())]
    if as_json:
        listed = [contract.model_dump(mode="json") for contract in contracts]
        print_json({"tools": listed, "toolsets": TOOLSETS})
        return
    print_table(
        ("tool", "effect", "parameters", "description"),
        [(c.name, c.effect.value, ", ".join(c.properties), c.description) for c in contracts],
    )
    print_table(("toolset", "tools"), [(name, ", ".join(TOOLSETS[name])) for name in TOOLSETS])


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a built-in tool.")],
    as_json: JsonOption = False,
) -> None:
    """Show a tool's contract: parameters, effect, limits, examples."""
    from runner.protocol.prompt import example_call, kind_of
    from runner.tools.builtin import builtin_tools

    (tool,) = builtin_tools([name], Path.cwd())
    contract = tool.contract
    if as_json:
        print_json(contract.model_dump(mode="json"))
        return
    typer.echo(f"{contract.name} {contract.version}: {contract.description}")
    typer.echo(f"effect: {contract.effect.value}")
    most = contract.limits.max_calls
    calls = "no limit of its own" if most is None else f"at most {most} a run"
    typer.echo(f"calls: {calls}; results up to {contract.limits.max_result_chars} characters")
    for parameter, schema in contract.properties.items():
        needed = "required" if parameter in contract.required else "optional"
        about = schema.get("description", "")
        typer.echo(f"  {parameter} ({kind_of(schema)}, {needed}){': ' if about else ''}{about}")
    typer.echo(f"example: {example_call(contract)}")


@app.command()
def lint(tools: ContractsOption = None, as_json: JsonOption = False) -> None:
    """Check contracts: can each tool be called, and is all that it asks held by the grammar?

    A tool is fine, weakened (with what is only checked after the model wrote it), left out (no
    call can satisfy its parameters) or refused. Ends with exit code 2 where a tool cannot be used.
    """
    found: list[tuple[str, ToolContract | ConfigError]]
    if tools is not None and tools.endswith(".json"):
        found = tools_in_file(Path(tools))
    else:
        found = [(contract.name, contract) for contract in contracts(tools)]
    names = [name for name, _ in found]
    rows = [_judged(name, contract, names[:at]) for at, (name, contract) in enumerate(found)]
    usable = all(row["status"] in ("fine", "weakened") for row in rows)
    if as_json:
        print_json({"ok": usable, "tools": rows})
    else:
        for row in rows:
            typer.echo(f"{row['name']}: {row['status']}")
            for text in row["notes"]:
                typer.echo(f"  {text}")
            if row["hint"]:
                typer.echo(f"  Hint: {row['hint']}")
    if not usable:
        raise typer.Exit(ExitCode.USAGE)


def _judged(name: str, contract: ToolContract | ConfigError, before: list[str]) -> dict[str, Any]:
    """What is to be said about one tool of a set."""
    from runner.protocol import build_grammar

    if isinstance(contract, ConfigError):
        return _row(name, "refused", [str(contract)], contract.hint)
    if name in before:
        return _row(name, "refused", ["another tool has this name"], "give each its own name")
    # Making a grammar checks it as well.
    grammar = build_grammar([contract])
    if grammar.left_out:
        hint = "look for bounds, types or constants that exclude each other"
        return _row(name, "left out", list(grammar.notes), hint)
    return _row(name, "weakened" if grammar.notes else "fine", list(grammar.notes))


def _row(name: str, status: str, notes: list[str], hint: str = "") -> dict[str, Any]:
    return {"name": name, "status": status, "notes": notes, "hint": hint}
