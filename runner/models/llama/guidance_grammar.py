"""llguidance as a constraint: it also tells what a grammar forces, and masks in microseconds."""

from __future__ import annotations

import ctypes
import functools

import llama_cpp as lib
import llguidance
import numpy as np
import numpy.typing as npt
from llguidance.gbnf_to_lark import GbnfToLarkError, gbnf_to_lark

from runner.core.errors import GrammarError
from runner.models.llama.vocabulary import Vocabulary

_SPECIAL = b"\xff"
_REMEMBERED = 16


class GuidanceGrammars:
    """Compiles grammars for one vocabulary. Making it takes up to a second."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = _tokenizer(vocabulary)
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # glibc: what was needed for the making goes back to the system
            trim(0)
        self._compiled = functools.lru_cache(_REMEMBERED)(self._compile)

    def make(self, grammar: str) -> GuidanceGrammar:
        """A constraint at the beginning of a grammar, given as GBNF.

        Raises
        ------
        GrammarError
            llguidance cannot compile it.
        """
        return GuidanceGrammar(self._compiled(grammar).deep_copy())

    def _compile(self, grammar: str) -> llguidance.LLMatcher:
        try:
            lark = gbnf_to_lark(grammar)
        except GbnfToLarkError as error:
            raise GrammarError(f"llguidance cannot read the grammar: {error}") from error
        text = llguidance.LLMatcher.grammar_from_lark(lark)
        matcher = llguidance.LLMatcher(self._tokenizer, text, log_level=0)
        if matcher.is_error():
            raise _refused(matcher)
        return matcher


class GuidanceGrammar:
    """See `runner.models.llama.constraint.Constraint`."""

    def __init__(self, matcher: llguidance.LLMatcher) -> None:
        self._matcher = matcher

    def allows(self, token: int) -> bool:
        return bool(self._matcher.validate_tokens([token]))

    def allowed(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_error():
            raise _refused(self._matcher)
        bits: npt.NDArray[np.bool_] = (mask[tokens >> 3] >> (tokens & 7)) & 1 != 0
        return bits

    def accept(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise _refused(self._matcher)

    def forced(self) -> list[int]:
        tokens: list[int] = self._matcher.compute_ff_tokens()
        if tokens and not self._matcher.consume_tokens(tokens):
            raise _refused(self._matcher)
        return tokens

    def count_allowed(self, tokens: list[int]) -> int:
        return int(self._matcher.validate_tokens(tokens))

    def close(self) -> None:
        del self._matcher


def _refused(matcher: llguidance.LLMatcher) -> GrammarError:
    return GrammarError(
        f"llguidance gave the grammar of this turn up: {matcher.get_error().strip()}",
        hint='set `grammar_engine = "llama.cpp"` for this model in models.toml',
    )


def _tokenizer(vocabulary: Vocabulary) -> llguidance.LLTokenizer:
    """llguidance's view of the vocabulary, with llama.cpp itself as the tokeniser.

    Like `llguidance.llamacpp.lltokenizer_from_vocab`, but with all end tokens, and with
    user-defined words as the text that they are: a grammar spells ``<tool_call>`` as text.
    """
    pointer, size = vocabulary.pointer, vocabulary.size
    buffer = ctypes.create_string_buffer(1 << 14)
    to_piece, attribute = lib.llama_token_to_piece, lib.llama_vocab_get_attr
    control = lib.LLAMA_TOKEN_ATTR_CONTROL
    pieces = []
    for token in range(size):
        count = to_piece(pointer, token, buffer, len(buffer), 0, True)
        piece = bytes(buffer.raw[: max(count, 0)])
        pieces.append(_SPECIAL + piece if attribute(pointer, token) & control else piece)
    tokenize = ctypes.cast(lib.llama_cpp._lib.llama_tokenize, ctypes.c_void_p).value
    return llguidance.LLTokenizer.from_llamacpp(
        tokens=pieces,
        vocab_ptr=pointer,
        tokenize_fptr=tokenize,
        eos_token=vocabulary.ends or vocabulary.end,
        # Slices make masks faster and take 40 to 80 MB; masks are rare here.
        slices=[],
    )
