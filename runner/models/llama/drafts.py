"""Guesses what comes next by looking the text up in the prompt ("prompt lookup decoding").

Paths, names and numbers in a call are mostly copied from the task or an observation. What was
written since the last forced text is searched there, and what follows it is the guess. The engine
evaluates guess and token in one batch and takes from the guess only what the model would have
written itself.
"""

from __future__ import annotations

from collections.abc import Callable

_LONGEST_KEY = 32
_SHORTEST_KEY = 3
_CHARACTERS = 80
_ENDS = '\n"\\'
FIRST, MOST = 3, 15
"""Tokens of the first guess, and of the longest: with the token before it 4 and 16 rows, which
llama.cpp's kernels take as whole blocks."""


class Drafts:
    """Guesses for one generation. Depends on nothing but texts, so that a seed decides a run.

    Parameters
    ----------
    source
        The prompt as text.
    tokenize
        Plain text to tokens.
    row_cost
        Cost of one more row in a batch, as a share of the cost of a batch of one.

    Attributes
    ----------
    proposed, accepted
        Tokens that were guessed, and those of them that the model wrote.
    """

    def __init__(
        self, source: str, tokenize: Callable[[str], list[int]], *, row_cost: float
    ) -> None:
        self.proposed = 0
        self.accepted = 0
        self._source = source
        self._tokenize = tokenize
        self._row_cost = row_cost
        self._size = FIRST
        # Share of guessed tokens that were right, kept as a running mean.
        self._right = 0.8

    def propose(self, written: str, limit: int) -> list[int]:
        """Tokens that may follow ``written``, at most ``limit``; none where it would not pay.

        Parameters
        ----------
        written
            What the model wrote itself since the last forced text.
        """
        size = min(self._size, limit)
        if size <= 0 or not self._pays(size):
            # A little faith comes back with every token, so that one bad guess is not the last.
            self._right = min(0.8, self._right + 0.02)
            return []
        text = self._following(written)
        return self._tokenize(text)[:size] if text else []

    def _pays(self, size: int) -> bool:
        right = self._right
        expected = sum(right**count for count in range(size + 1))
        return expected > 1 + size * self._row_cost

    def _following(self, written: str) -> str:
        tail = written[-_LONGEST_KEY:]
        if tail[-_SHORTEST_KEY:] not in self._source:
            return ""
        for length in range(len(tail), _SHORTEST_KEY - 1, -1):
            at = self._source.rfind(tail[-length:])
            if at >= 0:
                begin = at + length
                text = self._source[begin : begin + _CHARACTERS]
                ends = [place for end in _ENDS if (place := text.find(end)) >= 0]
                return text[: min(ends, default=len(text))]
        return ""

    def judge(self, proposed: int, accepted: int) -> None:
        """Learn from a guess: how many tokens it had, and how many were right."""
        self.proposed += proposed
        self.accepted += accepted
        self._right = 0.5 * self._right + 0.5 * (accepted / proposed)
        self._size = min(MOST, 2 * self._size + 1) if accepted == proposed else FIRST
