"""Chooses the next token: sample first, then ask the grammar about that one token.

Masking a whole vocabulary is dear, asking about one token is not. So the vocabulary is masked only
when a choice was refused. For greedy and plain temperature sampling the result has the same
distribution as masking first (p + (1 - Z) p/Z = p/Z, where Z is the share of what is allowed);
top-k, top-p and min-p cut before the first look instead of after it, so there a token that a mask
would have let into the cut can only be drawn when the first choice was refused.

One exception is on purpose: a refused choice where the turn may end ends it. Masking would push a
model that wants to go on outside of the grammar into yet another call.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp as lib
import numpy as np
import numpy.typing as npt

from runner.core.errors import WorkerError
from runner.models.llama.constraint import Constraint
from runner.models.llama.llama_grammar import TOKEN_DATA, token_data_array
from runner.models.llama.vocabulary import Vocabulary
from runner.models.settings import Sampling

_LIKELIEST = 256

Logits = npt.NDArray[np.float32]


class Sampler:
    """One generation's sampler.

    Parameters
    ----------
    constraint
        The grammar of the turn, or None for free text.
    seed
        32-bit seed of the draw; without effect when ``sampling.temperature`` is 0.

    Attributes
    ----------
    masked
        How often the first choice was refused.
    """

    def __init__(
        self, vocabulary: Vocabulary, sampling: Sampling, constraint: Constraint | None, seed: int
    ) -> None:
        self.masked = 0
        self._vocabulary = vocabulary
        self._constraint = constraint
        self._chain: Any = None
        if sampling.temperature > 0:
            self._chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
            for sampler in _chain(sampling, seed):
                lib.llama_sampler_chain_add(self._chain, sampler)
            self._candidates = np.zeros(vocabulary.size, TOKEN_DATA)
            self._every = np.arange(vocabulary.size)

    def draw(self, logits: Logits) -> int:
        """Draw a token, whatever the grammar says."""
        if self._chain is None:
            return int(logits.argmax())
        return self._draw(self._every, logits)

    def sample(self, logits: Logits) -> int:
        """Draw a token that the grammar allows, and move the grammar on."""
        token = self.draw(logits)
        constraint = self._constraint
        if constraint is None:
            return token
        if not constraint.allows(token):
            self.masked += 1
            end = self._vocabulary.end
            token = end if constraint.allows(end) else self._masked(constraint, logits)
        constraint.accept(token)
        return token

    def close(self) -> None:
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None

    def _masked(self, constraint: Constraint, logits: Logits) -> int:
        if self._chain is None:
            most = min(_LIKELIEST, len(logits))
            likeliest = np.argpartition(logits, -most)[-most:]
            best = likeliest[constraint.allowed(likeliest)]
            if best.size:
                return int(best[np.argmax(logits[best])])
        every = np.arange(self._vocabulary.size)
        allowed = every[constraint.allowed(every)]
        if not allowed.size:
            raise WorkerError(
                "the grammar allows no token of this model's vocabulary here",
                hint="run the model without a grammar, or report this model",
            )
        if self._chain is None:
            return int(allowed[np.argmax(logits[allowed])])
        return self._draw(allowed, logits)

    def _draw(self, tokens: npt.NDArray[np.int64], logits: Logits) -> int:
        candidates = self._candidates[: len(tokens)]
        candidates["id"] = tokens
        candidates["logit"] = logits[tokens]
        candidates["p"] = 0
        array = token_data_array(candidates)
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        token: int = array.data[array.selected].id
        return token


def _chain(sampling: Sampling, seed: int) -> list[Any]:
    return [
        lib.llama_sampler_init_top_k(sampling.top_k),
        lib.llama_sampler_init_top_p(sampling.top_p, 1),
        lib.llama_sampler_init_min_p(sampling.min_p, 1),
        lib.llama_sampler_init_temp(sampling.temperature),
        lib.llama_sampler_init_dist(seed),
    ]
