"""Says where and why the JSON of an ACTION ends or breaks, in the words of its parameters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from runner.protocol.messages import message

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"(?!\w)|'(?:[^'\\\n]|\\.)*'(?!\w)|[“„][^“”"]*[”“"])"""
    r"""|(?P<open>[{\[｛［])|(?P<close>[}\]｝］])|(?P<colon>[:：])|(?P<comma>[,，])|(?P<unclosed>")"""
    r"""|(?P<other>[^\s"{}\[\]｛｝［］:：,，=]+|=+))""",
    re.DOTALL,
)
_MOST_TOKENS = 20_000
_CLOSER = {"{": "}", "[": "]", "｛": "}", "［": "]"}
_PLAIN_CLOSER = {"｝": "}", "］": "]"}


@dataclass
class _Walk:
    """Follows a JSON-like text token by token and knows which key it is at.

    ``expects`` is what may come next: ``key``, ``colon``, ``value`` or ``more`` (a comma or a
    closing bracket).
    """

    open: list[tuple[str, str]] = field(default_factory=list)
    key: str = ""
    last: str = ""
    last_kind: str = ""
    expects: str = "value"

    @property
    def place(self) -> str:
        """The keys from outside in, such as ``params.text``."""
        keys = [key for _, key in self.open] + [self.key]
        return ".".join(_short(key) for key in keys if key) or "the call"

    @property
    def closer(self) -> str:
        """The bracket that would close what was opened last."""
        return _CLOSER[self.open[-1][0]] if self.open else ""

    def step(self, kind: str, text: str) -> None:
        if kind == "colon":
            if self.expects == "colon":
                self.key = self.last
            self.expects = "value"
        elif kind == "open":
            self.open.append((text, self.key))
            self.key = ""
            self.expects = "key" if self.closer == "}" else "value"
        elif kind == "close":
            if self.open:
                self.key = self.open.pop()[1]
            self.expects = "more"
        elif kind == "comma":
            self.key = ""
            self.expects = "key" if self.closer == "}" else "value"
        elif self.expects == "key":
            self.expects = "colon"
        else:
            self.expects = "more"
        self.last = text.strip("\"'“”„")
        self.last_kind = kind


def diagnose(text: str, otherwise: str, at: int) -> tuple[str, bool]:
    """What is wrong with ``text``, and whether it looks cut off.

    Parameters
    ----------
    otherwise, at
        The answer where nothing better is found, and the place that it speaks of.
    """
    walk = _Walk()
    place = ""
    whole = text.rstrip(" \t\r\n`;)").endswith(("}", "]", "｝", "］"))
    for count, match in enumerate(_TOKEN.finditer(text)):
        kind, token = match.lastgroup or "", match.group().strip()
        if count > _MOST_TOKENS:
            return otherwise, False
        if not place and match.end() > at:
            place = walk.place
        if kind == "unclosed" and not whole:
            return message("details", "unclosed", place=walk.place), True
        if kind == "unclosed":
            return message("details", "quote", place=walk.place), False
        fault = _fault(walk, kind, token, text, match.end())
        if fault:
            return fault, False
        walk.step(kind, token)
        if kind == "close" and not walk.open:
            break
    else:
        if walk.last_kind == "colon":
            return message("details", "ends_at_value", place=walk.place), True
        if walk.open:
            return message("details", "ends"), True
    return (f"{place}: {otherwise}" if place else otherwise), False


def missing_comma(text: str) -> str | None:
    """The message about a key that has no comma before it, or no colon behind it, if one is so."""
    walk = _Walk()
    for count, match in enumerate(_TOKEN.finditer(text)):
        kind, token = match.lastgroup or "", match.group().strip()
        if kind == "unclosed" or count > _MOST_TOKENS:
            return None
        fault = _fault(walk, kind, token, text, match.end())
        if fault:
            return fault if walk.expects in ("more", "colon") else None
        walk.step(kind, token)
    return None


def place_at(text: str, at: int) -> str:
    """The key path of what stands at ``at``, such as ``params.text``."""
    walk = _Walk()
    for count, match in enumerate(_TOKEN.finditer(text)):
        if match.end() > at or count > _MOST_TOKENS:
            break
        walk.step(match.lastgroup or "", match.group().strip())
    return walk.place


def _fault(walk: _Walk, kind: str, token: str, text: str, end: int) -> str | None:
    """What is wrong with a token where it stands, as far as it is beyond doubt."""
    if kind == "other" and token in ("...", "…"):
        return message("details", "ellipsis", place=walk.place)
    if walk.expects == "value":
        return _no_value(walk, kind, token, text, end)
    if kind == "close" and walk.open and _PLAIN_CLOSER.get(token, token) != walk.closer:
        return message("details", "closer", closer=walk.closer, place=walk.place, found=token)
    if walk.expects == "colon" and kind != "colon":
        return message("details", "colon", key=_quoted(walk.last), found=_quoted(token))
    if walk.expects == "key" and kind == "comma":
        return message("details", "comma_too_many", place=walk.place)
    if walk.expects == "more" and walk.closer == "}" and kind in ("string", "other"):
        following = _TOKEN.match(text, end)
        if following is not None and following.lastgroup == "colon":
            return message("details", "no_comma", key=_quoted(token), place=walk.place)
    return None


def _no_value(walk: _Walk, kind: str, token: str, text: str, end: int) -> str | None:
    if walk.last_kind == "colon" and kind in ("close", "comma"):
        return message("details", "no_value", place=walk.place)
    if walk.last_kind == "colon" and kind == "string":
        following = _TOKEN.match(text, end)
        if following is not None and following.lastgroup == "colon":
            return message("details", "no_value", place=walk.place)
    if kind == "comma" and walk.open:
        return message("details", "comma_too_many", place=walk.place)
    if kind == "close" and walk.open and _PLAIN_CLOSER.get(token, token) != walk.closer:
        return message("details", "closer", closer=walk.closer, place=walk.place, found=token)
    return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _quoted(token: str) -> str:
    return json.dumps(_short(token.strip("\"'“”„")), ensure_ascii=False)
