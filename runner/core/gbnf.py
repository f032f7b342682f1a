"""Checks GBNF text: is it what llama.cpp, llguidance and xgrammar all read, and does it end?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from runner.core.errors import GrammarError
from runner.core.gbnf_text import Item, Problem, Reader, Rule

_LARGEST_TEXT = 1_000_000


def check_gbnf(text: str) -> None:
    """Raise where a grammar cannot be relied on; see `gbnf_problems`.

    Raises
    ------
    GrammarError
        The first problem, with its line and rule, and how many more there are.
    """
    problems = gbnf_problems(text)
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise GrammarError(f"the grammar cannot be used: {first}{more}", hint=first.hint)


def gbnf_problems(text: str) -> list[Problem]:
    """All that is wrong with a grammar, in the order of its lines; empty for a good one.

    Held against it: what is no GBNF; what llama.cpp, llguidance or xgrammar do not read, or read
    in different ways; rules that are missing, never end, or begin with themselves; repetitions
    that grow out of bounds. The start rule is ``root``. Time grows with the length of the text.
    """
    if len(text) > _LARGEST_TEXT:
        message = f"it has {len(text)} characters, more than {_LARGEST_TEXT}"
        return [Problem(1, "", message, "offer fewer tools, or simpler parameters")]
    reader = Reader(text)
    rules = reader.rules
    problems = [*reader.problems, *_missing(rules)]
    nullable = _closure(rules, _when_empty)
    problems += _endless(rules)
    problems += _repeated_nothing(rules, nullable)
    problems += _left_recursive(rules, nullable)
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line)


def _missing(rules: dict[str, Rule]) -> Iterator[Problem]:
    if "root" not in rules:
        yield Problem(1, "", "there is no rule 'root'", "name the start rule 'root'")
    for rule in rules.values():
        for item in _items(rule):
            if item.ref is not None and item.ref not in rules:
                yield Problem(
                    rule.line,
                    rule.owner,
                    f"it refers to {item.ref!r}, which is not defined",
                    "define the rule, or correct the name",
                )


def _endless(rules: dict[str, Rule]) -> Iterator[Problem]:
    ending = _closure(rules, lambda item: item.ref or "" if item.least else "")
    for rule in rules.values():
        if rule.name in ending or rule.name != rule.owner:
            continue
        # A missing rule was reported as such; only what could be written is of interest here.
        if all(item.ref is None or item.ref in rules for item in _items(rule)):
            yield Problem(
                rule.line,
                rule.name,
                "it can never end: every alternative needs the rule itself",
                "add an alternative without it",
            )


def _repeated_nothing(rules: dict[str, Rule], nullable: set[str]) -> Iterator[Problem]:
    for rule in rules.values():
        for item in _items(rule):
            if item.most is None and (item.blank or item.ref in nullable):
                yield Problem(
                    rule.line,
                    rule.owner,
                    "something that may be empty is repeated without a bound",
                    "let what is repeated have at least one character",
                )


def _left_recursive(rules: dict[str, Rule], nullable: set[str]) -> Iterator[Problem]:
    """Rules that begin with themselves, found as cycles of what a rule may begin with."""
    first: dict[str, list[str]] = {}
    for rule in rules.values():
        begins: dict[str, None] = {}
        for alternative in rule.alternatives:
            for item in alternative:
                if item.ref in rules:
                    begins[item.ref] = None
                if item.least and not item.blank and item.ref not in nullable:
                    break
        first[rule.name] = list(begins)
    done: set[str] = set()
    for start in first:
        path: dict[str, Iterator[str]] = {}
        if start not in done:
            path[start] = iter(first[start])
        while path:
            name = next(reversed(path))
            following = next(path[name], None)
            if following is None:
                path.pop(name)
                done.add(name)
            elif following in path:
                rule = rules[rules[following].owner]
                yield Problem(
                    rule.line,
                    rule.name,
                    "it begins with itself (left recursion)",
                    "write a repetition instead: item ( separator item ){0,n}",
                )
            elif following not in done:
                path[following] = iter(first[following])


@dataclass
class _Open:
    """An alternative of a rule that still misses something."""

    rule: str
    missing: int


def _when_empty(item: Item) -> str | None:
    """The rule that must be empty for the item to be empty, if any; None where it never is."""
    return "" if item.least == 0 or item.blank else item.ref


def _closure(rules: dict[str, Rule], needs: Callable[[Item], str | None]) -> set[str]:
    """Rules of which an alternative has all that it needs, from the bottom up."""
    waiting: dict[str, list[_Open]] = defaultdict(list)
    found: set[str] = set()
    ready: list[str] = []
    for rule in rules.values():
        for alternative in rule.alternatives:
            wanted = [needs(item) for item in alternative]
            if None not in wanted:
                needed = {name for name in wanted if name}
                if not needed:
                    ready.append(rule.name)
                    break
                entry = _Open(rule.name, len(needed))
                for name in needed:
                    waiting[name].append(entry)
    while ready:
        name = ready.pop()
        if name in found:
            continue
        found.add(name)
        for entry in waiting.pop(name, ()):
            entry.missing -= 1
            if entry.missing == 0:
                ready.append(entry.rule)
    return found


def _items(rule: Rule) -> Iterable[Item]:
    return (item for alternative in rule.alternatives for item in alternative)
