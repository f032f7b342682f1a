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
EMPTY = 0
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
        self._nodes, self._node_numbers = [], {}
        self._stacks, self._stack_numbers = [None], {}
        self._bodies, self._expanded = {}, {}
        for line in text.removesuffix("\n").split("\n"):
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
        """Whether the whole text belongs to the language (breadth-first, without recursion).

        Stacks of what is still to come are kept as numbers: each distinct part of the grammar and
        each distinct stack has one, so that no step looks at more than the top.
        """
        states = self._ready(self._push(self._node(self.rules["root"]), EMPTY))
        for character in text:
            stepped = set()
            for state in states:
                if state != EMPTY:
                    top, rest = self._stacks[state]
                    follow = self._after(top, rest, character)
                    if follow is not None:
                        stepped.add(follow)
            states = set().union(*(self._ready(state) for state in stepped))
            if not states:
                return False
        return EMPTY in states

    def _node(self, node) -> int:
        """The number of a part of the grammar; equal parts have the same."""
        kind = node[0]
        if kind in ("alt", "seq"):
            node = (kind, *(self._node(inner) for inner in node[1]))
        elif kind == "rep":
            inner = node[1] if isinstance(node[1], int) else self._node(node[1])
            node = (kind, inner, *node[2:])
        elif kind == "class":
            node = (kind, node[1], tuple(node[2]))
        return self._number(self._nodes, self._node_numbers, node)

    def _push(self, node: int, rest: int) -> int:
        return self._number(self._stacks, self._stack_numbers, (node, rest))

    @staticmethod
    def _number(known, numbers, item) -> int:
        if item not in numbers:
            numbers[item] = len(known)
            known.append(item)
        return numbers[item]

    def _after(self, top: int, rest: int, character: str):
        """The stack when a character was read, or None where it does not fit."""
        node = self._nodes[top]
        if node[0] == "lit":
            if node[1][0] != character:
                return None
            return self._push(self._node(("lit", node[1][1:])), rest) if node[1][1:] else rest
        _, negative, ranges = node
        return rest if any(low <= character <= high for low, high in ranges) != negative else None

    def _ready(self, state: int):
        """Stacks that a stack stands for, all with a text or a class on top, or empty."""
        if state in self._expanded:
            return self._expanded[state]
        done, seen, waiting = set(), {state}, [state]
        while waiting:
            stack = waiting.pop()
            if stack == EMPTY:
                done.add(stack)
                continue
            top, rest = self._stacks[stack]
            kind, *parts = self._nodes[top]
            if kind == "class" or (kind == "lit" and parts[0]):
                done.add(stack)
                continue
            if kind == "lit":
                new = [rest]
            elif kind == "ref":
                if parts[0] not in self._bodies:
                    self._bodies[parts[0]] = self._node(self.rules[parts[0]])
                new = [self._push(self._bodies[parts[0]], rest)]
            elif kind == "alt":
                new = [self._push(option, rest) for option in parts]
            elif kind == "seq":
                follow = rest
                for item in reversed(parts):
                    follow = self._push(item, follow)
                new = [follow]
            else:
                inner, least, most = parts
                new = [] if least else [rest]
                if most is None or most > 0:
                    left = None if most is None else most - 1
                    more = self._node(("rep", inner, max(least - 1, 0), left))
                    new.append(self._push(inner, self._push(more, rest)))
            for item in new:
                if item not in seen:
                    seen.add(item)
                    waiting.append(item)
        self._expanded[state] = done
        return done
