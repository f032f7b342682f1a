"""The blocks of a reply, and what is cleaned away before any dialect cuts a reply into them.

All scanning is done on a shadow of the text in which valid JSON behind a call's marker is blanked
out, so that nothing in a string of a call can be taken for a marker or a tag. Positions are the
same in both; contents come from the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from runner.core.conversation import Receipt
from runner.protocol.json_text import strict_json_at

MOST_CALLS = 64
"""Most calls that one reply may hold; a loop allows far fewer."""
WHITE = " \t\r\n\u200b\ufeff"
"""White space at the edges of a block; other blanks, such as U+2028, are text."""
HIDDEN = "\ue000"
"""Stands in a shadow for what must not be looked at."""
_TAG = re.compile(
    r"<\s*(?P<end>/?)\s*(?:think|thinking|reasoning|thoughts?|reflection)\s*>|\[(?P<end2>/?)THINK\]",
    re.IGNORECASE,
)
_END_OF_TURN = re.compile(
    r"(?:<\|(?:im_end|eot_id|end|endoftext|end_of_text|eom_id|return|end_of_turn)\|>|<end_of_turn>"
    r"|</s>|<eos>|<｜end▁of▁sentence｜>|\[/INST\])"
    r"(?=\s*(?:\Z|<\|(?:im_start|start_header_id|user|assistant|system|start)\|>|<start_of_turn>"
    r"|<s>|\[INST\]|<｜User｜>))"
)


@dataclass
class Outline:
    """The blocks of a reply. Nothing behind an invented observation is in it.

    Attributes
    ----------
    text
        What stands before the first block.
    thoughts
        Thoughts that were marked as such.
    actions
        What stands in each block of calls: JSON, if all is well.
    answer
        The answer, or None.
    action_in_answer
        Whether a line of the answer begins a call.
    invented
        Whether there was an observation, which only tools can make.
    unclosed
        Whether reasoning was opened and never closed.
    cut_off
        Whether something behind the last block was dropped, so that its end is certain.
    """

    text: str = ""
    thoughts: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    answer: str | None = None
    action_in_answer: bool = False
    invented: bool = False
    unclosed: bool = False
    cut_off: bool = False
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def thought(self) -> str:
        return "\n".join([self.text, *self.thoughts] if self.text else self.thoughts)


def clean(
    text: str,
    found: Outline,
    call: re.Pattern[str],
    reply_follows: Callable[[str, int], bool],
) -> tuple[str, str]:
    """The reply itself and its shadow: without reasoning, and without what follows its end.

    Parameters
    ----------
    found
        Gets notes of what was dropped.
    call
        What stands directly before the JSON of a call.
    reply_follows
        Whether the reply begins at a place of the shadow; decides what a lone closing tag ends.
    """
    shadow = _shadow(text, call)
    leaked = _END_OF_TURN.search(shadow)
    if leaked is not None:
        found.cut_off = True
        what = "dropped what follows the end of the turn"
        if not text[leaked.end() :].strip():
            what = "took the end-of-turn token away"
        found.receipts.append(Receipt("turn", what))
        text, shadow = text[: leaked.start()], shadow[: leaked.start()]
    start, shadow, found.unclosed = _without_reasoning(shadow, reply_follows)
    return text[start:], shadow[start:]


def _shadow(text: str, call: re.Pattern[str]) -> str:
    """``text`` with valid JSON behind markers of calls blanked out, but for its brackets."""
    parts = []
    at = 0
    for count, match in enumerate(call.finditer(text)):
        if count >= MOST_CALLS:
            break
        start = match.end()
        if match.start() < at or text[start : start + 1] not in ("{", "["):
            continue
        try:
            _, end = strict_json_at(text, start, control_characters=True)
        except ValueError:
            continue
        parts += [text[at : start + 1], HIDDEN * (end - start - 2), text[end - 1]]
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _without_reasoning(
    shadow: str, reply_follows: Callable[[str, int], bool]
) -> tuple[int, str, bool]:
    """Where the reply begins behind its reasoning, the shadow, and whether reasoning is open.

    Reasoning stands between tags at the beginning of the reply or of a line. A closing tag alone
    ends reasoning that the prompt had opened, but only if the reply follows it.
    """
    answer = re.search(r"(?m)^[ \t]*ANSWER[ \t]*[:：]", shadow)
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for tag in _TAG.finditer(shadow):
        if shadow.startswith("`", tag.end()) and shadow[tag.start() - 1 : tag.start()] == "`":
            continue
        if not (tag["end"] or tag["end2"]):
            in_answer = answer is not None and answer.start() < tag.start() and not opened
            if opened or (_begins_line(shadow, tag.start()) and not in_answer):
                opened.append(tag.start())
        elif opened:
            begin = opened.pop()
            if not opened:
                spans.append((begin, tag.end()))
        elif reply_follows(shadow, tag.end()):
            start = tag.end()
            spans.clear()
    parts = []
    at = 0
    leading = True
    for begin, end in spans:
        leading = leading and begin >= start and not shadow[start:begin].strip(WHITE)
        if leading:
            start = end
        parts += [shadow[at:begin], re.sub(r"[^\n]", " ", shadow[begin:end])]
        at = end
    shadow = "".join([*parts, shadow[at:]])
    return start, shadow, bool(opened)


def _begins_line(shadow: str, at: int) -> bool:
    before = ("\n" + shadow[max(0, at - 40) : at])[-41:].rpartition("\n")[2]
    if at > 40 and "\n" not in shadow[at - 40 : at]:
        return before.endswith((">", "]"))
    before = before.strip(WHITE)
    return not before or before.upper() in ("THOUGHT:", "THOUGHT") or before.endswith((">", "]"))
