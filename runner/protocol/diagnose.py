"""Says where and why the JSON of an ACTION ends or breaks, in the words of its parameters."""

from __future__ import annotations

import re

from runner.protocol.messages import message

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*"(?!\w))|(?P<open>[{\[])|(?P<close>[}\]])|(?P<colon>[:：])'
    r'|(?P<comma>[,，])|(?P<unclosed>")|(?P<other>[^\s"{}\[\]:：,，]+))',
    re.DOTALL,
)
_MOST_TOKENS = 20_000


class _Walk:
    """Follows a JSON-like text token by token and knows which key it is at."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.key = ""
        self.kinds = ["", ""]
        self.last = ""

    @property
    def place(self) -> str:
        """The keys from outside in, such as ``params.text``."""
        return ".".join(key for key in [*self.open, self.key] if key) or "the call"

    def step(self, kind: str, text: str) -> None:
        if kind == "colon" and self.kinds[-1] in ("string", "other"):
            self.key = self.last
        elif kind == "open":
            self.open.append(self.key)
            self.key = ""
        elif kind == "close" and self.open:
            self.key = self.open.pop()
        elif kind == "comma":
            self.key = ""
        self.last = text.strip("\"'")
        self.kinds = [self.kinds[-1], kind]


def diagnose(text: str, otherwise: str, at: int) -> tuple[str, bool]:
    """What is wrong with ``text``, and whether it looks cut off.

    Parameters
    ----------
    otherwise, at
        The answer where nothing better is found, and the place that it speaks of.
    """
    walk = _Walk()
    place = ""
    for count, match in enumerate(_TOKEN.finditer(text)):
        kind, token = match.lastgroup or "", match.group().strip()
        if count > _MOST_TOKENS:
            return otherwise, False
        if not place and match.end() > at:
            place = walk.place
        if kind == "unclosed":
            return message("details", "unclosed", place=walk.place), True
        if walk.kinds[-1] == "colon" and kind in ("close", "comma"):
            return message("details", "no_value", place=walk.place), False
        if kind == "colon" and walk.kinds == ["colon", "string"]:
            return message("details", "no_value", place=walk.place), False
        if kind == "other" and token in ("...", "…"):
            return message("details", "ellipsis", place=walk.place), False
        walk.step(kind, token)
        if kind == "close" and not walk.open:
            break
    else:
        if walk.kinds[-1] == "colon":
            return message("details", "ends_at_value", place=walk.place), True
        if walk.open:
            return message("details", "ends"), True
    return (f"{place}: {otherwise}" if place else otherwise), False


def place_at(text: str, at: int) -> str:
    """The key path of what stands at ``at``, such as ``params.text``."""
    walk = _Walk()
    for count, match in enumerate(_TOKEN.finditer(text)):
        if match.end() > at or count > _MOST_TOKENS:
            break
        walk.step(match.lastgroup or "", match.group().strip())
    return walk.place
