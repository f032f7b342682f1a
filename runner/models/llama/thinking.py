"""The free phase before a turn: how a prompt opens it, and how it is closed."""

from __future__ import annotations

from collections.abc import Sequence

from runner.models.llama.tool_text import Segment
from runner.models.settings import Thinking


def with_thinking(segments: Sequence[Segment], thinking: Thinking) -> list[Segment]:
    """The prompt, ending where the model thinks, or where it need not.

    Some templates open the phase themselves, some leave it to the model, and some open it whether
    it is wanted or not. A grammar must never meet a model in its thoughts, so what is open is
    closed at once where thinking is off. Only markup counts: a message may end in any text.
    """
    *rest, (text, source) = segments or [("", None)]
    if source is not None:
        rest, text = list(segments), ""
    opened = text.rstrip().endswith(thinking.open)
    if thinking.budget and not opened:
        text += f"{thinking.open}\n"
    elif opened and not thinking.budget:
        text += forced_close("", thinking)
    return [*rest, (text, None)] if text else rest


def forced_close(thought: str, thinking: Thinking) -> str:
    """What ends a phase that the model did not end itself, on a line of its own as trained."""
    line = "" if thought.endswith("\n") else "\n"
    return f"{line}{thinking.close}\n\n"


def own_close(thought: str, written: int, thinking: Thinking) -> str:
    """What is still to be evaluated when the model has written the closing tag itself.

    Parameters
    ----------
    thought
        The text before the tag.
    written
        Characters of thought and tag that are evaluated already: the tag is one token in some
        vocabularies and several in others, of which the last may hold more than the tag.
    """
    return f"{thought}{thinking.close}\n\n"[written:]
