"""Reads GBNF text into rules. Written by hand and without recursion: it runs on every grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(
    r"""[ \t]*(?:(?P<line>\r?\n)
    |(?P<space>\#[^\n]*|\Z)
    |(?P<define>::=)
    |"(?P<literal>(?:\\.|[^"\\\n])*)"
    |\[(?P<klass>\^?(?:\\.|[^\]\\\n])*)\]
    |(?P<name>[A-Za-z0-9_.-]*[A-Za-z0-9_-])
    |(?P<repeat>[?*+]|\{[^}\n]*\})
    |(?P<open>\()|(?P<close>\))|(?P<bar>\|)
    |(?P<token>!?<[^>\n]*>)
    |(?P<dot>\.))""",
    re.VERBOSE,
)
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_BOUNDS = re.compile(r"\{ *([0-9]+) *(,? *)([0-9]*) *\}")
_BAD_ESCAPE = re.compile(r"\\(?!x[0-9a-fA-F]{2}|[\"\\nrt\[\]])(.?)", re.DOTALL)
_LARGEST = 2000
_DEEPEST = 64


class Problem(NamedTuple):
    """What is wrong with a grammar: where, in which rule, and what to do about it."""

    line: int
    rule: str
    message: str
    hint: str

    def __str__(self) -> str:
        where = f"line {self.line}" + (f", rule {self.rule!r}" if self.rule else "")
        return f"{where}: {self.message}"


class Item(NamedTuple):
    """One part of an alternative: a rule or a group (``ref``) or text, and how often it comes.

    ``blank`` is true for text that may be empty; ``most`` is None without a bound.
    """

    ref: str | None
    blank: bool
    least: int
    most: int | None


@dataclass
class Rule:
    """A rule, or a group in one: groups have names of their own that no rule can have."""

    name: str
    line: int
    owner: str
    alternatives: list[list[Item]] = field(default_factory=lambda: [[]])
    cost: int = 1


class Reader:
    """Collects rules and problems from GBNF text.

    Attributes
    ----------
    rules
        Rules and groups by name, as far as they could be read.
    problems
        What is no GBNF, or not read alike by llama.cpp, llguidance and xgrammar.
    """

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Rule] = {}
        self.problems: list[Problem] = []
        self._line = 1
        self._stack: list[Rule] = []
        self._groups = 0
        self._pending: str | None = None
        self._after_bar = False
        self._parts: dict[str, Callable[[str], None]] = {
            "literal": self._literal, "klass": self._klass, "repeat": self._repeat,
            "open": self._open, "close": self._close, "bar": self._bar, "token": self._token,
            "dot": self._dot,
        }  # fmt: skip
        self._read(text)

    def problem(self, message: str, hint: str) -> None:
        rule = self._stack[0].name if self._stack else ""
        self.problems.append(Problem(self._line, rule, message, hint))

    def _read(self, text: str) -> None:
        at = 0
        match_at = _TOKEN.match
        while at < len(text):
            match = match_at(text, at)
            if match is None:
                self.problem(
                    f"cannot read {text[at : at + 20].lstrip()!r}",
                    "texts stand in double quotes on one line, classes in brackets, comments "
                    "begin with #",
                )
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
                continue
            at = match.end()
            kind = match.lastgroup or ""
            # The most frequent ones take a short way.
            if kind == "literal" and self._stack:
                self._after_bar = False
                self._literal(match[kind])
            elif kind == "name" and self._stack:
                self._after_bar = False
                self._stack[-1].cost += 1
                self._stack[-1].alternatives[-1].append(Item(match[kind], False, 1, 1))
            elif kind != "space":
                self._take(kind, match[kind])
        self._end_rule()

    def _take(self, kind: str, text: str) -> None:
        if kind == "line":
            # A body goes on in the next line behind ::= or | and inside parentheses.
            if len(self._stack) == 1 and not self._after_bar:
                self._end_rule()
            self._line += 1
            return
        if kind == "name" and not self._stack and self._pending is None:
            self._pending = text
            return
        if kind == "define":
            self._begin_rule()
            return
        if not self._stack:
            self.problem(f"found {text!r} outside a rule", "a rule is: name ::= body, on one line")
            return
        self._after_bar = kind == "bar"
        self._parts[kind](text)

    def _begin_rule(self) -> None:
        name, self._pending = self._pending, None
        if name is None:
            self.problem("'::=' has no name before it", "a rule is: name ::= body, on one line")
            return
        rule = Rule(name, self._line, name)
        self._stack = [rule]
        self._after_bar = True
        if not _NAME.fullmatch(name):
            self.problem(
                f"the rule name {name!r} is not read everywhere",
                "use lower-case letters, digits and dashes, with a letter first",
            )
        if name in self.rules:
            self.problem(
                f"it is defined twice, first in line {self.rules[name].line}",
                "give each rule one definition",
            )
        else:
            self.rules[name] = rule

    def _end_rule(self) -> None:
        if self._pending is not None:
            self.problem(f"{self._pending!r} is no rule", "a rule is: name ::= body, on one line")
            self._pending = None
        if len(self._stack) > 1:
            self.problem("a parenthesis is not closed", "add ')'")
        if self._stack:
            self._end_alternative(self._stack[-1])
        self._stack = []

    def _end_alternative(self, rule: Rule) -> None:
        if not rule.alternatives[-1]:
            self.problem("an alternative is empty", "write ( ... )? for what may be left out")

    def _add(self, ref: str | None, blank: bool) -> None:
        self._stack[-1].alternatives[-1].append(Item(ref, blank, 1, 1))

    def _literal(self, text: str) -> None:
        if "\\" in text:
            self._check_escapes(text)
        self._add(None, not text)

    def _klass(self, text: str) -> None:
        if "\\" in text:
            self._check_escapes(text)
        if text in ("", "^"):
            self.problem("a character class is empty", "name at least one character")
        inner = text[1:] if text.startswith("^") else text
        if "-" in inner[:1] and len(inner) > 1:
            self.problem("a class begins with '-'", "put '-' last in a class")
        self._add(None, False)

    def _check_escapes(self, text: str) -> None:
        for match in _BAD_ESCAPE.finditer(text.replace("\\\\", "  ")):
            self.problem(
                f"the escape {match[0]!r} is not read everywhere",
                r"write the character itself, or \xNN; of escapes use \n \r \t \" \\ \[ \]",
            )

    def _open(self, text: str) -> None:
        self._groups += 1
        owner = self._stack[0]
        group = Rule(f"{owner.name} ({self._groups})", self._line, owner.name)
        self.rules[group.name] = group
        self._add(group.name, False)
        self._stack.append(group)
        if len(self._stack) == _DEEPEST + 2:
            self.problem(
                f"parentheses are nested more than {_DEEPEST} deep", "give the inner part a name"
            )

    def _close(self, text: str) -> None:
        if len(self._stack) == 1:
            self.problem("')' closes nothing", "take it out, or open the group before")
            return
        group = self._stack.pop()
        self._end_alternative(group)
        self._stack[-1].cost += group.cost

    def _bar(self, text: str) -> None:
        self._end_alternative(self._stack[-1])
        self._stack[-1].alternatives.append([])

    def _token(self, text: str) -> None:
        self.problem(
            f"the token reference {text} is read by llama.cpp alone", "write the text of the token"
        )
        self._add(None, False)

    def _dot(self, text: str) -> None:
        self.problem("'.' is not read everywhere", r"write a class, such as [^\n]")
        self._add(None, False)

    def _repeat(self, text: str) -> None:
        rule = self._stack[-1]
        items = rule.alternatives[-1]
        if not items:
            self.problem(f"{text} repeats nothing", "put it behind a text, a class or a rule")
            return
        item = items[-1]
        if (item.least, item.most) != (1, 1):
            self.problem(f"{text} repeats a repetition", "put the inner one in a rule of its own")
            return
        bounds = _bounds(text)
        if bounds is None:
            self.problem(
                f"the repetition {text} cannot be read", "write {n}, {m,n} with m <= n, or {m,}"
            )
            return
        least, most = bounds
        items[-1] = Item(item.ref, item.blank, least, most)
        times = max(least, most or 0)
        # llama.cpp makes a rule for each of them and refuses 2000; above, it may forget the bound.
        inner = self.rules[item.ref].cost if item.ref and " " in item.ref else 1
        if times * inner >= _LARGEST:
            self.problem(
                f"the repetition {text} is too large"
                + (f" for what it repeats ({inner} parts)" if inner > 1 else ""),
                f"stay below {_LARGEST}, parts of a group counted; give the repeated group a name",
            )
        rule.cost += times - least + 1 if most is not None else 1


def _bounds(text: str) -> tuple[int, int | None] | None:
    if text in "?*+":
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[text]
    match = _BOUNDS.fullmatch(text)
    if match is None:
        return None
    least, most = int(match[1][:9]), int(match[3][:9]) if match[3] else None
    if "," not in match[2]:
        return (least, least) if most is None else None
    return None if most is not None and most < least else (least, most)
