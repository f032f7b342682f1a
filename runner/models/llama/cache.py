"""The KV cache: which tokens are evaluated, and evaluating more. Runs in the worker only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp as lib
import numpy as np
import numpy.typing as npt

from runner.core.errors import WorkerError
from runner.models.llama.pace import Pace

_ABORTED = 2
_CHECKPOINTS = 3


class CancelledError(Exception):
    """Evaluation was stopped by `Cache.cancel`."""


class Cache:
    """One context of llama.cpp with one conversation in it.

    Parameters
    ----------
    context
        Pointer to the context; from now on used by nobody else.
    batch
        Most tokens in one call of the engine.
    vocabulary
        Number of tokens of the vocabulary.
    pace
        Chooses the number of threads between batches.
    forgets
        Whether the architecture can drop a part of what it has read. Recurrent and hybrid models
        cannot; for them the states at a few places are kept instead.

    Attributes
    ----------
    tokens
        What is evaluated, in order.
    """

    def __init__(
        self, context: Any, pace: Pace, *, batch: int, vocabulary: int, forgets: bool
    ) -> None:
        self.tokens: list[int] = []
        self.forgets = forgets
        self.window: int = lib.llama_n_ctx(context)
        self._context = context
        self._pace = pace
        self._memory = lib.llama_get_memory(context)
        self._size = batch
        self._batch = lib.llama_batch_init(batch, 0, 1)
        self._vocabulary = vocabulary
        self._outputs = 1
        # Positions at which a batch began. Rounding depends on how tokens fall into batches, so a
        # prefix that is cut only there gives the very numbers that a cold start gives.
        self._starts: list[int] = []
        self._checkpoints: list[tuple[list[int], bytes]] = []
        self._stop = ctypes.create_string_buffer(2)
        # llama.cpp asks this between any two operations: `bool (*)(void *)`. libc's strlen of a
        # buffer with "" or "x" is that function, and needs no Python (and no GIL) to be called.
        strlen = ctypes.cast(ctypes.CDLL(None).strlen, lib.ggml_abort_callback)
        lib.llama_set_abort_callback(context, strlen, ctypes.addressof(self._stop))

    def cancel(self) -> None:
        """Stop the evaluation in progress and every later one. From any thread."""
        self._stop[0] = b"x"

    def uncancel(self) -> None:
        """Allow evaluation again."""
        self._stop[0] = b"\0"

    @property
    def cancelled(self) -> bool:
        return self._stop[0] != b"\0"

    def keep(self, prompt: Sequence[int]) -> int:
        """Drop what does not fit the beginning of ``prompt``; return how many tokens are kept.

        At least the last token of the prompt is left to be evaluated, since its logits are needed.
        """
        common = 0
        for old, new in zip(self.tokens, prompt[:-1], strict=False):
            if old != new:
                break
            common += 1
        if common < len(self.tokens):
            self._cut(common)
        return len(self.tokens)

    def _cut(self, common: int) -> None:
        """Keep at most ``common`` tokens."""
        place = max((start for start in self._starts if start <= common), default=0)
        if self._drop(place):
            return
        for tokens, state in reversed(self._checkpoints):
            if len(tokens) <= common and tokens == self.tokens[: len(tokens)]:
                self.restore(tokens, state)
                return
        self.clear()

    def _drop(self, place: int) -> bool:
        """Drop everything from ``place`` on; False where the architecture cannot."""
        if place == 0:
            self.clear()
            return True
        if not self.forgets or not lib.llama_memory_seq_rm(self._memory, 0, place, -1):
            return False
        if lib.llama_memory_seq_pos_max(self._memory, 0) != place - 1:
            return False  # a sliding window has lost what would have to be there
        del self.tokens[place:]
        while self._starts and self._starts[-1] >= place:
            self._starts.pop()
        return True

    def forget(self, count: int) -> None:
        """Drop the last ``count`` tokens, which were only a guess.

        Raises
        ------
        WorkerError
            The architecture cannot; nothing is guessed for those.
        """
        if count and not self._drop(len(self.tokens) - count):
            raise WorkerError("the engine could not drop the tokens of a wrong guess")

    def clear(self) -> None:
        """Forget everything."""
        lib.llama_memory_clear(self._memory, True)
        self.tokens.clear()
        self._starts.clear()

    def evaluate(
        self,
        tokens: Sequence[int],
        *,
        outputs: int = 1,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Evaluate more tokens; `logits` then has rows for the last ``outputs`` of them.

        Raises
        ------
        CancelledError
            `cancel` was called. What was evaluated before stays.
        WorkerError
            llama.cpp failed.
        """
        batch = self._batch
        self._outputs = outputs
        first_output = len(tokens) - outputs
        done = 0
        while done < len(tokens):
            chunk = tokens[done : done + self._size]
            if done + len(chunk) > first_output > done and len(tokens) - done > self._size:
                # All rows with outputs in one batch: what comes before them is one of its own.
                chunk = tokens[done:first_output]
            if self.cancelled:
                raise CancelledError
            self._pace.check()
            batch.n_tokens = len(chunk)
            place = len(self.tokens)
            for row, token in enumerate(chunk):
                batch.token[row] = token
                batch.pos[row] = place + row
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = 0
                batch.logits[row] = done + row >= first_output
            status = lib.llama_decode(self._context, batch)
            if status != 0:
                self._after_failure(status, len(chunk))
            self._starts.append(place)
            self.tokens.extend(chunk)
            done += len(chunk)
            if on_progress is not None:
                on_progress(done, len(tokens))

    def _after_failure(self, status: int, count: int) -> None:
        place = len(self.tokens)
        if not lib.llama_memory_seq_rm(self._memory, 0, place, -1):
            self.clear()
        if status == _ABORTED:
            raise CancelledError
        raise WorkerError(
            f"llama.cpp could not evaluate {count} tokens at position {place} of {self.window} "
            f"(llama_decode returned {status})"
        )

    def logits(self, row: int) -> npt.NDArray[np.float32]:
        """Logits of one of the last outputs, counted from 0. A view: the next batch changes it."""
        pointer = lib.llama_get_logits_ith(self._context, row - self._outputs)
        return np.ctypeslib.as_array(pointer, shape=(self._vocabulary,))

    def checkpoint(self) -> None:
        """Remember this place, where the architecture cannot go back to it otherwise."""
        if not self.forgets:
            self._checkpoints.append((list(self.tokens), self.state()))
            del self._checkpoints[:-_CHECKPOINTS]

    def state(self) -> bytes:
        """All that the context knows of the conversation, for `restore`."""
        size = lib.llama_state_seq_get_size(self._context, 0)
        buffer = (ctypes.c_uint8 * size)()
        written = lib.llama_state_seq_get_data(self._context, buffer, size, 0)
        return bytes(memoryview(buffer)[:written])

    def restore(self, tokens: Sequence[int], state: bytes) -> bool:
        """Put a state back that stands for ``tokens``; False (and all forgotten) if it does not."""
        self.clear()
        data = ctypes.cast(ctypes.c_char_p(state), ctypes.POINTER(ctypes.c_uint8))
        taken = lib.llama_state_seq_set_data(self._context, data, len(state), 0)
        last = lib.llama_memory_seq_pos_max(self._memory, 0)
        if (taken, last) != (len(state), len(tokens) - 1):
            self.clear()
            return False
        self.tokens[:] = tokens
        self._starts.append(0)
        return True
