"""A conversation as tokens: markup with special tokens, everything else as plain text."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.core.conversation import Message
from runner.models.llama.template import ChatTemplate
from runner.models.llama.thinking import with_thinking
from runner.models.llama.tool_text import Source, words_around_tools
from runner.models.llama.vocabulary import Vocabulary
from runner.models.settings import Thinking

_REMEMBERED = 512


@dataclass
class Prompt:
    """Tokens of a conversation, up to where the model writes.

    Attributes
    ----------
    opening
        How many tokens come before the content of the last message: what other runs of the same
        agent begin with, too.
    broken
        Spellings of the model's own words that were found in texts and taken apart.
    text, last
        The same as text, and the content of the last message.
    """

    tokens: list[int] = field(default_factory=list)
    opening: int = 0
    broken: list[str] = field(default_factory=list)
    text: str = ""
    last: str = ""

    def add(self, text: tuple[list[int], list[str]]) -> None:
        """Add tokens of a text, and what had to be broken in it."""
        self.tokens += text[0]
        self.broken += text[1]


class PromptWriter:
    """Turns conversations into tokens; tokenises no text twice.

    Parameters
    ----------
    thinking
        How the prompt is to end; see `runner.models.llama.thinking`.
    """

    def __init__(self, vocabulary: Vocabulary, template: ChatTemplate, thinking: Thinking) -> None:
        self._vocabulary = vocabulary
        self._template = template
        self._thinking = thinking
        # Text of a generated turn -> its tokens, so that history is not tokenised differently
        # from how it was written and the prompt of the next turn begins with this one's.
        self._written: OrderedDict[str, list[int]] = OrderedDict()
        self._texts: OrderedDict[tuple[str, bool], tuple[list[int], list[str]]] = OrderedDict()

    def tokens(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Prompt:
        """The prompt of the next turn. Errors as in `ChatTemplate.render`."""
        segments = with_thinking(self._template.render(messages, tools), self._thinking)
        prompt = Prompt(text="".join(text for text, _ in segments))
        vocabulary = self._vocabulary
        if vocabulary.adds_bos:
            prompt.tokens.append(vocabulary.bos)
        segments = words_around_tools(segments, self._control_tokens)
        for in_tools, group in itertools.groupby(segments, lambda segment: _is_tools(segment[1])):
            if in_tools:
                parts = [(text, source == "words") for text, source in group]
                prompt.add(vocabulary.joined_tokens(parts))
                continue
            for text, source in group:
                if isinstance(source, Message):
                    prompt.opening, prompt.last = len(prompt.tokens), text  # of the last one
                    prompt.add(self._message(text, source))
                else:
                    tokens = vocabulary.markup_tokens(text)
                    if prompt.tokens == [vocabulary.bos] == tokens[:1]:
                        del tokens[0]  # the template writes it, too
                    prompt.tokens += tokens
        prompt.opening = min(prompt.opening, len(prompt.tokens) - 1)
        return prompt

    def remember(self, text: str, tokens: list[int]) -> None:
        """Keep the tokens that a turn was written in."""
        # The first spelling of a text stays: more of the cache hangs on it than on a later one.
        self._written.setdefault(text, tokens)
        _trim(self._written)

    def _message(self, text: str, message: Message) -> tuple[list[int], list[str]]:
        by_model = message.role == "assistant"
        if by_model and text in self._written:
            return self._written[text], []
        found = self._texts.get((text, by_model))
        if found is None:
            # What the model says may be spelled in words of its own, such as <tool_call>.
            found = self._vocabulary.joined_tokens([(text, by_model)])
            self._texts[text, by_model] = found
            _trim(self._texts)
        return found

    def _control_tokens(self, markup: str) -> tuple[int, int] | None:
        """Where the first control token in ``markup`` begins, and where the last one ends."""
        start, end = -1, 0
        for token in self._vocabulary.markup_tokens(markup):
            if self._vocabulary.is_control(token):
                piece = self._vocabulary.text_of(token)
                at = markup.find(piece, end)
                if at < 0:  # spelled otherwise in the vocabulary
                    return 0, len(markup)
                start, end = at if start < 0 else start, at + len(piece)
        return None if start < 0 else (start, end)


def _is_tools(source: Source) -> bool:
    return source in ("tools", "words")


def _trim(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > _REMEMBERED:
        kept.popitem(last=False)
