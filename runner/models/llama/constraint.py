"""What holds a turn to a grammar: one GBNF text, two engines that read it."""

from __future__ import annotations

import importlib.util
import threading
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from runner.core.errors import GrammarError
from runner.core.gbnf import gbnf_problems
from runner.models.llama.vocabulary import Vocabulary

GrammarEngine = Literal["auto", "llguidance", "llama.cpp"]


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
    """

    def __init__(self, vocabulary: Vocabulary, engine: GrammarEngine) -> None:
        self._vocabulary = vocabulary
        if engine == "auto":
            engine = "llguidance" if importlib.util.find_spec("llguidance") else "llama.cpp"
        self.engine = engine
        self._guidance: _GuidanceInThread | None = None
        if engine == "llguidance":
            self._guidance = _GuidanceInThread(vocabulary)

    def make(self, grammar: str) -> Constraint:
        """A constraint at the beginning of a grammar.

        A grammar with constructs outside the portable part of GBNF is left to llama.cpp.

        Raises
        ------
        GrammarError
            The grammar does not compile.
        """
        from runner.models.llama.llama_grammar import LlamaGrammar

        if not grammar.strip():
            raise GrammarError(
                "expected a grammar, found an empty text", hint="give None for free text"
            )
        if self._guidance is None or gbnf_problems(grammar):
            return LlamaGrammar(self._vocabulary, grammar)
        return self._guidance.make(grammar)


class _GuidanceInThread:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._thread = threading.Thread(target=self._prepare, daemon=True)
        self._thread.start()

    def _prepare(self) -> None:
        from runner.models.llama.guidance_grammar import GuidanceGrammars

        self._grammars = GuidanceGrammars(self._vocabulary)

    def make(self, grammar: str) -> Constraint:
        self._thread.join()
        return self._grammars.make(grammar)
