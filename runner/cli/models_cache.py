"""``runner models cache``: what is kept on disk so that models start warm."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

import typer

from runner.cli.output import JsonOption, note, print_json, print_table

app = typer.Typer(help="States kept on disk, so that models start warm.", no_args_is_help=True)


@app.command("list")
def list_states(as_json: JsonOption = False) -> None:
    """List the states, the last used one first."""
    from runner.models.llama.state_cache import default_state_cache

    cache = default_state_cache()
    entries = cache.entries()
    total = sum(entry.size for entry in entries)
    if as_json:
        states = [
            {
                "model": entry.name or None,
                "tokens": entry.tokens,
                "bytes": entry.size,
                "used": _time(entry.used).isoformat(timespec="seconds"),
                "key": entry.digest,
            }
            for entry in entries
        ]
        print_json(
            {
                "folder": cache.folder,
                "limit_bytes": cache.limit,
                "total_bytes": total,
                "states": states,
            }
        )
        return
    print_table(
        ("model", "tokens", "size", "last use", "key"),
        [
            (
                entry.name or "-",
                "damaged" if entry.tokens is None else f"{entry.tokens:,}",
                _megabytes(entry.size),
                f"{_time(entry.used).astimezone():%Y-%m-%d %H:%M}",
                entry.digest,
            )
            for entry in entries
        ],
    )
    limit = f"of at most {_megabytes(cache.limit)}" if cache.limit else "(switched off)"
    note(f"{_megabytes(total)} {limit} in {cache.folder}")


@app.command()
def clear(
    model: Annotated[
        str | None,
        typer.Option(help="Only states of this model. Default: of all.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Remove states. The next start of a model evaluates its whole prompt again."""
    from runner.models.llama.state_cache import default_state_cache

    cache = default_state_cache()
    removed = cache.clear(model)
    size = sum(entry.size for entry in removed)
    if as_json:
        print_json({"removed": len(removed), "bytes": size})
        return
    typer.echo(f"removed {_count(len(removed))}, {_megabytes(size)}")
    if model is not None and not removed:
        names = sorted({entry.name for entry in cache.entries() if entry.name})
        note(f"there is no state of {model!r}; there are states of: {', '.join(names) or 'none'}")


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _count(number: int) -> str:
    return "1 state" if number == 1 else f"{number} states"
