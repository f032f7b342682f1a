"""The blocks of a reply, and what is cleaned away before any dialect cuts a reply into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runner.core.conversation import Receipt
from runner.protocol.shadow import CallMarker, MarkedCall, Span, blank, shadow_of

WHITE = " \t\r\n\u200b\ufeff"
"""White space at the edges of a block; other blanks, such as U+2028, are text."""
_TAG = re.compile(
    r"<\s*(?P<end>/?)\s*(?:think|thinking|reasoning|thoughts?|reflection|reflect|plan|planning"
    r"|scratchpad|analysis|(?:inner[_ ])?monologue|draft|notes?|examples?)\s*>"
    r"|\[(?P<end2>/?)THINK\]",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CHANNEL = re.compile(r"\s*(?:<\|start\|>\w*)?<\|channel\|>")
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_ROLE_END = (
    r"<\|(?:im_end|eot_id|end|endoftext|end_of_text|eom_id|return|call|end_of_turn)\|>"
    r"|<end_of_turn>|</s>|<eos>|<｜end▁of▁sentence｜>|\[/INST\]"
)
_ROLE_START = (
    r"<\|(?:im_start|start_header_id|user|assistant|system|observation|tool|start)\|>"
    r"|<start_of_turn>|<s>|\[INST\]|\[TOOL_RESULTS\]|<｜(?:User|Assistant|tool▁outputs▁begin)｜>"
)
_SPECIAL = re.compile(rf"(?P<end>{_ROLE_END})|(?:{_ROLE_START})")
_ROLE_STARTS = re.compile(rf"\s*(?:{_ROLE_START})")
_ROLE_NAME = re.compile(
    r"\s*(?:user|human|system|assistant|model|tool|function|ipython)[ \t]*(?:<|\n|\Z)"
)
_QUOTES = "`\"'“‘«"
_ANSWER = re.compile(r"(?m)^[ \t]*ANSWER[ \t]*[:：]")
_MOST_TAGS = 1_000


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
    marker: CallMarker,
    reply_follows: Callable[[str, int], bool],
) -> tuple[str, str]:
    """The reply itself and its shadow: without reasoning, and without what follows its end.

    Parameters
    ----------
    found
        Gets notes of what was dropped.
    marker
        What stands before the JSON of a call.
    reply_follows
        Whether the reply begins at a place of the shadow; decides what a lone closing tag ends.
    """
    shadow, calls = shadow_of(text, marker)
    start = 0
    if _CHANNEL.match(shadow):
        final = shadow.find(_FINAL_CHANNEL)
        start = final + len(_FINAL_CHANNEL) if final >= 0 else len(shadow)
    leaked = _end_of_turn(shadow, start, calls)
    if leaked is not None:
        found.cut_off = True
        what = "dropped what follows the end of the turn"
        if not text[leaked.end() :].strip():
            what = "took the end-of-turn token away"
        found.receipts.append(Receipt("turn", what))
        text, shadow = text[: leaked.start()], shadow[: leaked.start()]
    start, spans, found.unclosed = _reasoning(shadow, start, calls, reply_follows)
    return text[start:], blank(shadow, spans)[start:]


def _end_of_turn(shadow: str, start: int, calls: Sequence[MarkedCall]) -> re.Match[str] | None:
    """The first token for the end of a turn, or the begin of another, that is no mere mention.

    A mention stands in a sentence. A token that leaked stands at the very end without a blank
    before it, or another role begins behind it, or it follows the bracket that ends a call.
    """
    first_call = calls[0].json if calls else len(shadow)
    last = len(shadow.rstrip())
    for match in _SPECIAL.finditer(shadow, start):
        before = shadow[max(0, match.start() - 40) : match.start()]
        solid = before.rstrip()
        in_line = before[-1:] in (" ", "\t") and solid[-1:] not in ".!?。！？"
        behind = shadow[match.end() : match.end() + 40]
        at_end = match.end() >= last and not in_line
        if match["end"] is not None and (at_end or _ROLE_STARTS.match(behind)):
            return match
        if match["end"] is None and _ROLE_NAME.match(behind) and not in_line:
            return match
        after_call = first_call <= match.start()
        if after_call and (solid[-1:] in "}]>`｝］" or "\n" in before[len(solid) :]):
            return match
    return None


def _reasoning(
    shadow: str,
    start: int,
    calls: Sequence[MarkedCall],
    reply_follows: Callable[[str, int], bool],
) -> tuple[int, list[Span], bool]:
    """Where the reply begins behind reasoning, where other reasoning is, and whether one is open.

    Reasoning stands between tags. A closing tag alone ends reasoning that the prompt had opened,
    but only if the reply follows it, and no call that is broken stands before it: the tag may be
    in a string of that call.
    """
    answer = _ANSWER.search(shadow, start)
    ends = len(shadow) if answer is None else answer.start()
    spans = [match.span() for match in _COMMENT.finditer(shadow, start, ends)]
    shadow = blank(shadow, spans)
    broken = min((call.start for call in calls if call.broken), default=len(shadow))
    opened: list[int] = []
    for tag in _TAG.finditer(shadow, start):
        if tag.start() and shadow[tag.start() - 1] in _QUOTES:
            continue
        if len(opened) + len(spans) > _MOST_TAGS:
            return len(shadow), [], True
        if not (tag["end"] or tag["end2"]):
            if opened or tag.start() < ends:
                opened.append(tag.start())
        elif opened:
            begin = opened.pop()
            if not opened:
                spans.append((begin, tag.end()))
        elif tag.start() < broken and reply_follows(shadow, tag.end()):
            start = tag.end()
    spans = sorted(span for span in spans if span[0] >= start)
    for begin, end in spans:
        if begin >= start and not shadow[start:begin].strip(WHITE):
            start = end
    unclosed = bool(opened) and (
        _begins_line(shadow, opened[0]) or any(call.start >= opened[0] for call in calls)
    )
    return start, [span for span in spans if span[0] >= start], unclosed


def _begins_line(shadow: str, at: int) -> bool:
    line = shadow[shadow.rfind("\n", 0, at) + 1 : at].strip(WHITE)
    return not line or line.upper() in ("THOUGHT:", "THOUGHT") or line.endswith((">", "]"))
