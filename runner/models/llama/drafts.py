"""Guesses what comes next by looking the text up in the prompt ("prompt lookup decoding").

Paths, names and numbers in a call are mostly copied from the task or an observation. The engine
evaluates a guess together with the token before it in one batch, and takes from it only what the
model would have written itself. Lookup is by characters: tokens differ between ` notes` and
`"notes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

Kind = Literal["span", "text"]

MOST = 15
"""Tokens of the longest guess: 16 rows with the token before it."""
_LONGEST_KEY = 32
_SHORTEST_KEY = 10
_CHARACTERS = 80
_MOST_SPANS = 4
_FAITH: dict[Kind, float] = {"span": 0.97, "text": 0.8}
_ENDS = re.compile(r'[\n"\\]')
# What is copied as a whole: paths, file names, addresses, numbers, dates, identifiers.
_SPAN = re.compile(r"""[^\s"'`,;()\[\]{}<>\\]*[\d/_.@-][^\s"'`,;()\[\]{}<>\\]*""")
_NUMBER = re.compile(r"-?\d[\d.]*")
_NUMBER_VALUE = re.compile(r": *(-?[\d.]*)$")
_UNESCAPED_QUOTE = re.compile(r'(?<!\\)"')


class Drafts:
    """Guesses for one generation. Depends on nothing but texts, so that a seed decides a run.

    Parameters
    ----------
    source
        The prompt as text.
    task
        Its last message: values of a call mostly come from there.
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
        self, source: str, task: str, tokenize: Callable[[str], list[int]], *, row_cost: float
    ) -> None:
        self.proposed = 0
        self.accepted = 0
        self._source = source
        self._spans = spans(task)
        self._tokenize = tokenize
        self._row_cost = row_cost
        # How likely a guessed token is right: a running mean for each kind of guess.
        self._right = dict(_FAITH)
        self._kind: Kind = "text"

    def propose(self, turn: str, free: int, limit: int) -> list[int]:
        """Tokens that may come next, at most ``limit``; none where it would not pay.

        Parameters
        ----------
        turn
            The turn so far.
        free
            Where in it the text begins that no grammar forced.
        """
        text, self._kind = self._rest_of_span(turn), "span"
        if not text:
            text, self._kind = self._following(turn[free:]), "text"
        if not text or limit <= 0:
            return []
        tokens = self._tokenize(text)[: min(MOST, limit)]
        return tokens[: self._best_size(len(tokens))]

    def _best_size(self, most: int) -> int:
        """The length with the most right tokens for its cost; 0 where none is worth it."""
        right = self._right[self._kind]
        best, best_gain, expected = 0, 1.0, 1.0
        for size in range(1, most + 1):
            expected += right**size
            gain = expected / (1 + size * self._row_cost)
            if gain > best_gain:
                best, best_gain = size, gain
        if not best:
            # A little faith comes back each time, so that one bad guess is not the last.
            self._right[self._kind] = min(_FAITH[self._kind], right + 0.05)
        return best

    def _rest_of_span(self, turn: str) -> str:
        """The rest of what a value of a call has begun to copy from the task.

        Nothing before it has begun: models that do not copy would pay for that in every call.
        """
        line = turn[turn.rfind("\n") + 1 :]
        quotes = [match.end() for match in _UNESCAPED_QUOTE.finditer(line)]
        number = _NUMBER_VALUE.search(line)
        if len(quotes) % 2:
            begun, candidates = line[quotes[-1] :], self._spans
        elif number:
            begun = number[1]
            candidates = [span for span in self._spans if _NUMBER.fullmatch(span)]
        else:
            return ""
        if not begun:
            return ""
        fitting = [s for s in candidates if s.startswith(begun) and len(s) > len(begun)]
        unused = [span for span in fitting if span not in line] or fitting
        if not unused or len(unused) > _MOST_SPANS:
            return ""
        return unused[0][len(begun) :]

    def _following(self, written: str) -> str:
        """What follows the last occurrence of the end of ``written`` in the prompt."""
        tail = written[-_LONGEST_KEY:]
        if len(tail) < _SHORTEST_KEY or tail[-_SHORTEST_KEY:] not in self._source:
            return ""
        for length in range(len(tail), _SHORTEST_KEY - 1, -1):
            at = self._source.rfind(tail[-length:])
            if at >= 0:
                break
        text = self._source[at + length :][:_CHARACTERS]
        end = _ENDS.search(text)
        return text[: end.start()] if end else text

    def judge(self, proposed: int, accepted: int) -> None:
        """Learn from a guess: how many tokens it had, and how many were right."""
        self.proposed += proposed
        self.accepted += accepted
        share = accepted / proposed
        self._right[self._kind] = 0.6 * self._right[self._kind] + 0.4 * share


def spans(text: str) -> list[str]:
    """What in a text looks as if it were copied as a whole, in order, each once."""
    found = (match[0].rstrip(".,:!?").lstrip("-") for match in _SPAN.finditer(text))
    return list(dict.fromkeys(span for span in found if len(span) > 1))
