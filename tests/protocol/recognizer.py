"""An independent reader of GBNF for tests: samples strings of a grammar, and recognises them.

Shares no code with `runner.protocol`: it parses the GBNF text itself.
"""

from __future__ import annotations

import random
import re

TOKEN = re.compile(
    r"""\s*(?:(?P<name>[a-z][a-z0-9-]*)|"(?P<literal>(?:\\.|[^"\\])*)"|\[(?P<klass>(?:\\.|[^\]\\])*)\]
    |(?P<repeat>\{\d*,?\d*\}|[?*+])|(?P<open>\()|(?P<close>\))|(?P<bar>\|))""",
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "]": "]", "[": "["}


def unescape(text: str) -> list[str]:
    characters, i = [], 0
    while i < len(text):
        if text[i] == "\\" and text[i + 1] == "x":
            characters.append(chr(int(text[i + 2 : i + 4], 16)))
            i += 4
        elif text[i] == "\\":
            characters.append(ESCAPES[text[i + 1]])
            i += 2
        else:
            characters.append(text[i])
            i += 1
    return characters


class Grammar:
    """Rules as nested tuples: ("alt", [...]), ("seq", [...]), ("lit", s), ("class", neg, ranges),
    ("ref", name), ("rep", node, least, most)."""

    def __init__(self, text: str) -> None:
        self.rules = {}
        for line in text.splitlines():
            name, separator, body = line.partition(" ::= ")
            assert separator, f"not a rule: {line}"
            assert name not in self.rules, f"rule {name} twice"
            tokens = self.tokens(body)
            self.rules[name] = self.alternatives(tokens)
            assert not tokens, f"left over in {name}: {tokens}"

    @staticmethod
    def tokens(body: str) -> list[tuple[str, str]]:
        tokens, at = [], 0
        body = body.strip()
        while at < len(body):
            match = TOKEN.match(body, at)
            assert match, f"cannot read {body[at : at + 30]!r}"
            tokens.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()
        return tokens

    def alternatives(self, tokens):
        options = [self.sequence(tokens)]
        while tokens and tokens[0][0] == "bar":
            tokens.pop(0)
            options.append(self.sequence(tokens))
        return ("alt", options)

    def sequence(self, tokens):
        items = []
        while tokens and tokens[0][0] not in ("bar", "close"):
            kind, text = tokens.pop(0)
            if kind == "literal":
                node = ("lit", "".join(unescape(text)))
            elif kind == "klass":
                node = self.character_class(text)
            elif kind == "name":
                node = ("ref", text)
            else:
                assert kind == "open", kind
                node = self.alternatives(tokens)
                assert tokens.pop(0)[0] == "close"
            if tokens and tokens[0][0] == "repeat":
                node = ("rep", node, *self.bounds(tokens.pop(0)[1]))
            items.append(node)
        assert items, "an empty alternative"
        return ("seq", items)

    @staticmethod
    def bounds(text):
        if text in "?*+":
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[text]
        least, comma, most = text[1:-1].partition(",")
        assert not most or int(most) < 2000, "a repetition of 2000 or more"
        return int(least), int(most or least) if most or not comma else None

    @staticmethod
    def character_class(text):
        negative = text.startswith("^")
        characters = unescape(text[1:] if negative else text)
        raw = re.findall(r"\\x..|\\.|.", text[1:] if negative else text, re.DOTALL)
        ranges, i = [], 0
        while i < len(characters):
            if i + 2 < len(characters) and raw[i + 1] == "-":
                ranges.append((characters[i], characters[i + 2]))
                i += 3
            else:
                ranges.append((characters[i], characters[i]))
                i += 1
        return ("class", negative, ranges)

    def sample(self, rng: random.Random, name: str = "root") -> str:
        """A string of the language; repetitions are kept short."""
        return self._sample(self.rules[name], rng)

    def _sample(self, node, rng):
        kind = node[0]
        if kind == "lit":
            return node[1]
        if kind == "ref":
            return self.sample(rng, node[1])
        if kind == "alt":
            return self._sample(rng.choice(node[1]), rng)
        if kind == "seq":
            return "".join(self._sample(item, rng) for item in node[1])
        if kind == "rep":
            _, inner, least, most = node
            top = least + 6 if most is None else min(most, least + 6)
            return "".join(self._sample(inner, rng) for _ in range(rng.randint(least, top)))
        _, negative, ranges = node
        if not negative:
            low, high = rng.choice(ranges)
            return chr(rng.randint(ord(low), ord(high)))
        while True:
            character = rng.choice(
                "aZ09 .,:;{}[]()'\"\\/\n\t\u00e9\u4e2d\U0001f438\u2028\x7f\x01<>|"
            )
            if not any(low <= character <= high for low, high in ranges):
                return character

    def accepts(self, text: str) -> bool:
        """Whether the whole text belongs to the language (breadth-first, without recursion)."""
        states = {self._push((), self.rules["root"])}
        states = self._expand(states)
        for character in text:
            stepped = set()
            for state in states:
                if state and self._takes(state[-1], character):
                    stepped.add(self._after(state, character))
            states = self._expand(stepped)
            if not states:
                return False
        return () in states

    @staticmethod
    def _push(state, node):
        return (*state, _frozen(node))

    @staticmethod
    def _takes(node, character):
        if node[0] == "lit":
            return node[1][0] == character
        _, negative, ranges = node
        return any(low <= character <= high for low, high in ranges) != negative

    @staticmethod
    def _after(state, character):
        top = state[-1]
        if top[0] == "lit" and len(top[1]) > 1:
            return (*state[:-1], ("lit", top[1][1:]))
        return state[:-1]

    def _expand(self, states):
        """Replace what is no terminal on top of each stack, until all tops are terminals."""
        done, waiting = set(), list(states)
        seen = set(waiting)
        while waiting:
            state = waiting.pop()
            if not state or state[-1][0] == "class" or (state[-1][0] == "lit" and state[-1][1]):
                done.add(state)
                continue
            rest, top = state[:-1], state[-1]
            if top[0] == "lit":
                new = [rest]
            elif top[0] == "ref":
                new = [(*rest, _frozen(self.rules[top[1]]))]
            elif top[0] == "alt":
                new = [(*rest, option) for option in top[1]]
            elif top[0] == "seq":
                new = [(*rest, *reversed(top[1]))]
            else:
                _, inner, least, most = top
                new = [] if least else [rest]
                if most is None or most > 0:
                    left = None if most is None else most - 1
                    new.append((*rest, ("rep", inner, max(least - 1, 0), left), inner))
            for item in new:
                if item not in seen:
                    seen.add(item)
                    waiting.append(item)
        return done


def _frozen(node):
    if isinstance(node, (list, tuple)):
        return tuple(_frozen(item) for item in node)
    return node
