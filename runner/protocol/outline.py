"""Cuts a reply into blocks: reasoning apart, what other turns leaked into it away, then by Lark.

All scanning is done on a shadow of the text in which valid JSON behind an ACTION marker is blanked
out, so that nothing in a string of a call can be taken for a marker or a tag. Positions are the
same in both; contents come from the text itself.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from lark import Lark, Token, Tree

from runner.core.conversation import Receipt
from runner.protocol.grammar_files import grammar_text
from runner.protocol.json_text import strict_json_at
from runner.protocol.payload import MOST_CALLS

WHITE = " \t\r\n\u200b\ufeff"
"""White space at the edges of a block; other blanks, such as U+2028, are text."""
_HIDDEN = "\ue000"
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
_FENCED = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE
)
_WHOLE_FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)
_FENCE_LINE = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_INLINE = re.compile(
    r"(?:(?<=[.!?。！？:;)>])[ \t]+|(?<=[。！？]))\*{0,2}"
    r"(?P<kind>ACTION|(?:FINAL )?ANSWER)\*{0,2}[ \t]*[:：]\*{0,2}"
)
_WORD = re.compile(r"\b(?:ACTION|ANSWER)\b[ \t]*[:：]")


@dataclass
class Outline:
    """The blocks of a reply. Nothing behind an invented observation is in it.

    Attributes
    ----------
    text
        What stands before the first marker.
    thoughts, actions
        Contents of the THOUGHT and ACTION blocks.
    answer
        What stands behind ANSWER, or None.
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


def outline(text: str) -> Outline:
    """The blocks of a reply."""
    found = Outline()
    shadow = _shadow(text)
    start, end = 0, len(text)
    leaked = _END_OF_TURN.search(shadow)
    if leaked is not None:
        end = leaked.start()
        found.cut_off = True
        if text[leaked.end() :].strip():
            note = "dropped what follows the end of the turn"
            found.receipts.append(Receipt("turn", note))
        elif text[end:].strip():
            found.receipts.append(Receipt("turn", "took the end-of-turn token away"))
    text, shadow = text[:end], shadow[:end]
    start, shadow, found.unclosed = _without_reasoning(shadow)
    text, shadow = text[start:], shadow[start:]
    fence = _WHOLE_FENCE.fullmatch(shadow)
    if fence is not None and _marker().search(shadow):
        start, end = fence.span(2)
        text, shadow = text[start:end], shadow[start:end]
        found.receipts.append(Receipt("turn", "took the code fence around the reply away"))
    shadow = _without_quotations(shadow)
    tree = _tree(shadow)
    blocks = [block for block in tree.children if isinstance(block, Tree)]
    for block in blocks:
        if found.invented or len(found.actions) > MOST_CALLS:
            break
        _add(found, block, text)
    if found.answer is None and not found.actions and not found.invented:
        _inline(found, text, shadow)
    return found


def _add(found: Outline, block: Tree[Token], text: str) -> None:
    tokens = [token for token in block.children if isinstance(token, Token)]
    contents = tokens if block.data == "text" else tokens[1:]
    content = ""
    if contents:
        content = text[contents[0].start_pos or 0 : contents[-1].end_pos].strip(WHITE)
    if block.data != "text" and not _is_plain(tokens[0]):
        note = f"read {str(tokens[0]).strip()!r} as {str(block.data).upper()}:"
        found.receipts.append(Receipt("turn", note))
    if block.data == "observation":
        found.invented = True
        if found.actions:
            found.receipts.append(Receipt("turn", "dropped an invented OBSERVATION"))
    elif block.data == "action":
        is_tag = str(tokens[0]).lstrip(WHITE)[:1] in ("<", "[")
        if is_tag and found.actions and not found.actions[-1]:
            found.actions.pop()
        found.actions.append(content)
    elif block.data == "answer":
        found.answer = content
        found.action_in_answer = _action_line(tokens)
    elif block.data == "thought":
        found.thoughts.append(content)
    elif content:
        found.text = content
        found.receipts.append(Receipt("turn", "took text before the first marker as thought"))


def _is_plain(marker: Token) -> bool:
    return re.fullmatch(r"(THOUGHT|ACTION|ANSWER|OBSERVATION[ \t]*(\[.*\])?):", marker) is not None


def _action_line(tokens: list[Token]) -> bool:
    """Whether an ACTION line stands in an answer, outside code fences."""
    fences = 0
    for token, following in itertools.pairwise(tokens):
        fences += len(_FENCE_LINE.findall(token))
        is_marker = token == "ACTION:" and fences % 2 == 0
        if is_marker and following.lstrip().startswith("{"):
            return True
    return False


def _shadow(text: str) -> str:
    """``text`` with valid JSON behind ACTION markers blanked out, but for its brackets."""
    parts = []
    at = 0
    for count, match in enumerate(_action_marker().finditer(text)):
        if count >= MOST_CALLS:
            break
        start = match.end()
        if match.start() < at or text[start : start + 1] not in ("{", "["):
            continue
        try:
            _, end = strict_json_at(text, start, control_characters=True)
        except ValueError:
            continue
        parts += [text[at : start + 1], _HIDDEN * (end - start - 2), text[end - 1]]
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _without_reasoning(shadow: str) -> tuple[int, str, bool]:
    """Where the reply begins behind its reasoning, the shadow, and whether reasoning is open.

    Reasoning stands between tags at the beginning of the reply or of a line. A closing tag alone
    ends reasoning that the prompt had opened, but only if a marker follows it.
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
        elif _reply_follows(shadow, tag.end()):
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


def _reply_follows(shadow: str, at: int) -> bool:
    return _marker().match("\n" + shadow[at : at + 200].lstrip(WHITE), 1) is not None


def _without_quotations(shadow: str) -> str:
    """The shadow with markers in code fences hidden, where there are others outside of them."""
    marker = _marker()
    spans = [match.span() for match in _FENCED.finditer(shadow)]
    if not spans:
        return shadow
    outside = _blank(shadow, spans)
    real = [m for m in marker.finditer(outside) if m.lastgroup != "THOUGHT"]
    if not real and not outside[: spans[-1][0]].strip(WHITE):
        return shadow
    first = real[0].start() if real else len(shadow)
    thought = marker.search(outside)
    if not real and thought is not None and not outside[: thought.start()].strip(WHITE):
        return _blank(shadow, []) if outside[spans[-1][1] :].strip(WHITE) else shadow
    return _hide(shadow, [span for span in spans if span[0] < first])


def _blank(shadow: str, spans: list[tuple[int, int]]) -> str:
    return _replace(shadow, spans, lambda part: re.sub(r"[^\n]", " ", part))


def _hide(shadow: str, spans: list[tuple[int, int]]) -> str:
    return _replace(shadow, spans, lambda part: re.sub(r"[^\n`~]", _HIDDEN, part))


def _replace(shadow: str, spans: list[tuple[int, int]], change: Any) -> str:
    parts = []
    at = 0
    for begin, end in spans:
        parts += [shadow[at:begin], change(shadow[begin:end])]
        at = end
    return "".join([*parts, shadow[at:]])


def _inline(found: Outline, text: str, shadow: str) -> None:
    """A marker behind the end of a sentence, where it is the only one and in capitals."""
    match = _INLINE.search(shadow)
    if match is None or len(_WORD.findall(shadow)) != 1:
        return
    content = text[match.end() :].strip(WHITE)
    kind = "ACTION" if match["kind"] == "ACTION" else "ANSWER"
    what = f"took {kind} in the middle of a line as a marker"
    found.receipts.append(Receipt("turn", what, cost=1))
    if kind == "ACTION":
        found.actions.append(content)
    else:
        found.answer = content


def _tree(shadow: str) -> Tree[Token]:
    parser = _lark().parse_interactive("")
    for token in _tokens(shadow):
        parser.feed_token(token)
    return cast("Tree[Token]", parser.feed_eof())  # type: ignore[no-untyped-call]


def _tokens(shadow: str) -> Iterator[Token]:
    """The markers, and one TEXT token for what stands between two of them."""
    at = 0
    for match in _any_marker().finditer(shadow):
        if match.start() > at:
            yield Token("TEXT", shadow[at : match.start()], at, end_pos=match.start())
        yield Token(match.lastgroup or "", match.group(), match.start(), end_pos=match.end())
        at = match.end()
    if at < len(shadow):
        yield Token("TEXT", shadow[at:], at, end_pos=len(shadow))


def _any_of(patterns: dict[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns.items()))


@functools.cache
def _lark() -> Lark:
    return Lark(grammar_text("protocol.lark"), start="turn", parser="lalr", lexer="basic")


@functools.cache
def _patterns() -> dict[str, str]:
    """The markers as the grammar defines them."""
    terminals = {terminal.name: terminal.pattern for terminal in _lark().terminals}
    names = ("THOUGHT", "ACTION", "ANSWER", "OBSERVATION")
    return {name: terminals[name].to_regexp() for name in names}


@functools.cache
def _any_marker() -> re.Pattern[str]:
    return _any_of(_patterns())


@functools.cache
def _marker() -> re.Pattern[str]:
    """Any marker but OBSERVATION."""
    return _any_of({name: text for name, text in _patterns().items() if name != "OBSERVATION"})


@functools.cache
def _action_marker() -> re.Pattern[str]:
    """An ACTION marker, and the blanks and code fence behind it."""
    return re.compile(f"(?:{_patterns()['ACTION']})\\s*(?:```\\w*\\s*)?")
