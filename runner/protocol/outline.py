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
_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n`]*\n.*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
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
    if _CHANNEL.match(shadow):
        final = shadow.find(_FINAL_CHANNEL)
        start = final + len(_FINAL_CHANNEL) if final >= 0 else len(shadow)
        text, shadow = text[start:], shadow[start:]
    leaked = _end_of_turn(shadow, call)
    if leaked is not None:
        found.cut_off = True
        what = "dropped what follows the end of the turn"
        if not text[leaked.end() :].strip():
            what = "took the end-of-turn token away"
        found.receipts.append(Receipt("turn", what))
        text, shadow = text[: leaked.start()], shadow[: leaked.start()]
    start, shadow, found.unclosed = _without_reasoning(shadow, call, reply_follows)
    return text[start:], shadow[start:]


def fences(shadow: str) -> list[tuple[int, int]]:
    """Where code fences begin and end; one that is never closed reaches to the end."""
    return [match.span() for match in _FENCE.finditer(shadow)]


def blank(shadow: str, spans: list[tuple[int, int]]) -> str:
    """``shadow`` with blanks for all but the line breaks of ``spans``."""
    return _replace(shadow, spans, lambda part: re.sub(r"[^\n]", " ", part))


def hide(shadow: str, spans: list[tuple[int, int]]) -> str:
    """``shadow`` with ``spans`` hidden, so that no marker is found in them."""
    return _replace(shadow, spans, lambda part: re.sub(r"[^\n`~]", HIDDEN, part))


def _replace(shadow: str, spans: list[tuple[int, int]], change: Callable[[str], str]) -> str:
    parts = []
    at = 0
    for begin, end in spans:
        parts += [shadow[at:begin], change(shadow[begin:end])]
        at = end
    return "".join([*parts, shadow[at:]])


def _end_of_turn(shadow: str, call: re.Pattern[str]) -> re.Match[str] | None:
    """The first token for the end of a turn, or the begin of another, that is no mere mention.

    A mention stands in a sentence. A token that leaked stands at the very end without a blank
    before it, or another role begins behind it, or it follows the bracket that ends a call.
    """
    first = call.search(shadow)
    for match in _SPECIAL.finditer(shadow):
        before = shadow[max(0, match.start() - 40) : match.start()]
        solid = before.rstrip()
        in_line = before[-1:] in (" ", "\t") and solid[-1:] not in ".!?。！？"
        behind = shadow[match.end() : match.end() + 40]
        if match["end"] is not None and (
            _ROLE_STARTS.match(behind) or (not in_line and not shadow[match.end() :].strip())
        ):
            return match
        if match["end"] is None and _ROLE_NAME.match(behind) and not in_line:
            return match
        after_call = first is not None and first.end() <= match.start()
        if after_call and (solid[-1:] in "}]>`｝］" or "\n" in before[len(solid) :]):
            return match
    return None


def _shadow(text: str, call: re.Pattern[str]) -> str:
    """``text`` with valid JSON behind markers of calls blanked out, but for its brackets."""
    text = text.replace(HIDDEN, "\ue001")
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
    shadow: str, call: re.Pattern[str], reply_follows: Callable[[str, int], bool]
) -> tuple[int, str, bool]:
    """Where the reply begins behind its reasoning, the shadow, and whether reasoning is open.

    Reasoning stands between tags. A closing tag alone ends reasoning that the prompt had opened,
    but only if the reply follows it, and no call that is broken stands before it: the tag may be
    in a string of that call.
    """
    answer = re.search(r"(?m)^[ \t]*ANSWER[ \t]*[:：]", shadow)
    ends = len(shadow) if answer is None else answer.start()
    shadow = blank(shadow, [m.span() for m in _COMMENT.finditer(shadow) if m.start() < ends])
    broken = _first_broken(shadow, call)
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for tag in _TAG.finditer(shadow):
        if shadow[tag.start() - 1 : tag.start()] in _QUOTES and tag.start():
            continue
        if not (tag["end"] or tag["end2"]):
            if opened or tag.start() < ends:
                opened.append(tag.start())
        elif opened:
            begin = opened.pop()
            if not opened:
                spans.append((begin, tag.end()))
        elif tag.start() < broken and reply_follows(shadow, tag.end()):
            start = tag.end()
            spans.clear()
    for begin, end in spans:
        if begin >= start and not shadow[start:begin].strip(WHITE):
            start = end
    unclosed = bool(opened) and (
        _begins_line(shadow, opened[0]) or call.search(shadow, opened[0]) is not None
    )
    return start, blank(shadow, [span for span in spans if span[0] >= start]), unclosed


def _first_broken(shadow: str, call: re.Pattern[str]) -> int:
    """Where the first call begins whose JSON is not strict; the length of the text if none does."""
    for match in call.finditer(shadow):
        if shadow[match.end() : match.end() + 1] in ("{", "[") and (
            shadow[match.end() + 1 : match.end() + 2] != HIDDEN
        ):
            return match.start()
    return len(shadow)


def _begins_line(shadow: str, at: int) -> bool:
    line = shadow[shadow.rfind("\n", 0, at) + 1 : at].strip(WHITE)
    return not line or line.upper() in ("THOUGHT:", "THOUGHT") or line.endswith((">", "]"))
