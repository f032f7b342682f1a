"""An independent reader of GBNF for tests: samples strings of a grammar, and recognises them.

Shares no code with `runner.protocol`: it parses the GBNF text itself. It insists on the portable
part of GBNF that llama.cpp, llguidance and xgrammar read alike, unless it is told otherwise.

Recognising is exact and breadth-first. A state is a stack of nodes that are still to be matched;
stacks, and what they become, are numbered and remembered, so that the texts of one grammar get
faster the more of them are asked about.
"""

from __future__ import annotations

import random
import re

from runner.core.errors import GrammarError

TOKEN = re.compile(
    r"""(?:[ \t]|\#[^\n]*)*(?:(?P<head>[A-Za-z0-9][A-Za-z0-9-]*[ \t]*::=)
    |(?P<name>[A-Za-z0-9][A-Za-z0-9-]*)
    |"(?P<literal>(?:\\.|[^"\\])*)"|\[(?P<klass>(?:\\.|[^\]\\])*)\]
    |(?P<repeat>\{\d*,?\d*\}|[?*+])|(?P<open>\()|(?P<close>\))|(?P<bar>\|)|(?P<any>\.)
    |(?P<end>\r?\n|\Z))""",
    re.VERBOSE | re.DOTALL,
)
PORTABLE_NAME = re.compile("[a-z][a-z0-9-]*")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "]": "]", "[": "["}
EMPTY = 0
"""Number of the empty stack: nothing is left to match."""


def unescape(text: str) -> list[str]:
    characters, i = [], 0
    while i < len(text):
        digits = {"x": 2, "u": 4, "U": 8}.get(text[i + 1], 0) if text[i] == "\\" else 0
        if digits:
            characters.append(chr(int(text[i + 2 : i + 2 + digits], 16)))
            i += 2 + digits
        elif text[i] == "\\":
            characters.append(ESCAPES[text[i + 1]])
            i += 2
        else:
            characters.append(text[i])
            i += 1
    return characters


class Grammar:
    """Rules as nested tuples: ("alt", (...)), ("seq", (...)), ("lit", s), ("class", neg, ranges),
    ("ref", name), ("rep", node, least, most).

    With ``portable=False`` it also reads what only some engines do: names with capitals or digits
    first, `.`, empty alternatives, long repetitions, a rule twice (the last one counts).
    """

    def __init__(self, text: str, *, portable: bool = True) -> None:
        self.portable = portable
        self.rules = {}
        tokens = self.tokens(text)
        while tokens:
            kind, head = tokens.pop(0)
            if kind == "end":
                continue
            assert kind == "head", f"not a rule: {head}"
            name = head.removesuffix("::=").strip()
            assert not portable or PORTABLE_NAME.fullmatch(name), f"name {name!r}"
            assert not portable or name not in self.rules, f"rule {name} twice"
            while tokens[0][0] == "end" and len(tokens) > 1 and not portable:
                tokens.pop(0)
            self.rules[name] = self.alternatives(tokens)
            assert tokens.pop(0)[0] == "end", f"left over in {name}: {tokens[:5]}"
        self._numbers = {}  # (top node, number of the stack below it) -> number
        self._stacks = [None]  # number -> (top node, number of the stack below it)
        self._ready = {}  # number of a stack -> those with a character class on top it leads to
        self._heights = {}  # rule -> see `_height`, once a text gets deep
        self._steps = {}  # (set of stacks, character) -> set of stacks

    @staticmethod
    def tokens(text: str) -> list[tuple[str, str]]:
        tokens, at, depth = [], 0, 0
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match, f"cannot read {text[at : at + 30]!r}"
            kind = match.lastgroup
            depth += {"open": 1, "close": -1}.get(kind, 0)
            # A line break ends a rule, but not inside brackets or behind a bar.
            if kind != "end" or (depth == 0 and tokens and tokens[-1][0] != "bar"):
                tokens.append((kind, match.group(kind)))
            at = match.end()
        return [*tokens, ("end", "")]

    def alternatives(self, tokens):
        options = [self.sequence(tokens)]
        while tokens and tokens[0][0] == "bar":
            tokens.pop(0)
            options.append(self.sequence(tokens))
        return ("alt", tuple(options))

    def sequence(self, tokens):
        items = []
        while tokens[0][0] not in ("bar", "close", "end"):
            kind, text = tokens.pop(0)
            if kind == "literal":
                node = ("lit", "".join(unescape(text)))
            elif kind == "klass":
                node = self.character_class(text)
            elif kind == "any" and not self.portable:
                node = ("class", True, ())
            elif kind == "name":
                node = ("ref", text)
            else:
                assert kind == "open", kind
                node = self.alternatives(tokens)
                assert tokens.pop(0)[0] == "close"
            if tokens[0][0] == "repeat":
                node = ("rep", node, *self.bounds(tokens.pop(0)[1]))
            items.append(node)
        assert items or not self.portable, "an empty alternative"
        return ("seq", tuple(items))

    def bounds(self, text):
        if text in "?*+":
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[text]
        least, comma, most = text[1:-1].partition(",")
        assert not self.portable or not most or int(most) < 2000, "a repetition of 2000 or more"
        return int(least), int(most or least) if most or not comma else None

    @staticmethod
    def character_class(text):
        negative = text.startswith("^")
        characters = unescape(text[1:] if negative else text)
        body = text[1:] if negative else text
        raw = re.findall(r"\\x..|\\u.{4}|\\U.{8}|\\.|.", body, re.DOTALL)
        ranges, i = [], 0
        while i < len(characters):
            if i + 2 < len(characters) and raw[i + 1] == "-":
                ranges.append((characters[i], characters[i + 2]))
                i += 3
            else:
                ranges.append((characters[i], characters[i]))
                i += 1
        return ("class", negative, tuple(ranges))

    def sample(self, rng: random.Random, name: str = "root") -> str:
        """A string of the language; repetitions are kept short."""
        return self._sample(self.rules[name], rng, 0)

    def _sample(self, node, rng, depth):
        kind = node[0]
        if kind == "lit":
            return node[1]
        if kind == "ref":
            return self._sample(self.rules[node[1]], rng, depth + 1)
        if kind == "alt":
            return self._sample(self._option(node[1], rng, depth), rng, depth)
        if kind == "seq":
            return "".join(self._sample(item, rng, depth) for item in node[1])
        if kind == "rep":
            _, inner, least, most = node
            top = least + (6 if depth < 12 else 1)
            top = top if most is None else min(most, top)
            return "".join(self._sample(inner, rng, depth) for _ in range(rng.randint(least, top)))
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

    def _option(self, options, rng, depth):
        """Any alternative; deep down one of the shallowest, so that recursion comes to an end."""
        if depth < 24:
            return rng.choice(options)
        if not self._heights:
            self._measure_heights()
        heights = [self._height(option) for option in options]
        least = min(heights)
        return rng.choice([o for o, h in zip(options, heights, strict=True) if h == least])

    def _height(self, node):
        """How many rules deep the shallowest string of a node is."""
        kind = node[0]
        if kind == "ref":
            return self._heights.get(node[1], float("inf"))
        if kind == "alt":
            return min(self._height(option) for option in node[1])
        if kind == "seq":
            return max((self._height(item) for item in node[1]), default=0)
        if kind == "rep":
            return self._height(node[1]) if node[2] else 0
        return 0

    def _measure_heights(self):
        heights = {}
        while True:
            self._heights = heights
            heights = {name: 1 + self._height(body) for name, body in self.rules.items()}
            if heights == self._heights:
                return

    def accepts(self, text: str) -> bool:
        """Whether the whole text belongs to the language."""
        states = self._expand([self._push(("ref", "root"), EMPTY)])
        for character in text:
            states = self._step(states, character)
            if not states:
                return False
        return EMPTY in states

    def _step(self, states, character):
        key = (states, character)
        if key not in self._steps:
            below = [
                self._stacks[state][1]
                for state in states
                if state != EMPTY and self._takes(self._stacks[state][0], character)
            ]
            self._steps[key] = self._expand(below)
        return self._steps[key]

    @staticmethod
    def _takes(node, character):
        _, negative, ranges = node
        return any(low <= character <= high for low, high in ranges) != negative

    def _push(self, node, below):
        # Parts of rules are told apart by identity, since hashing them whole takes long.
        if node[0] in ("alt", "seq"):
            key = (id(node), below)
        elif node[0] == "rep":
            key = (id(node[1]), node[2], node[3], below)
        else:
            key = (node, below)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._stacks)
            self._stacks.append((node, below))
        return number

    def _expand(self, stacks):
        ready = set()
        for stack in stacks:
            ready |= self._ready_from(stack)
        return frozenset(ready)

    def _ready_from(self, start):
        """The stacks with a character class on top, and the empty one, that a stack leads to."""
        if start in self._ready:
            return self._ready[start]
        ready, waiting, seen = set(), [start], {start}
        while waiting:
            stack = waiting.pop()
            if stack == EMPTY or self._stacks[stack][0][0] == "class":
                ready.add(stack)
                continue
            for new in self._unfolded(*self._stacks[stack]):
                if new not in seen:
                    seen.add(new)
                    waiting.append(new)
        self._ready[start] = frozenset(ready)
        return self._ready[start]

    def _unfolded(self, top, below):
        kind = top[0]
        if kind == "lit":
            for character in reversed(top[1]):
                below = self._push(("class", False, ((character, character),)), below)
            return [below]
        if kind == "ref":
            return [self._push(self.rules[top[1]], below)]
        if kind == "alt":
            return [self._push(option, below) for option in top[1]]
        if kind == "seq":
            for item in reversed(top[1]):
                below = self._push(item, below)
            return [below]
        _, inner, least, most = top
        new = [] if least else [below]
        if most is None or most > 0:
            left = None if most is None else most - 1
            rest = self._push(("rep", inner, max(least - 1, 0), left), below)
            new.append(self._push(inner, rest))
        return new


def recognizer_matcher(text: str, *, portable: bool = True):
    """A matcher as in `runner.bench.conformance.matcher`, exact and without a library."""
    try:
        return Grammar(text, portable=portable).accepts
    except AssertionError as error:
        raise GrammarError(f"the grammar cannot be read: {error}") from error
