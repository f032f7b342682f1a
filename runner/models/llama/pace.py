"""How many threads decode: fewer while other programs need the processors.

The threads of llama.cpp wait for each other hundreds of times in every token. Where one of them
has lost its processor to another program, all stand still; one thread less is then faster. Linux
says how long threads were ready to run and had no processor (``schedstat``), and how long
processors had nothing to do (``/proc/stat``).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

CHECK_SECONDS = 0.4
_BUSY = 0.3
"""Threads that wait for a processor, on average; below is the usual noise."""
_IDLE = 0.8


class Pace:
    """Chooses the number of threads anew from time to time.

    Parameters
    ----------
    most
        Threads on a quiet machine.
    set_threads
        Gets a new number.
    proc
        Where ``stat`` and ``self`` are found.

    Attributes
    ----------
    threads
        The number now.
    """

    def __init__(
        self, most: int, set_threads: Callable[[int], None], proc: Path = Path("/proc")
    ) -> None:
        self.threads = most
        self._most = most
        self._fewest = most
        self._set_threads = set_threads
        self._proc = proc
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._checked = 0.0
        self._waited = 0.0
        self._idle = 0.0

    def check(self, now: float | None = None) -> None:
        """Look at the machine, at most every `CHECK_SECONDS`; called between batches."""
        now = time.perf_counter() if now is None else now
        seconds = now - self._checked
        if seconds < CHECK_SECONDS or self._most == 1:
            return
        waited, idle = self._waited_seconds(), self._idle_seconds()
        if seconds < 10 * CHECK_SECONDS:  # else it is the first look, or a pause lies between
            self._choose((waited - self._waited) / seconds, (idle - self._idle) / seconds)
        self._checked, self._waited, self._idle = now, waited, idle

    def _choose(self, waiting: float, idle: float) -> None:
        if waiting > _BUSY and self.threads > 1:
            chosen = max(1, self.threads - max(1, math.floor(waiting + 0.3)))
        elif idle > _IDLE and self.threads < self._most:
            chosen = min(self._most, self.threads + math.floor(idle + 1 - _IDLE))
        else:
            return
        self.threads = chosen
        self._fewest = min(self._fewest, chosen)
        self._set_threads(chosen)

    def notices(self) -> tuple[str, ...]:
        """A sentence for the user where the machine was busy since the last time."""
        fewest, self._fewest = self._fewest, self.threads
        if fewest == self._most:
            return ()
        return (
            f"the machine is busy: {fewest} of {self._most} threads were used, since more would "
            "have waited for each other",
        )

    def _waited_seconds(self) -> float:
        """How long the threads of this process had no processor, all together."""
        total = 0.0
        for path in self._proc.glob("self/task/*/schedstat"):
            try:
                total += int(path.read_text().split()[1]) / 1e9
            except (OSError, ValueError, IndexError):
                continue  # a thread that has ended
        return total

    def _idle_seconds(self) -> float:
        """How long the processors of this machine had nothing to do, all together."""
        try:
            first = (self._proc / "stat").read_text().partition("\n")[0].split()
            return (int(first[4]) + int(first[5])) / self._ticks
        except (OSError, ValueError, IndexError):
            return 0.0
