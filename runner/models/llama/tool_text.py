"""Puts tool descriptions into a chat template without trusting a word of them.

A template gets the tools with a mark in the place of every string that somebody else wrote, and
what it prints is cut at the marks, as with messages. Only the vocabulary of JSON Schema stays,
since templates ask for it (``type == "string"``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from runner.core.conversation import Message

Source = Message | Literal["tools", "words"] | None
Segment = tuple[str, Source]
"""A piece of a prompt: markup (None), the content of a message, text of tools, or the template's
own words around those, which are no more than text."""

_START, _JSON, _END = "\ue002", "\ue004", "\ue003"
_MARK = re.compile(f"{_START}({_JSON}*)(\\d+){_END}")
_STRAY = re.compile(f"[{_START}{_JSON}{_END}]|\\\\ue00[234]", re.IGNORECASE)
_SCHEMA_WORDS = frozenset((
    "additionalProperties", "allOf", "anyOf", "array", "boolean", "const", "default",
    "description", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format",
    "function", "integer", "items", "maximum", "maxItems", "maxLength", "minimum", "minItems",
    "minLength", "multipleOf", "name", "null", "nullable", "number", "object", "oneOf",
    "parameters", "pattern", "properties", "required", "string", "title", "type", "uniqueItems",
))  # fmt: skip


class ToolText:
    """Tools for a template, and the way back from marks to their text.

    Parameters
    ----------
    tools
        Objects ``{"type": "function", "function": {"name", "description", "parameters"}}``.

    Attributes
    ----------
    marked
        The same objects with marks.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self._numbers: dict[str, int] = {}
        self.marked: list[dict[str, Any]] = [self._mark(tool) for tool in tools]
        self._texts = list(self._numbers)
        self._needed = {
            text
            for function in (tool["function"] for tool in tools)
            for text in (
                function["name"],
                function["description"],
                *function["parameters"].get("properties", ()),
            )
            if text in self._numbers
        }
        self._seen: set[str] = set()

    def _mark(self, value: Any) -> Any:
        if isinstance(value, str):
            if value in _SCHEMA_WORDS or not value:
                return value
            # One mark a text, so that a template can look names up and compare them.
            return f"{_START}{self._numbers.setdefault(value, len(self._numbers))}{_END}"
        if isinstance(value, Mapping):
            return {self._mark(key): self._mark(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._mark(inner) for inner in value]
        return value

    def cut(self, text: str) -> Iterator[Segment]:
        """Segments of ``text``, which a template has rendered from the marked tools.

        Raises
        ------
        LookupError
            The template broke a mark.
        """
        if not self.marked:
            yield text, None
            return
        at = 0
        for match in _MARK.finditer(text):
            yield _unmarked(text[at : match.start()]), None
            original = self._texts[int(match.group(2))]
            self._seen.add(original)
            for _ in match.group(1):
                original = json.dumps(original, ensure_ascii=False)[1:-1]
            yield original, "tools"
            at = match.end()
        yield _unmarked(text[at:]), None

    def check_complete(self) -> None:
        """Raise `LookupError` where a name or a description is in nothing that was cut."""
        missing = sorted(self._needed - self._seen)
        if missing:
            raise LookupError(f"of the tools it does not show {missing[0]!r}")


def as_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The filter ``tojson`` of chat templates; marks note that their text is to be escaped.

    ``ensure_ascii`` is taken, as templates pass it, and has no effect: it would break the marks.
    """
    text = json.dumps(
        value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys
    )
    return text.replace(_START, _START + _JSON)


def words_around_tools(
    segments: Sequence[Segment], markup_of: Callable[[str], tuple[int, int] | None]
) -> list[Segment]:
    """The same segments, with the plain words around tools told apart from markup.

    Models were trained on tools that were tokenised together with the words around them. Those
    words are no more than text, up to the next control token of the template itself.

    Parameters
    ----------
    markup_of
        Where in a markup text its first control token begins and its last one ends, if any.
    """
    result: list[Segment] = []
    for index, (text, source) in enumerate(segments):
        if source is not None:
            result.append((text, source))
            continue
        behind = index > 0 and segments[index - 1][1] == "tools"
        before = index + 1 < len(segments) and segments[index + 1][1] == "tools"
        start, end = markup_of(text) or ((len(text),) * 2 if behind else (0, 0))
        start, end = start if behind else 0, end if before else len(text)
        result += [(text[:start], "words"), (text[start:end], None), (text[end:], "words")]
    return [segment for segment in result if segment[0]]


def _unmarked(markup: str) -> str:
    if _STRAY.search(markup):
        raise LookupError("it changes the text of tools instead of printing it")
    return markup
