"""Chooses the next token: sample first, then ask the grammar about that one token.

Masking a whole vocabulary with llama.cpp's grammar costs 15 to 90 ms a token, asking about one
token costs less than 0.1 ms. So more of the vocabulary is masked only when a choice was refused.
For greedy and plain temperature sampling the result has the same distribution as masking first
(p + (1 - Z) p/Z = p/Z); top-k, top-p and min-p cut before the first look instead of after it.
One exception is on purpose: a refused choice where the turn may end ends it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp as lib
import numpy as np

from runner.core.errors import GrammarError, WorkerError
from runner.models.settings import Sampling

_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
_LIKELIEST = 256


class Sampler:
    """One generation's sampler. Never reused: a grammar keeps its place in the text.

    Parameters
    ----------
    model
        Pointer to the loaded llama.cpp model.
    grammar
        GBNF text with the start rule ``root``, or None for free text.
    seed
        32-bit seed of the draw; without effect when ``sampling.temperature`` is 0.

    Raises
    ------
    GrammarError
        llama.cpp cannot compile the grammar.
    """

    def __init__(self, model: Any, sampling: Sampling, grammar: str | None, seed: int) -> None:
        self.masked = 0
        self._vocab = lib.llama_model_get_vocab(model)
        self._size = lib.llama_vocab_n_tokens(self._vocab)
        self._end = _end_token(self._vocab)
        self._greedy = sampling.temperature == 0
        self._grammar = self._compile(grammar) if grammar is not None else None
        self._chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        for sampler in _chain(sampling, seed):
            lib.llama_sampler_chain_add(self._chain, sampler)

    def _compile(self, grammar: str) -> Any:
        sampler = lib.llama_sampler_init_grammar(self._vocab, grammar.encode(), b"root")
        if not sampler:
            raise GrammarError(
                "llama.cpp refused the grammar of this turn",
                hint="`runner grammar show` prints it; the engine's log says which line is wrong",
            )
        return sampler

    def draw(self, context: Any) -> int:
        """Draw the token that follows the last evaluated one, whatever the grammar says."""
        return int(lib.llama_sampler_sample(self._chain, context, -1))

    def sample(self, context: Any) -> int:
        """Draw the token that follows the last evaluated one, and move the grammar on."""
        token = self.draw(context)
        if self._grammar is None:
            return token
        if not self._allowed(_one(token)).size:
            self.masked += 1
            # Where the turn may end, a model that wants to go on outside the grammar has ended it:
            # masking would push it into yet another call.
            token = self._end if self._allowed(_one(self._end)).size else self._masked(context)
        lib.llama_sampler_accept(self._grammar, token)
        return token

    def close(self) -> None:
        lib.llama_sampler_free(self._chain)
        if self._grammar is not None:
            lib.llama_sampler_free(self._grammar)
            self._grammar = None

    def _masked(self, context: Any) -> int:
        pointer = lib.llama_get_logits_ith(context, -1)
        logits = np.ctypeslib.as_array(pointer, shape=(self._size,))
        if self._greedy:
            likeliest = np.argpartition(logits, -_LIKELIEST)[-_LIKELIEST:]
            best = self._allowed(_candidates(likeliest, logits))
            if best.size:
                return int(best["id"][np.argmax(best["logit"])])
        allowed = self._allowed(_candidates(np.arange(self._size), logits))
        if not allowed.size:
            raise WorkerError(
                "the grammar allows no token of this model's vocabulary here",
                hint="run the model without a grammar, or report this model",
            )
        return self._draw(allowed)

    def _allowed(self, candidates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The candidates that the grammar takes next. Does not move the grammar."""
        array = _token_data_array(candidates)
        lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
        allowed: np.ndarray[Any, Any] = candidates[np.isfinite(candidates["logit"])]
        return allowed

    def _draw(self, candidates: np.ndarray[Any, Any]) -> int:
        array = _token_data_array(candidates)
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        token: int = array.data[array.selected].id
        return token


def _chain(sampling: Sampling, seed: int) -> list[Any]:
    if sampling.temperature == 0:
        return [lib.llama_sampler_init_greedy()]
    return [
        lib.llama_sampler_init_top_k(sampling.top_k),
        lib.llama_sampler_init_top_p(sampling.top_p, 1),
        lib.llama_sampler_init_min_p(sampling.min_p, 1),
        lib.llama_sampler_init_temp(sampling.temperature),
        lib.llama_sampler_init_dist(seed),
    ]


def _end_token(vocab: Any) -> int:
    """A token that ends a turn: end-of-turn where the vocabulary has one, else end-of-text."""
    turn = int(lib.llama_vocab_eot(vocab))
    return turn if turn >= 0 else int(lib.llama_vocab_eos(vocab))


def _one(token: int) -> np.ndarray[Any, Any]:
    return np.array([(token, 1.0, 0.0)], _TOKEN_DATA)


def _candidates(ids: Any, logits: Any) -> np.ndarray[Any, Any]:
    candidates = np.zeros(len(ids), _TOKEN_DATA)
    candidates["id"] = ids
    candidates["logit"] = logits[ids]
    return candidates


def _token_data_array(candidates: np.ndarray[Any, Any]) -> Any:
    data = ctypes.cast(candidates.ctypes.data, lib.llama_token_data_p)
    return lib.llama_token_data_array(data, len(candidates), -1, False)
