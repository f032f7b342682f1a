"""The question about a repaired call, asked by the command at a terminal of its own."""

import io
import json
import os
import pty
import subprocess
import sys

import pytest

from runner.cli.confirm import ask
from runner.core.conversation import Receipt, ToolCall

CONFIG = 'default = "script"\n[models.script]\nkind = "scripted"\npath = "turns.txt"\n'
CALL = 'ACTION: {"tool": "write_file", "params": {"path": "new.txt", "content": "milk"}}'
COMMAND = [sys.executable, "-m", "runner", "run", "write", "--tools", "write_file"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder whose model forgets the last brace of a call that writes a file."""
    (tmp_path / "models.toml").write_text(CONFIG)
    (tmp_path / "turns.txt").write_text(f"{CALL[:-1]}\n---\nANSWER: so be it\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at_a_terminal(typed, *options):
    """Exit code and what stood on the terminal; stdout is a pipe."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *options], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True
    )
    os.close(theirs)
    os.write(ours, typed)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # nobody has the terminal open any more
            break
        if not piece:
            break
        seen += piece
    process.stdout.close()
    os.close(ours)
    return process.wait(60), seen.decode()


@pytest.mark.parametrize(
    ("typed", "runs"), [(b"y\n", True), (b"YES\n", True), (b"\n", False), (b"\x04", False)]
)
def test_at_a_terminal_a_repaired_write_runs_after_a_yes_only(home, typed, runs):
    code, seen = at_a_terminal(typed)
    assert (home / "new.txt").is_file() == runs
    assert code == 0
    assert 'write_file {"path": "new.txt", "content": "milk"}' in seen
    assert "missing at the end" in seen
    assert "[y/N]" in seen
    assert ("refused, asked again" in seen) != runs


def test_the_record_shows_what_was_asked(home):
    at_a_terminal(b"y\n")
    shown = subprocess.run(
        [sys.executable, "-m", "runner", "record", "show"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "confirmed: c1 write_file, guessed: added '}'" in shown.stdout


def test_with_json_nobody_is_asked_and_nothing_runs(home):
    _, seen = at_a_terminal(b"y\n", "--json")
    assert "[y/N]" not in seen
    assert not (home / "new.txt").exists()


@pytest.mark.parametrize("stdin", ["y\n", ""])
def test_without_a_terminal_nobody_is_asked_and_nothing_runs(home, stdin):
    done = subprocess.run(
        [*COMMAND, "--json"], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    assert "[y/N]" not in done.stderr
    assert not (home / "new.txt").exists()
    assert json.loads(done.stdout)["retries"] == 1


def test_the_question_cannot_be_painted_over(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    text = "größe\n\x1b[2K\x9b1A\u202eevil"
    assert not ask(ToolCall("c1", "write", {"t": text}), [Receipt("call", "a\x1b[2K", cost=1)])
    assert "größe" in shown.getvalue()
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown.getvalue())
