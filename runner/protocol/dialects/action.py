"""The dialect ``action``: lines that begin with THOUGHT:, ACTION: and JSON, or ANSWER:."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from lark import Lark, Token, Tree

from runner.core.conversation import ModelTurn, Receipt
from runner.protocol.dialects.base import Dialect
from runner.protocol.doubt import is_doubted
from runner.protocol.grammar_files import grammar_text
from runner.protocol.json_text import strict_json
from runner.protocol.literals import dump, literal
from runner.protocol.outline import WHITE, Outline, clean
from runner.protocol.shadow import (
    HIDDEN,
    MOST_CALLS,
    CallMarker,
    blank,
    fences,
    hide,
    whole_fence,
)

_FENCE_LINE = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_MOST_MARKERS = 1_000
# Where a marker may stand: at the beginning of a line, or behind the JSON of a call.
_LINES = re.compile(r"(?m)^(?=[ \t\u200b\ufeff]*[^\s\u200b\ufeff>{}\"'\\`~])")
_PLACES = re.compile(rf"{_LINES.pattern}|(?<={HIDDEN}[}}\]])(?=[ \t]*[^\W\d])")
_INLINE = re.compile(
    r"(?:(?<=[.!?。！？)])[ \t]+|(?<=[。！？]))\*{0,2}"
    r"(?P<kind>ACTION|(?:FINAL )?ANSWER)\*{0,2}[ \t]*[:：]\*{0,2}"
)
_WORD = re.compile(r"\b(?:ACTION|ANSWER)\b[ \t]*[:：]")
# What an ANSWER in the middle of a line goes on with where it is talk about the marker.
_TALK = re.compile(
    r"(?i)(?:is|are|was|were|means?|marks?|markers?|lines?|must|should|would|can|or|and|then"
    r"|followed|comes?|goes|ends?|begins?)\b|[.,;)`]"
)
_CALL_BEGINS = re.compile(
    rf"\s*(?:`{{3}}\w*\s*)?(?:[{{｛]|\[\s*[{{{HIDDEN}]|[\w.\-]+\s*(?:\(.*\)|[{{｛]))"
)


class Action(Dialect):
    """See the module."""

    name = "action"
    grammar_file = "protocol.gbnf"
    name_key = "tool"
    params_key = "params"
    words: ClassVar[Mapping[str, str]] = {
        "call_word": "ACTION",
        "form": 'ACTION: {"tool": ..., "params": {...}}',
        "answer_form": "ANSWER: and your answer",
        "neither": "an ACTION: nor an ANSWER: line",
        "output_word": "an OBSERVATION",
    }
    system_template = "system.j2"
    observation_template = "observation.j2"

    def turn_rules(self, has_calls: bool, max_calls: int, thought: bool) -> dict[str, str]:
        first = "thought? " if thought else ""
        if not has_calls:
            return {"root": f"{first}answer"}
        more = f' ( "\\n" action ){{0,{max_calls - 1}}}' if max_calls > 1 else ""
        # Many vocabularies have one token for the closing braces and the line break.
        return {
            "root": f"{first}( actions | answer )",
            "actions": f'action{more} "\\n"?',
        }

    def call_rule(self, name: str, params: str) -> str:
        head = literal(f'{{"tool": {dump(name)}, "params": ')
        return f'{head} {params} "}}"'

    def spelled_call(self, name: str, params: Mapping[str, Any]) -> str:
        return "ACTION: " + json.dumps({"tool": name, "params": params}, ensure_ascii=False)

    def spelled(self, turn: ModelTurn) -> str:
        lines = [f"THOUGHT: {turn.thought}"] if turn.thought else []
        lines += [self.spelled_call(call.name, call.input) for call in turn.calls]
        if turn.answer is not None:
            lines.append(f"ANSWER: {turn.answer}")
        return "\n".join(lines)

    def outline(self, text: str) -> Outline:
        found = Outline()
        text, shadow = clean(text, found, _call_marker(), _reply_follows)
        fence = whole_fence(shadow)
        if fence is not None and _first_marker(shadow):
            text, shadow = text[slice(*fence)], shadow[slice(*fence)]
            found.receipts.append(Receipt("turn", "took the code fence around the reply away"))
        shadow = _without_quotations(shadow, found)
        for block in _tree(shadow).children:
            if found.invented or len(found.actions) > MOST_CALLS:
                break
            if isinstance(block, Tree):
                _add(found, block, text)
        if found.answer is None and not found.actions and not found.invented:
            _inline(found, text, shadow)
        return found


ACTION = Action()


def _add(found: Outline, block: Tree[Token], text: str) -> None:
    tokens = [token for token in block.children if isinstance(token, Token)]
    contents = tokens if block.data == "text" else tokens[1:]
    content = ""
    if contents:
        content = text[contents[0].start_pos or 0 : contents[-1].end_pos].strip(WHITE)
    if block.data not in ("text", "speaker") and not _is_plain(tokens[0]):
        note = f"read {str(tokens[0]).strip()!r} as {str(block.data).upper()}:"
        found.receipts.append(Receipt("turn", note))
    if block.data == "speaker" and not found.actions:
        content = text[tokens[0].start_pos or 0 : tokens[-1].end_pos].strip(WHITE)
        found.thoughts.append(content)
    elif block.data in ("observation", "speaker"):
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
    """Whether a line of an answer begins a call, outside code fences."""
    fences = 0
    for token, following in itertools.pairwise(tokens):
        fences += len(_FENCE_LINE.findall(token))
        if token.type == "ACTION" and fences % 2 == 0 and _CALL_BEGINS.match(following):
            return True
    return False


def _reply_follows(shadow: str, at: int) -> bool:
    return _marker().match(shadow[at : at + 200].lstrip(WHITE)) is not None


def _first_marker(shadow: str, *, thought: bool = True) -> re.Match[str] | None:
    """The first marker of what a reply is made of."""
    matches = (_marker().match(shadow, place.start()) for place in _PLACES.finditer(shadow))
    return next(
        (match for match in matches if match and (thought or match["THOUGHT"] is None)), None
    )


def _without_quotations(shadow: str, found: Outline) -> str:
    """The shadow with markers in code fences hidden, where they are quoted there.

    They are not where a reply is nothing but fences, with at most a thought before them.
    """
    spans = fences(shadow)
    if not spans:
        return shadow
    outside = blank(shadow, spans)
    if _first_marker(outside, thought=False) is None:
        before, behind = outside[: spans[0][0]].strip(WHITE), outside[spans[0][0] :].strip(WHITE)
        is_thought = not before or _marker().match(before) is not None
        if behind or not is_thought or is_doubted(before):
            return hide(shadow, spans)
        if before:
            found.receipts.append(Receipt("turn", "took markers in a code fence", cost=1))
        return shadow
    return hide(shadow, [span for span in spans if _first_marker(shadow[slice(*span)])])


def _inline(found: Outline, text: str, shadow: str) -> None:
    """A marker behind the end of a sentence, where it is the only one and in capitals."""
    match = _INLINE.search(shadow)
    if match is None or len(_WORD.findall(shadow)) != 1:
        return
    content = text[match.end() :].strip(WHITE)
    kind = "ACTION" if match["kind"] == "ACTION" else "ANSWER"
    if kind == "ACTION" and (is_doubted(text[: match.start()]) or not _is_json(content)):
        return
    if kind == "ANSWER" and _TALK.match(content):
        return
    what = f"took {kind} in the middle of a line as a marker"
    found.receipts.append(Receipt("turn", what, cost=1))
    if kind == "ACTION":
        found.actions.append(content)
    else:
        found.answer = content


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except ValueError:
        return False
    return True


def _tree(shadow: str) -> Tree[Token]:
    parser = _lark().parse_interactive("")
    for token in _tokens(shadow):
        parser.feed_token(token)
    return cast("Tree[Token]", parser.feed_eof())  # type: ignore[no-untyped-call]


def _tokens(shadow: str) -> Iterator[Token]:
    """The markers, and one TEXT token for what stands between two of them."""
    at = 0
    markers = 0
    for place in _PLACES.finditer(shadow):
        match = _any_marker().match(shadow, place.start()) if place.start() >= at else None
        if match is None:
            continue
        if match.start() > at:
            yield Token("TEXT", shadow[at : match.start()], at, end_pos=match.start())
        yield Token(match.lastgroup or "", match.group(), match.start(), end_pos=match.end())
        at = match.end()
        markers += 1
        if markers == _MOST_MARKERS:
            break
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
    names = ("THOUGHT", "ACTION", "ANSWER", "OBSERVATION", "SPEAKER")
    return {name: terminals[name].to_regexp() for name in names}


@functools.cache
def _any_marker() -> re.Pattern[str]:
    return _any_of(_patterns())


@functools.cache
def _marker() -> re.Pattern[str]:
    """A marker of what a reply is made of."""
    names = ("THOUGHT", "ACTION", "ANSWER")
    return _any_of({name: _patterns()[name] for name in names})


@functools.cache
def _call_marker() -> CallMarker:
    pattern = re.compile(rf"(?:{_patterns()['ACTION']})\s*(?:```\w*\s*)?")
    return CallMarker(_LINES, pattern)
