"""The vocabulary of a model: text to tokens and back, and which tokens are more than text."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import llama_cpp as lib
import numpy as np
import numpy.typing as npt

from runner.core.errors import WorkerError

_CONTROL = lib.LLAMA_TOKEN_ATTR_CONTROL
_USER_DEFINED = lib.LLAMA_TOKEN_ATTR_USER_DEFINED
_PIECE_BYTES = 256
_CANNOT_BE_SHOWN = "\ufffd"


class Vocabulary:
    """Tokens of a loaded model.

    Parameters
    ----------
    model
        Pointer to the model.

    Attributes
    ----------
    size
        Number of tokens.
    ends
        Ids that end a turn.
    end
        The one of them to write: end-of-turn where the vocabulary has one, else end-of-text.
    """

    def __init__(self, model: Any) -> None:
        self.pointer = lib.llama_model_get_vocab(model)
        self.size: int = lib.llama_vocab_n_tokens(self.pointer)
        self.bos: int = lib.llama_vocab_bos(self.pointer)
        self.adds_bos: bool = lib.llama_vocab_get_add_bos(self.pointer)
        turn = int(lib.llama_vocab_eot(self.pointer))
        self.end = turn if turn >= 0 else int(lib.llama_vocab_eos(self.pointer))
        self._buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        self._pieces: dict[int, bytes] = {}
        self._attributes: dict[int, int] = {}

    @functools.cached_property
    def ends(self) -> list[int]:
        vocab, is_end = self.pointer, lib.llama_vocab_is_eog
        return [token for token in range(self.size) if is_end(vocab, token)]

    @functools.cached_property
    def never_written(self) -> npt.NDArray[np.bool_]:
        """For each id, whether it is a control token that does not end a turn."""
        attribute, vocab = lib.llama_vocab_get_attr, self.pointer
        found = (attribute(vocab, token) & _CONTROL for token in range(self.size))
        result = np.fromiter(found, np.bool_, self.size)
        result[self.ends] = False
        return result

    def is_end(self, token: int) -> bool:
        """Whether the token ends a turn."""
        return bool(lib.llama_vocab_is_eog(self.pointer, token))

    def is_control(self, token: int) -> bool:
        """Whether the token is markup of the model and never text."""
        return bool(self._attribute(token) & _CONTROL)

    def is_markup(self, token: int) -> bool:
        """Whether the token stands for more than its text: control, or a word of its own.

        Vocabularies also define runs of white space as words; those are text.
        """
        attribute = self._attribute(token)
        if attribute & _CONTROL:
            return True
        return bool(attribute & _USER_DEFINED) and bool(self.bytes_of(token).strip())

    def _attribute(self, token: int) -> int:
        found = self._attributes.get(token)
        if found is None:
            found = self._attributes[token] = int(lib.llama_vocab_get_attr(self.pointer, token))
        return found

    def markup_tokens(self, text: str) -> list[int]:
        """Tokens of a template's own text, in which ``<|im_end|>`` is what it says."""
        return self._tokenize(text, special=True)

    def text_tokens(self, text: str) -> tuple[list[int], list[str]]:
        """Tokens of text that nobody vouches for: a task, an observation, history.

        llama.cpp reads user-defined tokens in any text. Where one comes out, the text is cut
        inside of its spelling and the parts are tokenised apart, so that the model reads the same
        characters as plain words; a token of a single character becomes a replacement character.

        Returns
        -------
        tokens, broken
            Ids of which none is markup, and the spellings that were cut.
        """
        tokens = self._tokenize(text, special=False)
        markup = next((token for token in tokens if self.is_markup(token)), None)
        if markup is None:
            return tokens, []
        spelling = self.text_of(markup)
        if spelling not in text:  # spelled otherwise in the vocabulary, as with a space mark
            spelling = spelling.strip()
        before, found, after = text.partition(spelling)
        if not found or not spelling:
            raise WorkerError(
                f"a text holds {spelling!r}, which this model reads as markup, "
                "and it cannot be taken apart",
                hint="remove it from the task, or use another model",
            )
        if len(spelling) == 1:
            parts = [before, _CANNOT_BE_SHOWN, after]
        else:
            parts = [before + spelling[0], spelling[1:] + after]
        result: list[int] = []
        broken = [spelling]
        for part in parts:
            if part:
                more, also = self.text_tokens(part)
                result += more
                broken += also
        return result, broken

    def joined_tokens(self, parts: Sequence[tuple[str, bool]]) -> tuple[list[int], list[str]]:
        """Tokens of plain text of which some parts are trusted, tokenised as one where possible.

        Trusted parts may be spelled in user-defined words. The parts are tokenised apart where
        another one holds such a word, or where one would come out across a border.

        Parameters
        ----------
        parts
            Texts, and whether each is trusted.

        Returns
        -------
        tokens, broken
            As `text_tokens`.
        """
        tokens: list[int] = []
        broken: list[str] = []
        for text, trusted in parts:
            more, cut = (
                (self._tokenize(text, special=False), []) if trusted else self.text_tokens(text)
            )
            tokens += more
            broken += cut
        if broken:
            return tokens, broken
        joined = self._tokenize("".join(text for text, _ in parts), special=False)
        if sum(map(self.is_markup, joined)) != sum(map(self.is_markup, tokens)):
            return tokens, broken
        return joined, broken

    def _tokenize(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        size = len(data) + 16
        tokens = (lib.llama_token * size)()
        count = lib.llama_tokenize(self.pointer, data, len(data), tokens, size, False, special)
        if count < 0:
            raise WorkerError(f"llama.cpp could not tokenise a text of {len(data)} bytes")
        return list(tokens[:count])

    def bytes_of(self, token: int) -> bytes:
        """What the token writes."""
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._piece(token)
        return piece

    def _piece(self, token: int) -> bytes:
        size = len(self._buffer)
        count = lib.llama_token_to_piece(self.pointer, token, self._buffer, size, 0, True)
        if count < 0:
            self._buffer = ctypes.create_string_buffer(-count)
            return self._piece(token)
        return self._buffer.raw[:count]

    def text_of(self, token: int) -> str:
        """What the token writes, as text; empty for an id that does not exist."""
        return self.bytes_of(token).decode("utf-8", "replace") if token >= 0 else ""
