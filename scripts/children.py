"""Child processes of the set-up: run, watched, and ended with everything they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

KEPT_LINES = 25
_CUT = 240
_POLITE_SECONDS = 10


class SetupError(Exception):
    """The set-up cannot go on; the text says what was expected, found, and what to do."""


@dataclass(frozen=True)
class Finished:
    """A child that ended: exit code (negative: the signal), its last lines, seconds it took."""

    code: int
    lines: tuple[str, ...]
    seconds: float
    timed_out: bool = False

    @property
    def tail(self) -> str:
        """The last lines, indented, for a message."""
        return "\n".join("  | " + line for line in self.lines)

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.timed_out:
            return f"no end after {self.seconds:.0f} s"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        return f"exit code {self.code}"


def say(text: str) -> None:
    """Print one line at once, also into a pipe or a log file."""
    print(text, flush=True)


class Ticker:
    """Shows how far a long step is: in place on a terminal, else a line every ten seconds.

    Parameters
    ----------
    describe
        What to show for a line of the child's output; empty for nothing.
    """

    def __init__(self, describe: Callable[[str], str], *, out: TextIO | None = None) -> None:
        self._describe = describe
        self._out = out or sys.stdout
        self._started = time.monotonic()
        self._shown = self._started
        self._in_place = self._out.isatty()
        self._open = False

    def __call__(self, line: str) -> None:
        text = self._describe(line)
        now = time.monotonic()
        if not text or now - self._shown < (0.2 if self._in_place else 10):
            return
        self._shown = now
        minutes, seconds = divmod(int(now - self._started), 60)
        text = f"  {text[:60]} ({minutes}:{seconds:02} so far)"
        self._out.write(f"\r{text:<90}" if self._in_place else f"{text}\n")
        self._out.flush()
        self._open = self._in_place

    def close(self) -> None:
        """End the line that was written in place."""
        if self._open:
            self._out.write("\n")
            self._out.flush()
            self._open = False


def run(
    command: Sequence[str],
    *,
    on_line: Callable[[str], None] = lambda line: None,
    env: Mapping[str, str] | None = None,
    log: TextIO | None = None,
    timeout: float | None = None,
) -> Finished:
    """Run a command to its end, in a process group of its own.

    Parameters
    ----------
    on_line
        Takes each line of its output (both streams).
    log
        Gets all of its output.
    timeout
        Seconds until the whole group is killed.

    Raises
    ------
    SetupError
        The command cannot be started.
    """
    started = time.monotonic()
    kept: deque[str] = deque(maxlen=KEPT_LINES)
    process = _start(command, env)
    timed_out = threading.Event()
    timer = threading.Timer(timeout or 0, _time_is_up, (process, timed_out))
    if timeout is not None:
        timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if log is not None:
                log.write(line)
            kept.append(line.rstrip()[:_CUT])
            on_line(line.rstrip())
        process.wait()
    finally:
        timer.cancel()
        if process.returncode is None:
            _end_group(process)
    return Finished(process.returncode, tuple(kept), time.monotonic() - started, timed_out.is_set())


def _start(command: Sequence[str], env: Mapping[str, str] | None) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches only this process, which then ends the group
        )
    except OSError as error:
        raise SetupError(f"cannot run {command[0]}: {error.strerror}") from error


def _time_is_up(process: subprocess.Popen[str], timed_out: threading.Event) -> None:
    timed_out.set()
    _signal_group(process, signal.SIGKILL)


def _end_group(process: subprocess.Popen[str]) -> None:
    """Interrupt a whole group as Ctrl-C would, so that pip cleans up; kill what is left."""
    try:
        _signal_group(process, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLITE_SECONDS)
    finally:
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
