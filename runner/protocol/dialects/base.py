"""What a dialect is: one way to spell a turn, for the model that writes it and for its reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from runner.core.conversation import ModelTurn
from runner.protocol.outline import Outline


class Dialect(ABC):
    """How turns are spelled. Dialects translate, they never decide: all read to the same objects.

    Attributes
    ----------
    name
        Its name in models.toml.
    grammar_file
        File in ``grammars/`` with the fixed rules that `turn_rules` refers to.
    name_key, params_key
        Keys of a call's JSON.
    words
        How messages for the model speak: ``call_word`` is what a call is called, ``form`` how it
        is written, ``answer_form`` what to write to answer, ``neither`` what a reply lacks that is
        neither (``a call nor an answer``), ``output_word`` what a tool's result is called.
    system_template, observation_template
        Files in ``protocol/texts``.
    tools_in_template
        Whether a model's own chat template may present the tools.
    plain_answers
        Whether an answer has no marker.
    """

    name: str
    grammar_file: str
    name_key: str
    params_key: str
    words: ClassVar[Mapping[str, str]]
    system_template: str
    observation_template: str
    tools_in_template: bool = False
    plain_answers: bool = False

    @abstractmethod
    def turn_rules(self, has_calls: bool, max_calls: int, thought: bool) -> dict[str, str]:
        """GBNF rules ``root`` and those it needs; the rule ``call`` stands for any call.

        Parameters
        ----------
        has_calls
            Whether calls are possible at all; there is no rule ``call`` otherwise.
        max_calls
            Most calls in the turn, at least 1.
        thought
            Whether a thought may come first.
        """

    @abstractmethod
    def call_rule(self, name: str, params: str) -> str:
        """GBNF body for the JSON of a call; ``params`` is the expression for its input."""

    @abstractmethod
    def spelled_call(self, name: str, params: Mapping[str, Any]) -> str:
        """One call, as the model writes it."""

    @abstractmethod
    def spelled(self, turn: ModelTurn) -> str:
        """A whole turn, as the model writes it."""

    @abstractmethod
    def outline(self, text: str) -> Outline:
        """The blocks of a reply. Never raises."""
