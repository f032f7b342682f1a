"""Writes one turn: choose a token, add what the grammar forces, guess ahead, evaluate at once."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

from runner.core.conversation import StopReason
from runner.models.llama.cache import Cache, CancelledError
from runner.models.llama.constraint import Constraint
from runner.models.llama.drafts import Drafts
from runner.models.llama.sampler import Sampler
from runner.models.llama.vocabulary import Vocabulary
from runner.models.llama.watch import TextWatch


class Writer:
    """One turn while it is written.

    Parameters
    ----------
    drafts
        Where guesses come from, or None for no guessing.
    on_text
        Gets the text piece by piece.

    Attributes
    ----------
    tokens
        What was written, in the tokens that it was written in.
    stop
        Why it ended; None until then.
    forced
        How many tokens the grammar left no choice about.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        cache: Cache,
        sampler: Sampler,
        constraint: Constraint | None,
        drafts: Drafts | None,
        watch: TextWatch,
        on_text: Callable[[str], None],
    ) -> None:
        self.tokens: list[int] = []
        self.stop: StopReason | None = None
        self.forced = 0
        self._vocabulary = vocabulary
        self._cache = cache
        self._sampler = sampler
        self._constraint = constraint
        self._drafts = drafts
        self._watch = watch
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._since_forced = 0
        self._room = 0

    def begin(
        self, prompt: Sequence[int], room: int, on_progress: Callable[[int, int], None]
    ) -> None:
        """Evaluate the rest of the prompt, with what the grammar forces at the start of the turn.

        Parameters
        ----------
        room
            Most tokens of the turn.

        Raises
        ------
        CancelledError
            In the middle of the prompt.
        """
        self._room = room
        cache = self._cache
        if not cache.forgets:
            cache.evaluate(prompt, on_progress=on_progress)
            cache.checkpoint()
            prompt = []
        tokens = [*prompt, *self._forced()]
        if tokens:
            cache.evaluate(tokens, on_progress=on_progress)

    def write(self) -> None:
        """Write until the turn ends."""
        try:
            self._write()
        except CancelledError:
            self.stop = "cancelled"
        if self._watch.stop is None:
            self._show(self._watch.add(self._decoder.decode(b"", True)) + self._watch.flush())

    def _write(self) -> None:
        cache = self._cache
        draft: list[int] = []
        row = 0
        while self.stop is None:
            if not self._left():
                self.stop = "length"
                break
            token = self._sampler.sample(cache.logits(row))
            if self._ends(token):
                self.stop = "end"
                break
            self._add(token)
            if row < len(draft) and token == draft[row]:
                row += 1
                continue
            self._settle(draft, row)
            pending = [token, *self._forced()]
            row = 0
            if self.stop is None and self._left():
                draft = self._guess()
                cache.evaluate(pending + draft, outputs=1 + len(draft))
        self._settle(draft, row)

    def _left(self) -> int:
        return self._room - len(self.tokens)

    def _settle(self, draft: list[int], right: int) -> None:
        """Drop the wrong part of a guess from the cache, and learn from it."""
        if draft and self._drafts is not None:
            self._drafts.judge(len(draft), right)
            self._cache.forget(len(draft) - right)
            draft.clear()

    def _ends(self, token: int) -> bool:
        # Markup of the model is never text: one that begins another message has ended its own.
        return self._vocabulary.is_control(token) or self._vocabulary.is_end(token)

    def _forced(self) -> list[int]:
        tokens = self._constraint.forced()[: self._left()] if self._constraint else []
        for token in tokens:
            self._add(token)
        self.forced += len(tokens)
        if tokens:
            self._since_forced = len(self._watch.text)
        return tokens

    def _add(self, token: int) -> None:
        self.tokens.append(token)
        if self._watch.stop is None:
            piece = self._decoder.decode(self._vocabulary.bytes_of(token))
            self._show(self._watch.add(piece, token))
            self.stop = self._watch.stop

    def _show(self, text: str) -> None:
        if text:
            self._on_text(text)

    def _guess(self) -> list[int]:
        if self._drafts is None:
            return []
        draft = self._drafts.propose(self._watch.text, self._since_forced, self._left() - 1)
        if draft and self._constraint is not None:
            draft = draft[: self._constraint.count_allowed(draft)]
        return draft
