"""A model that says what it was told to say: for tests, demonstrations and dry runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.closing import Closing
from runner.core.contract import ToolContract
from runner.core.conversation import Generation, Message, StopReason
from runner.core.errors import ModelError, ModelFileError
from runner.core.ports import View

Step = str | Generation | BaseException | Callable[["Request"], "str | Generation"]


@dataclass(frozen=True)
class Request:
    """What the model was asked: conversation, grammar, room for the reply, tools to present."""

    messages: tuple[Message, ...]
    grammar: str | None
    max_tokens: int
    seed: int
    tools: tuple[ToolContract, ...] = ()


class ScriptedModel(Closing):
    """Replays turns in order, and keeps every request it was given.

    Parameters
    ----------
    steps
        A text or `Generation` is returned, an exception is raised, a function is called with the
        `Request` and returns a text or `Generation`.
    name
        Its name in transcripts.
    dialect
        How its turns are spelled.

    Attributes
    ----------
    requests
        Every `Request` so far.
    """

    def __init__(
        self, steps: Iterable[Step], *, name: str = "scripted", dialect: str = "action"
    ) -> None:
        self._steps = list(steps)
        self._name = name
        self._dialect = dialect
        self.requests: list[Request] = []

    @classmethod
    def from_file(
        cls, path: Path, *, name: str = "scripted", dialect: str = "action"
    ) -> ScriptedModel:
        """Turns from a text file, parted by lines of three dashes.

        Raises
        ------
        ModelFileError
            The file cannot be read.
        """
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelFileError(
                f"expected a text file with turns at {path}: {error}",
                hint="turns are parted by lines of three dashes",
            ) from error
        turns = (turn.strip("\n") for turn in text.split("\n---\n"))
        return cls(turns, name=name, dialect=dialect)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dialect(self) -> str:
        return self._dialect

    def describe(self) -> dict[str, Any]:
        settings = {"kind": "scripted", "dialect": self._dialect}
        return {"name": self._name, "settings": settings, "steps": len(self._steps)}

    def generate(
        self,
        messages: Sequence[Message],
        *,
        grammar: str | None,
        max_tokens: int,
        seed: int,
        tools: Sequence[ToolContract] = (),
        view: View | None = None,
        seconds: float | None = None,
    ) -> Generation:
        """See `runner.core.ports.Model.generate`; raises `ModelError` when the script is over."""
        request = Request(tuple(messages), grammar, max_tokens, seed, tuple(tools))
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._steps):
            raise ModelError(
                f"the script of model {self._name!r} has {len(self._steps)} turns, "
                f"and turn {number} was asked for",
                hint="add a turn, or end the script with an ANSWER",
            )
        step = self._steps[number - 1]
        if isinstance(step, BaseException):
            raise step
        said = step(request) if callable(step) else step
        generation = said if isinstance(said, Generation) else Generation(said, _END)
        if view is not None:
            if generation.thinking:
                view.thinking(generation.thinking)
            view.text(generation.text)
        return generation

    def close(self) -> None:
        """Nothing to give back."""


_END: StopReason = "end"
