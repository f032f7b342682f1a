"""``runner bench``: how well do models work here, and how fast is all around them?"""

from __future__ import annotations

import json
import signal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from runner.cli.options import ConfigOption, RecordsOption
from runner.cli.output import ExitCode, JsonOption, note, print_json, print_table, show_error
from runner.core.errors import ConfigError, RunnerError

app = typer.Typer(
    help="How well do models work here, and how fast is all around them?", no_args_is_help=True
)

_COLUMNS = {
    "model": "model",
    "solved": "solved",
    "valid_turns": "valid turns",
    "strict_turns": "no repair",
    "repairs": "repairs",
    "retries": "retries",
    "turns": "turns",
    "calls": "calls",
    "seconds": "seconds",
    "prompt_tokens_per_second": "prompt tok/s",
    "written_tokens_per_second": "written tok/s",
}


class Suite(str, Enum):
    """What is measured."""

    TASKS = "tasks"


@app.callback()
def group() -> None:
    """How well do models work here, and how fast is all around them?"""


@app.command()
def run(
    suite: Annotated[Suite, typer.Argument(help="'tasks': 20 small tasks with known outcomes.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="May be repeated. Default: every model.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every run.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Write the JSON document here too.", show_default=False)
    ] = None,
    config: ConfigOption = None,
    records: RecordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a suite with models of models.toml; print a table, or everything as JSON.

    A model that cannot run is reported and left out; the exit code is then 3.
    """
    from runner.bench.run import Report, run_tasks
    from runner.bench.tasks import tasks
    from runner.models import load_catalog, load_model

    catalog = load_catalog(config)
    names = [catalog.name_of(name) for name in model] if model else list(catalog.models)
    _check_out(out)
    chosen = tasks()
    reports: list[Report] = []
    failed: list[dict[str, Any]] = []
    for name in names:
        note(f"{name}: {len(chosen)} tasks")
        try:
            with load_model(name, config=config) as loaded:
                reports.append(
                    run_tasks(loaded, chosen, seed=seed, records=records, done=_show_outcome)
                )
        except RunnerError as error:
            show_error(error)
            failed.append({"model": name, "error": str(error)})
    document = {
        "suite": suite.value,
        "seed": seed,
        "models": [report.to_json() for report in reports],
        "failed": failed,
    }
    _write_out(out, document)
    if as_json:
        print_json(document)
    else:
        print_table(tuple(_COLUMNS.values()), [_row(report.summary()) for report in reports])
    if failed:
        raise typer.Exit(ExitCode.MODEL)


@app.command()
def protocol(as_json: JsonOption = False) -> None:
    """Measure the reader and the grammar, without a model. Takes half a minute.

    Turns and grammars are medians. Each hostile reply is a million characters of one text, alone
    and in a call, in each dialect; the slowest counts.
    """
    from runner.bench.protocol import measure_protocol

    figures = []
    for figure in measure_protocol():
        figures.append(figure.to_json())
        note(f"  measured: {figure.what}")
    if as_json:
        print_json({"suite": "protocol", "figures": figures})
        return
    print_table(
        ("group", "what", "time", "target", "met"),
        [
            (
                figure["group"],
                figure["what"],
                f"{figure['value']} {figure['unit']}",
                f"< {figure['target']:g} {figure['unit']}",
                "yes" if figure["met"] else "no",
            )
            for figure in figures
        ],
    )


@app.command()
def speed(
    model: Annotated[
        str | None, typer.Option(help="Name in models.toml. Default: its `default`.")
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="May be repeated: calls, copies, answers, run, same, start, busy, memory. "
            "Default: all but 'same', which compares texts for some minutes.",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, max=200, help="Tasks that 'same' compares.")] = 200,
    out: Annotated[
        Path | None, typer.Option(help="Write the JSON document here too.", show_default=False)
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the engine with one model, beside llama-cpp-python's own way. Takes minutes.

    Every ratio is from runs that alternate in one process. Let the machine be quiet meanwhile.
    """
    from runner.bench.speed.report import PARTS, measure, ratios
    from runner.cli.run import interrupt
    from runner.models import load_catalog

    # The measuring processes end with this one.
    signal.signal(signal.SIGTERM, interrupt)
    _check_out(out)
    parts = part or [name for name in PARTS if name != "same"]
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        raise ConfigError(
            f"--part: expected one of {', '.join(PARTS)}, found {unknown[0]!r}",
            hint="leave it out for all of them but 'same'",
        )
    catalog = load_catalog(config)
    name = catalog.name_of(model)
    settings = catalog.models[name]
    if settings.kind != "gguf":
        raise ConfigError(
            f"model {name!r} is of kind {settings.kind!r}: only GGUF models have a speed",
            hint="choose another with --model",
        )
    figures = measure(name, settings, catalog.file.parent, parts, tasks, lambda t: note(f"  {t}"))
    found = ratios(figures)
    document = {"suite": "speed", "model": name, "figures": figures,
                "ratios": [ratio.to_json() for ratio in found]}  # fmt: skip
    _write_out(out, document)
    if as_json:
        print_json(document)
        return
    for kind in ("calls", "copies", "answers"):
        if kind in figures:
            rates = figures[kind]["tokens_per_second"].items()
            typer.echo(f"{kind}, tokens a second: " + ", ".join(f"{k} {v:.1f}" for k, v in rates))
    print_table(
        ("part", "what", "value", "target", "met"),
        [
            (
                ratio.part,
                ratio.what,
                f"{ratio.value:.3g}",
                f"{'<=' if ratio.most else '>='} {ratio.target:g}",
                "yes" if ratio.met else "no",
            )
            for ratio in found
        ],
    )


def _check_out(out: Path | None) -> None:
    """Before anything is measured: nothing must be lost at the end."""
    if out is not None and not out.absolute().parent.is_dir():
        raise ConfigError(
            f"--out: there is no folder {out.absolute().parent}", hint="make it first"
        )


def _write_out(out: Path | None, document: dict[str, Any]) -> None:
    if out is not None:
        out.write_text(json.dumps(document, ensure_ascii=False, indent=2, default=str) + "\n")
        note(f"written to {out}")


def _show_outcome(outcome: Any) -> None:
    mark = "solved" if outcome.solved else "failed"
    note(f"  {mark}  {outcome.task} ({outcome.turns} turns, {outcome.seconds:.1f} s)")


def _row(summary: dict[str, Any]) -> list[str]:
    shown = dict(summary)
    shown["solved"] = f"{summary['solved']}/{summary['tasks']}"
    for share in ("valid_turns", "strict_turns"):
        shown[share] = f"{summary[share]:.1%}"
    return [str(shown[key]) for key in _COLUMNS]
