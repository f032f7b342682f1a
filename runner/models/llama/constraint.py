"""What holds a turn to a grammar: one GBNF text, two engines that read it."""

from __future__ import annotations

import functools
import importlib.util
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from runner.core.errors import ConfigError, GrammarError
from runner.core.gbnf import gbnf_problems
from runner.models.llama.llama_grammar import compile_grammar
from runner.models.llama.vocabulary import Vocabulary
from runner.models.settings import GrammarEngine

if TYPE_CHECKING:
    from runner.models.llama.guidance_grammar import GuidanceGrammars


class Constraint(Protocol):
    """A place in a grammar, which moves on with every token that is accepted."""

    def allows(self, token: int) -> bool:
        """Whether the token may come next."""

    def allowed(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For each of some tokens, whether it may come next."""

    def accept(self, token: int) -> None:
        """Move on by a token that is allowed."""

    def forced(self) -> list[int]:
        """The tokens that must come next, in the model's own tokenisation.

        Moves on by them. The last ones are left out where the text behind them could still
        change how they are spelled. An engine that cannot tell returns none.
        """

    def count_allowed(self, tokens: list[int]) -> int:
        """How many of a row of tokens may come, one after another. Does not move on."""

    def close(self) -> None:
        """Give native memory back."""


class Constraints:
    """Makes constraints for one loaded model.

    What llguidance needs to know of the vocabulary is gathered in a thread of its own, while the
    model is loaded and reads its prompt.

    Parameters
    ----------
    engine
        ``llguidance``, the reference ``llama.cpp``, or ``auto``: the first where it is installed.

    Raises
    ------
    ConfigError
        llguidance is asked for and not installed.
    """

    def __init__(self, vocabulary: Vocabulary, engine: GrammarEngine) -> None:
        self._vocabulary = vocabulary
        installed = importlib.util.find_spec("llguidance") is not None
        if engine == "llguidance" and not installed:
            raise ConfigError(
                'models.toml: grammar_engine is "llguidance", which is not installed',
                hint='`pip install llguidance`, or leave the key out to use "llama.cpp"',
            )
        self.engine = "llguidance" if installed and engine != "llama.cpp" else "llama.cpp"
        self._guidance: Future[GuidanceGrammars] | None = None
        if self.engine == "llguidance":
            self._guidance = ThreadPoolExecutor(1).submit(_guidance, vocabulary)

    def make(self, grammar: str) -> Constraint:
        """A constraint at the beginning of a grammar.

        A grammar with constructs outside the portable part of GBNF is left to llama.cpp.

        Raises
        ------
        GrammarError
            The grammar does not compile.
        """
        if not grammar.strip():
            raise GrammarError(
                "expected a grammar, found an empty text", hint="give None for free text"
            )
        if self._guidance is None or not _is_portable(grammar):
            return compile_grammar(self._vocabulary, grammar)
        return self._guidance.result().make(grammar)


@functools.lru_cache(maxsize=16)
def _is_portable(grammar: str) -> bool:
    return not gbnf_problems(grammar)


def _guidance(vocabulary: Vocabulary) -> GuidanceGrammars:
    from runner.models.llama.guidance_grammar import GuidanceGrammars

    return GuidanceGrammars(vocabulary)
