"""Notices when the model has to wait for a processor, because somebody else uses it."""

from __future__ import annotations

import time
from pathlib import Path

_SHARE = 0.15
_LEAST_SECONDS = 0.5


class Waiting:
    """Measures from its making on; belongs to the thread that made it."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._before = _waited_seconds()

    def notices(self) -> tuple[str, ...]:
        """A sentence for the user where the thread was kept waiting, else nothing."""
        seconds = time.perf_counter() - self._started
        share = (_waited_seconds() - self._before) / seconds if seconds else 0.0
        if seconds < _LEAST_SECONDS or share < _SHARE:
            return ()
        return (
            f"the machine is busy: for {share:.0%} of this turn the model waited for a processor; "
            "fewer `threads` in models.toml may help, or less beside it",
        )


def _waited_seconds() -> float:
    """How long this thread was ready to run and had no processor, by Linux's scheduler."""
    try:
        _, waited, _ = Path("/proc/thread-self/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0
    return int(waited) / 1e9
