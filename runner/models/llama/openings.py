"""Reads what comes before the last message: system prompt, tools, examples, earlier turns.

It is read in batches of its own, so that the cache can be cut right behind it when the next run of
the same agent comes, which then computes the very numbers that this one does. The state behind it
is kept on disk, so that the next start need not read it at all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from runner.models.llama.cache import Cache
from runner.models.llama.prompt import Prompt
from runner.models.llama.state_cache import StateCache
from runner.models.llama.state_key import StateKey

LEAST_ON_DISK = 128
"""Tokens; to read a shorter opening again takes no longer than to load its state."""


class Openings:
    """The way from a prompt to a cache that holds its opening.

    Parameters
    ----------
    states
        The states on disk, or None for none.
    key_of
        What identifies the state behind some tokens.
    """

    def __init__(
        self,
        cache: Cache,
        states: StateCache | None,
        key_of: Callable[[Sequence[int]], StateKey],
    ) -> None:
        self._cache = cache
        self._states = states
        self._key_of = key_of

    def read(self, prompt: Prompt, on_progress: Callable[[int, int], None]) -> int:
        """Have the opening in the cache, where its own beginning may be; what else is there stays.

        Returns
        -------
        int
            How many tokens of the prompt had not to be evaluated.
        """
        cache = self._cache
        opening = prompt.tokens[: prompt.opening]
        key = None
        if self._states is not None and len(opening) - len(cache.tokens) >= LEAST_ON_DISK:
            key = self._key_of(opening)
            state = self._states.load(key)
            if state is not None and cache.restore(opening, state):
                cache.checkpoint()
        kept = len(cache.tokens)
        if kept < len(opening):
            total = len(prompt.tokens) - kept
            cache.evaluate(
                opening[kept:], outputs=0, on_progress=lambda done, _: on_progress(done, total)
            )
            cache.checkpoint()
            # Not behind something else: rounding would depend on what that was.
            if key is not None and self._states is not None and kept == 0:
                problem = self._states.save(key, cache.state())
                if problem:
                    sys.stderr.write(f"{problem}\n")
        return kept
