"""The shadow of a reply: what its blocks are looked for in.

In it, valid JSON behind a call's marker is blanked out but for its brackets, so that nothing in a
string of a call can be taken for a marker or a tag. Positions are those of the text itself, which
contents are taken from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.protocol.json_text import strict_json_at

MOST_CALLS = 64
"""Most calls that one reply may hold; a loop allows far fewer."""
HIDDEN = "\ue000"
"""Stands for what must not be looked at."""
_MOST_FENCES = 500
_OPEN = ("{", "[")
_FENCE_LINE = re.compile(r"(?m)^[ \t]{0,9}(`{3,}|~{3,})([^\n`]*)$")

Span = tuple[int, int]


@dataclass(frozen=True)
class CallMarker:
    """How the calls of a dialect begin.

    Attributes
    ----------
    places
        Finds where a marker may stand, quickly.
    pattern
        Matches there, and behind the JSON of another call: the marker and all up to the JSON.
    """

    places: re.Pattern[str]
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class MarkedCall:
    """A marker in the text, where its JSON begins, and whether it has brackets that do not fit."""

    start: int
    json: int
    broken: bool


def shadow_of(text: str, marker: CallMarker) -> tuple[str, list[MarkedCall]]:
    """The shadow of a text, and its first markers of calls."""
    text = text.replace(HIDDEN, "\ue001")
    calls: list[MarkedCall] = []
    parts: list[str] = []
    done = 0
    for place in marker.places.finditer(text):
        match = marker.pattern.match(text, place.start()) if place.start() >= done else None
        while match is not None:
            start = match.end()
            end = _end_of_json(text, start)
            broken = text[start : start + 1] in _OPEN and not end
            calls.append(MarkedCall(match.start(), start, broken))
            match = None
            if end:
                parts += [text[done : start + 1], HIDDEN * (end - start - 2), text[end - 1]]
                done = end
                match = marker.pattern.match(text, done)
        if len(calls) > MOST_CALLS:
            break
    parts.append(text[done:])
    return "".join(parts), calls


def _end_of_json(text: str, start: int) -> int:
    """Where the JSON object or array ends that begins there; 0 where there is none."""
    if text[start : start + 1] not in _OPEN:
        return 0
    try:
        return strict_json_at(text, start, control_characters=True)[1]
    except ValueError:
        return 0


def fences(shadow: str) -> list[Span]:
    """Where code fences begin and end; one that is never closed reaches to the end."""
    spans: list[Span] = []
    opened: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(shadow):
        if opened is None:
            opened = line
        elif line[1] == opened[1] and not line[2].strip() and len(spans) < _MOST_FENCES:
            spans.append((opened.start(), line.end()))
            opened = None
    if opened is not None:
        spans.append((opened.start(), len(shadow)))
    return spans


def whole_fence(shadow: str) -> Span | None:
    """What stands in a code fence that is around the whole shadow, which may hold others."""
    body = shadow.strip()
    first = _FENCE_LINE.match(body)
    if first is None or not body.endswith(first[1]) or first.end() > len(body) - len(first[1]):
        return None
    last = body.rfind("\n") + 1
    if body[last:].strip() != first[1]:
        return None
    offset = len(shadow) - len(shadow.lstrip())
    return offset + min(first.end() + 1, last), offset + last


def blank(shadow: str, spans: Sequence[Span]) -> str:
    """``shadow`` with blanks for all but the line breaks of ``spans``."""
    return _replaced(shadow, spans, lambda part: re.sub(r"[^\n]+", _blanks, part))


def hide(shadow: str, spans: Sequence[Span]) -> str:
    """``shadow`` with ``spans`` hidden, so that no marker is found in them."""
    return _replaced(shadow, spans, lambda part: re.sub(r"[^\n`~]", HIDDEN, part))


def _blanks(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _replaced(shadow: str, spans: Sequence[Span], change: Callable[[str], str]) -> str:
    parts = []
    at = 0
    for begin, end in spans:
        parts += [shadow[at:begin], change(shadow[begin:end])]
        at = end
    return "".join([*parts, shadow[at:]])
