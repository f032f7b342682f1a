"""Shows a run while it happens: steps on stderr, the answer on stdout."""

from __future__ import annotations

import re
import sys
import time
from typing import Any, TextIO

import typer

_ANSWER = re.compile(r"^ANSWER: ?", re.MULTILINE)
_PATIENCE_SECONDS = 1.0
_MOST_LINES = 12
_MOST_CHARS = 1200


class TerminalView:
    """Fulfils `runner.core.ports.View` for a person at a terminal.

    Turns are shown as they are written. Where stdout is a terminal, the text of an answer goes
    there at once; otherwise stdout gets the whole answer at the end, and nothing else.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._live_answers = self._out.isatty()
        self._turn = ""
        self._shown = 0
        self._answer_shown = ""
        self._thinking = ""
        self._progress_since: float | None = None
        self._progress_line = False

    def text(self, piece: str) -> None:
        self._end_progress()
        self._end_thinking()
        if not self._turn:
            self._answer_shown = ""
        self._turn += piece
        start = _ANSWER.search(self._turn)
        if start is None or not self._live_answers:
            # A line that may become the marker of an answer waits until it is known.
            line = self._turn.rfind("\n") + 1
            waits = self._live_answers and "ANSWER: ".startswith(self._turn[line:])
            self._show(line if waits else len(self._turn))
            return
        self._show(start.start())
        self._shown = max(self._shown, start.end())
        new = self._turn[self._shown :]
        if new:
            self._out.write(new)
            self._out.flush()
            self._answer_shown += new
            self._shown = len(self._turn)

    def thinking(self, piece: str) -> None:
        self._end_progress()
        if not self._thinking:
            piece = piece.lstrip()
        if piece:
            self._write(self._dimmed(piece if self._thinking else f"(thinking) {piece}"))
            self._thinking += piece

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._progress_since is None:
            self._progress_since = now
        if done < total and now - self._progress_since > _PATIENCE_SECONDS and self._err.isatty():
            self._progress_line = True
            self._write(f"\rreading the prompt: {done} of {total} tokens")

    def event(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "model.ready":
            threads = data.get("threads")
            facts = f" ({threads} threads, window {data['context']} tokens)" if threads else ""
            self._write(f"model {data['name']}{facts}\n")
        elif kind == "turn.start":
            self._write(f"\n-- turn {data['turn']} --\n")
        elif kind == "model.reply":
            self._end_reply()
        elif kind == "model.restarted":
            self._end_reply()
            self._write(f"   the model was restarted and writes anew: {data['problem']}\n")
        elif kind == "model.rejected":
            self._write(f"   refused, asked again: {data['message']}\n")
        elif kind == "turn.parsed":
            for receipt in data["receipts"]:
                if receipt["stage"] != "cut":
                    self._write(
                        f"   repaired: {receipt['what']} {receipt['where']}".rstrip() + "\n"
                    )
        elif kind == "call.end":
            text = ("ERROR: " if data["error"] else "") + _short(data["result"])
            self._write(f"OBSERVATION [{data['id']} {data['name']}]: {text}\n")

    def finish(self, answer: str | None) -> None:
        """Print the answer on stdout, unless it stands there already."""
        if answer is None or answer == self._answer_shown.strip():
            return
        if self._err.isatty():
            self._write("\n")
        typer.echo(answer, file=self._out)

    def _show(self, end: int) -> None:
        if end > self._shown:
            self._write(self._turn[self._shown : end])
            self._shown = end

    def _end_reply(self) -> None:
        self._end_progress()
        self._end_thinking()
        if not self._turn:
            return
        answered = _ANSWER.search(self._turn) is not None and self._live_answers
        if answered:
            self._out.write("\n")
            self._out.flush()
        else:
            self._show(len(self._turn))
            self._write("\n")
        self._turn, self._shown = "", 0

    def _end_thinking(self) -> None:
        if self._thinking and not self._thinking.endswith("\n"):
            self._write("\n")
        self._thinking = ""

    def _dimmed(self, text: str) -> str:
        return typer.style(text, dim=True) if self._err.isatty() else text

    def _end_progress(self) -> None:
        if self._progress_line:
            self._write("\r" + " " * 60 + "\r")
        self._progress_since, self._progress_line = None, False

    def _write(self, text: str) -> None:
        self._err.write(text)
        self._err.flush()


class QuietView(TerminalView):
    """Shows nothing but the answer at the end."""

    def text(self, piece: str) -> None:
        """Not shown."""

    def thinking(self, piece: str) -> None:
        """Not shown."""

    def progress(self, done: int, total: int) -> None:
        """Not shown."""

    def event(self, kind: str, data: dict[str, Any]) -> None:
        """Not shown."""


def _short(text: str) -> str:
    """A result, cut to what a terminal should show; the transcript has it whole."""
    lines = text.splitlines()
    shown = "\n".join(lines[:_MOST_LINES])[:_MOST_CHARS]
    if len(shown) < len(text.rstrip("\n")):
        shown += f"\n   ... ({len(text):,} characters in all)"
    return shown
