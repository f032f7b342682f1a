"""``runner record``: the transcripts of past runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from runner.cli.options import RecordsOption
from runner.cli.output import JsonOption, note, print_json, print_table
from runner.core.errors import ConfigError

app = typer.Typer(help="The transcripts of past runs.", no_args_is_help=True)


@app.command("list")
def list_records(
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many, newest first.")] = 20,
    records: RecordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List past runs, newest first."""
    from runner.record import list_transcripts

    runs = [_summary(path) for path in list_transcripts(records)[:limit]]
    if as_json:
        print_json({"runs": runs})
        return
    print_table(
        ("run", "model", "status", "turns", "calls", "task"),
        [
            (
                Path(run["path"]).stem,
                run["model"] or "-",
                run["status"] or "not closed",
                str(run["turns"]),
                str(run["calls"]),
                _one_line(run["task"] or "-"),
            )
            for run in runs
        ],
    )


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A run's name or its beginning, a path, or 'last'.")
    ] = "last",
    records: RecordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run step by step."""
    from runner.record import find_transcript, read_events

    path = find_transcript(name, records)
    events = list(read_events(path))
    if as_json:
        print_json({"path": path, "events": events})
        return
    for event in events:
        try:
            text = _as_text(event)
        except (KeyError, TypeError) as error:
            text = f"({event['event']} without {error})"
        if text:
            typer.echo(text)
    note(f"transcript: {path}")
    if not events or events[-1]["event"] != "run.end":
        note("this run was not closed: it is still going on, or its process was killed")


def _summary(path: Path) -> dict[str, Any]:
    from runner.record import read_events

    try:
        events = list(read_events(path))
    except ConfigError:
        return {"path": str(path), "status": "damaged"} | dict.fromkeys(
            ("started", "task", "model", "turns", "calls")
        )
    by_kind = {event["event"]: event for event in events}
    return {
        "path": str(path),
        "started": events[0].get("time") if events else None,
        "task": by_kind.get("run.start", {}).get("task"),
        "model": by_kind.get("model.ready", {}).get("name"),
        "status": by_kind.get("run.end", {}).get("status"),
        "turns": sum(event["event"] == "turn.start" for event in events),
        "calls": sum(event["event"] == "call.start" for event in events),
    }


def _as_text(event: dict[str, Any]) -> str:
    kind = event["event"]
    if kind == "run.start":
        return f"{event['time']}  seed {event['seed']}  task: {event['task']}"
    if kind == "model.ready":
        return f"model: {event['name']}"
    if kind == "model.reply":
        usage = event["usage"]
        # Not in the transcripts of older versions.
        thinking = event.get("thinking", "").strip()
        thoughts = f"(thinking) {thinking}\n" if thinking else ""
        return (
            f"\n-- turn {event['turn']}, attempt {event['attempt']}: {usage['prompt_tokens']} "
            f"prompt tokens ({usage['reused_tokens']} reused), {usage['generated_tokens']} "
            f"written, stopped by {event['stop']} --\n{thoughts}{event['text']}"
        )
    if kind == "model.rejected":
        return f"refused ({event['kind']}): {event['message']}"
    if kind == "turn.parsed":
        return "\n".join(
            r["what"] if r["stage"] == "cut" else f"repaired: {r['what']} {r['where']}".rstrip()
            for r in event["receipts"]
        )
    if kind == "call.confirmed":
        verdict = "confirmed" if event["granted"] else "not confirmed"
        return f"{verdict}: {event['id']} {event['name']}, guessed: {'; '.join(event['what'])}"
    if kind == "call.end":
        error = f"ERROR ({event['error']}): " if event["error"] else ""
        return f"OBSERVATION [{event['id']} {event['name']}]: {error}{event['result']}"
    if kind == "run.end":
        reason = f" ({event['reason']})" if event["reason"] else ""
        return f"\n{event['time']}  {event['status']}{reason}: {event['answer'] or '-'}"
    return ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
