"""``runner doctor``: will it work on this machine?"""

from __future__ import annotations

from typing import Annotated

import typer

from runner.cli.options import ConfigOption
from runner.cli.output import ExitCode, JsonOption, print_json, print_table


def doctor(
    model: Annotated[
        str | None,
        typer.Option(
            help="Model for the self-test. Default: the default model.", show_default=False
        ),
    ] = None,
    test: Annotated[bool, typer.Option(help="Load the model and let it write a word.")] = True,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Python, the engine and its build, the processor, models, and a short self-test.

    Ends with exit code 3 when something fails.
    """
    from runner.models.diagnosis import examine

    findings = examine(model, config=config, test=test)
    if as_json:
        print_json(
            {
                "ok": all(finding.state != "fail" for finding in findings),
                "findings": [vars(finding) for finding in findings],
            }
        )
    else:
        print_table(("check", "", "found"), [(f.check, f.state, f.found) for f in findings])
    if any(finding.state == "fail" for finding in findings):
        raise typer.Exit(ExitCode.MODEL)
