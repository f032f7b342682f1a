"""``runner parse``: reads a turn from stdin."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import Annotated

import typer

from runner.cli.options import ContractsOption, DialectOption, contracts, text_from
from runner.cli.output import ExitCode, JsonOption, error_json, note, print_json


class Stop(str, Enum):
    """Why the text ended."""

    END = "end"
    LENGTH = "length"
    DEGENERATE = "degenerate"


def parse(
    tools: ContractsOption = None,
    stop: Annotated[
        Stop,
        typer.Option(
            help="Why the text ended. Text that the token limit cut off (length) or that only "
            "repeats itself (degenerate) never yields a call."
        ),
    ] = Stop.END,
    dialect: DialectOption = "action",
    as_json: JsonOption = False,
) -> None:
    """Read a model's turn from stdin and print what it means.

    Prints the turn in the dialect's own spelling, and on stderr what had to be repaired. A turn
    that cannot be used prints the message for the model on stderr and ends with exit code 1.
    """
    from runner.protocol import ProtocolError, parse_turn
    from runner.protocol.dialects import find_dialect

    offered = contracts(tools)
    text = text_from("-", "a turn")
    try:
        turn = parse_turn(text, offered, stop.value, dialect=dialect)
    except ProtocolError as error:
        if as_json:
            print_json({"error": error_json(error)})
        note(str(error))
        raise typer.Exit(ExitCode.NO_ANSWER) from None
    if as_json:
        print_json(asdict(turn))
        return
    typer.echo(find_dialect(dialect).spelled(turn))
    for receipt in turn.receipts:
        if receipt.stage == "cut":
            note(receipt.what)
            continue
        where = f" in {receipt.where}" if receipt.where else ""
        note(f"repaired ({receipt.stage}, cost {receipt.cost}): {receipt.what}{where}")
