"""Views that do something at a moment of a turn, and what is left of worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil


class At:
    """A view that calls ``action`` at the third piece of text, or at the first part of a prompt.

    Parameters
    ----------
    moment
        ``text`` or ``progress``.
    again
        Whether to do so in every attempt at the turn, not only in the first.
    """

    def __init__(self, moment: str, action: Callable[[], object], *, again: bool = False) -> None:
        self._moment = moment
        self._action: Callable[[], object] | None = action
        self._again = again
        self._attempts = [0]
        self.restarts: list[dict[str, Any]] = []
        self.pieces: list[list[str]] = [[]]

    def text(self, piece: str) -> None:
        self.pieces[-1].append(piece)
        if self._moment == "text" and len(self.pieces[-1]) == 3:
            self._act()

    def thinking(self, piece: str) -> None:
        """Nothing to do."""

    def progress(self, done: int, total: int) -> None:
        self._attempts[-1] += 1
        if self._moment == "progress" and self._attempts[-1] == 1:
            self._act()

    def event(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "model.restarted":
            self.restarts.append(data)
            self.pieces.append([])
            self._attempts.append(0)
            if not self._again:
                self._action = None

    def _act(self) -> None:
        if self._action is not None:
            self._action()


def workers() -> set[psutil.Process]:
    """Children of this process that run, zombies included."""
    return set(psutil.Process().children(recursive=True))


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that only its new parent has not yet reaped has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
