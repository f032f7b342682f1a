"""``runner tools``: what a model may call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runner.cli.output import JsonOption, print_json, print_table

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
    typer.echo(f"example: ACTION: {example_call(contract)}")
