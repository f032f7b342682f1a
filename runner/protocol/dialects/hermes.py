"""The dialect ``hermes``: calls as JSON between <tool_call> tags, answers as plain text.

Models of the Qwen and Hermes families were trained on it; their chat templates present the tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from runner.core.conversation import ModelTurn, Receipt
from runner.protocol.dialects.base import Dialect
from runner.protocol.literals import dump, literal
from runner.protocol.outline import WHITE, Outline, clean
from runner.protocol.shadow import MOST_CALLS, CallMarker, blank, fences, hide

_CALL = CallMarker(re.compile("(?=<tool_call>)"), re.compile(r"\s*<tool_call>\s*(?:```\w*\s*)?"))
# A tag in a sentence is a mention of it.
_BLOCK = re.compile(
    r"(?:(?<![^\n])|(?<=>))[ \t]*<(?P<kind>tool_call|tool_response)>"
    r"|(?<![`\"'])<tool_call>(?=\s*(?:```\w*\s*)?[{\[])"
)
_END = "</tool_call>"
# How a call begins that stands there without tags, as models write it that were not trained on
# them. No answer looks like this.
_BARE = re.compile(r'\{\s*"name"\s*:\s*"[^"]*"\s*,\s*"arguments"\s*:')
_NO_TAGS = Receipt("turn", "took a call without its tags", cost=1)


class Hermes(Dialect):
    """See the module."""

    name = "hermes"
    grammar_file = "hermes.gbnf"
    name_key = "name"
    params_key = "arguments"
    words: ClassVar[Mapping[str, str]] = {
        "call_word": "tool call",
        "form": '<tool_call>{"name": ..., "arguments": {...}}</tool_call>',
        "answer_form": "your answer as plain text",
        "neither": "a tool call nor an answer",
        "output_word": "a tool response",
    }
    system_template = "hermes_system.j2"
    observation_template = "hermes_observation.j2"
    tools_in_template = True
    plain_answers = True

    def turn_rules(self, has_calls: bool, max_calls: int, thought: bool) -> dict[str, str]:
        if not has_calls:
            return {"root": "answer"}
        more = f' ( "\\n" tool-call ){{0,{max_calls - 1}}}' if max_calls > 1 else ""
        first = "thought? " if thought else ""
        return {"root": "calls | answer", "calls": f'{first}tool-call{more} "\\n"?'}

    def call_rule(self, name: str, params: str) -> str:
        head = literal(f'{{"name": {dump(name)}, "arguments": ')
        return f'{head} {params} "}}"'

    def spelled_call(self, name: str, params: Mapping[str, Any]) -> str:
        body = json.dumps({"name": name, "arguments": params}, ensure_ascii=False)
        return f"<tool_call>\n{body}\n</tool_call>"

    def spelled(self, turn: ModelTurn) -> str:
        lines = [turn.thought] if turn.thought and turn.calls else []
        lines += [self.spelled_call(call.name, call.input) for call in turn.calls]
        if turn.answer is not None:
            lines.append(turn.answer)
        return "\n".join(lines)

    def outline(self, text: str) -> Outline:
        found = Outline()
        text, shadow = clean(text, found, _CALL, lambda shadow, at: bool(shadow[at:].strip(WHITE)))
        spans = fences(shadow)
        if blank(shadow, spans).strip(WHITE):
            shadow = hide(shadow, [span for span in spans if _BLOCK.search(shadow, *span)])
        blocks = list(_BLOCK.finditer(shadow))
        before = text[: blocks[0].start() if blocks else len(text)].strip(WHITE)
        if _BARE.match(before):
            found.actions.append(before)
            found.receipts.append(_NO_TAGS)
        elif not blocks:
            found.answer = before or None
        elif before:
            found.thoughts.append(before)
        for i, block in enumerate(blocks):
            if block["kind"] == "tool_response":
                found.invented = True
                if found.actions:
                    found.receipts.append(Receipt("turn", "dropped an invented tool response"))
            if found.invented or len(found.actions) > MOST_CALLS:
                break
            following = blocks[i + 1].start() if i + 1 < len(blocks) else len(text)
            end = shadow.find(_END, block.end(), following)
            # What stands behind the tag is judged like what stands behind the JSON.
            behind = text[end + len(_END) : following] if end >= 0 else ""
            end = end if end >= 0 else following
            found.actions.append(f"{text[block.end() : end]}\n{behind}".strip(WHITE))
            if _BARE.match(behind.strip(WHITE)):
                found.receipts.append(_NO_TAGS)
        return found


HERMES = Hermes()
