"""Takes away what models put around a call: code fences, tags of other formats, extra escapes."""

from __future__ import annotations

import contextlib
import json
import re

from runner.protocol.json_text import strict_json

_MOST_LAYERS = 6
_FENCE_START = re.compile(r"(?:`{3,}|~{3,})[ \t]{0,9}[\w+-]{0,20}[ \t]{0,9}\n?")
_FENCE_END = re.compile(r"\n?[ \t]{0,9}(?:`{3,}|~{3,})\Z")
_TAG = re.compile(
    r"\[TOOL_CALLS\]|<\|python_tag\|>|<\|/?tool_call(?:_start|_end)?\|>|</?tool_calls?>"
    r"|</?function_?calls?>|\bfunctools(?=\s{0,9}\[)|<\|eom_id\|>"
)


def unwrapped(text: str) -> tuple[str, list[str]]:
    """``text`` without what models put around a call, and what was taken away."""
    changes: dict[str, None] = {}
    for _ in range(_MOST_LAYERS):
        text = text.strip()
        start = _FENCE_START.match(text)
        tag = _TAG.match(text)
        if start is not None:
            text = text[start.end() :]
            end = _FENCE_END.search(text, max(0, len(text) - 99))
            text = text[: end.start()] if end else text
            changes["took the code fence away"] = None
        elif text.startswith("[") and text.endswith("]") and _FENCE_START.match(text[1:].lstrip()):
            text = text[1:-1]
            changes["took brackets around a code fence away"] = None
        elif len(text) > 1 and text.startswith("`") and text.endswith("`"):
            text = text.strip("`")
            changes["took backticks away"] = None
        elif tag is not None:
            text = text[tag.end() :]
            changes["took the tags of another format away"] = None
        else:
            break
    tail = _TAG.search(text, text.rfind("}") + 1) if changes else None
    if tail is not None:
        text = text[: tail.start()].rstrip()
    return text, list(changes)


def respelled(text: str) -> list[tuple[str, str]]:
    """Other spellings of a whole text, each with what was done to get it."""
    found = []
    if re.match(r'\{\s{0,9}\\"', text):
        # If the result is not strict JSON, only the quotes were escaped: `\n` may be of a path.
        with contextlib.suppress(ValueError):
            spelled = json.loads(f'"{text.strip()}"')
            strict_json(spelled)
            found.append((spelled, "took one layer of escapes away"))
    if text.startswith("{{"):
        parts = re.split(r'("[^"\\]*(?:\\.[^"\\]*)*")', text)
        if not any("'" in part or _has_single_braces(part) for part in parts[::2]):
            parts[::2] = [part.replace("{{", "{").replace("}}", "}") for part in parts[::2]]
            found.append(("".join(parts), "read doubled braces as single ones"))
    return found


def _has_single_braces(part: str) -> bool:
    rest = part.replace("{{", "").replace("}}", "")
    return "{" in rest or "}" in rest
