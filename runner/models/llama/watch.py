"""Watches text while it is written: stop strings with hold-back, and output that only repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

_SAME_TOKEN = 32
_SAME_BLOCK = 6
_BLOCK_CHARS = range(40, 81)
_WHITESPACE = 40


class TextWatch:
    """Collects pieces and tells when to stop.

    Attributes
    ----------
    text
        Everything up to the first stop string.
    stop
        ``stop`` when a stop string came, ``degenerate`` when the text only repeats itself
        (one token 32 times, one block of 40 to 80 characters 6 times, 40 white-space
        characters), else None.
    found
        The stop string that came, or None.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stops = tuple(stops)
        self.text = ""
        self.stop: Literal["stop", "degenerate"] | None = None
        self.found: str | None = None
        self._shown = 0
        self._token = -1
        self._repeats = 0

    def add(self, piece: str, token: int = -1) -> str:
        """Add what ``token`` wrote; return the text that may be shown now."""
        self.text += piece
        self._repeats = self._repeats + 1 if token == self._token and token >= 0 else 1
        self._token = token
        found = [(at, stop) for stop in self.stops if (at := self.text.find(stop)) >= 0]
        if found:
            at, self.found = min(found)
            self.text = self.text[:at]
            self.stop = "stop"
            return self.flush()
        if self._repeats >= _SAME_TOKEN or self._tail_repeats():
            self.stop = "degenerate"
            return self.flush()
        return self._show(len(self.text) - self._held_back())

    def flush(self) -> str:
        """The rest of the text, held-back characters included."""
        return self._show(len(self.text))

    def _show(self, end: int) -> str:
        piece = self.text[self._shown : end]
        self._shown = max(self._shown, end)
        return piece

    def _held_back(self) -> int:
        """Length of the longest end of the text that may become a stop string."""
        longest = 0
        for stop in self.stops:
            for length in range(min(len(stop) - 1, len(self.text)), longest, -1):
                if self.text.endswith(stop[:length]):
                    longest = length
                    break
        return longest

    def _tail_repeats(self) -> bool:
        tail = self.text[-_WHITESPACE:]
        if len(tail) == _WHITESPACE and not tail.strip():
            return True
        for length in _BLOCK_CHARS:
            block = self.text[-length:]
            if len(self.text) >= length * _SAME_BLOCK and self.text.endswith(block * _SAME_BLOCK):
                return True
        return False
