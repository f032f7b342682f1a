"""The grammar of a turn: fixed rules from `grammars/`, and one rule for each tool."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runner.core.contract import ToolContract
from runner.core.gbnf import check_gbnf, gbnf_problems
from runner.protocol.dialects import Dialect, find_dialect
from runner.protocol.grammar_files import gbnf_rules, names_in
from runner.protocol.json_schema import SchemaRules

_REMEMBERED = 64


@dataclass(frozen=True)
class Grammar:
    """GBNF text with the start rule ``root``, and what it does not enforce.

    ``notes`` are sentences for the user, one for each weakened parameter and each tool that is
    left out; ``left_out`` has the names of those tools.
    """

    text: str
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def tool_grammar(
    tools: Sequence[ToolContract],
    *,
    max_calls: int = 4,
    thought: bool = True,
    dialect: str = "action",
) -> str:
    """GBNF text for one turn; see `build_grammar`."""
    return build_grammar(tools, max_calls=max_calls, thought=thought, dialect=dialect).text


def build_grammar(
    tools: Sequence[ToolContract],
    *,
    max_calls: int = 4,
    thought: bool = True,
    dialect: str = "action",
) -> Grammar:
    """The grammar of one turn.

    Parameters
    ----------
    tools
        What may be called now; with none (or ``max_calls=0``) only an answer is left.
    max_calls
        Most calls in the turn.
    thought
        Whether a thought of one line may come first.
    dialect
        How the turn is spelled; see `runner.protocol.dialects`.

    A tool whose schema allows no params at all is left out, with a note.

    Grammars are remembered by what the contracts say, so that a loop that asks in every turn pays
    once.

    Raises
    ------
    GrammarError
        The grammar came out larger than engines take.
    ConfigError
        There is no such dialect.
    """
    find_dialect(dialect)
    content = json.dumps([(tool.name, json.dumps(tool.parameters)) for tool in tools])
    return _built(content, max_calls, thought, dialect)


@functools.lru_cache(maxsize=_REMEMBERED)
def _built(content: str, max_calls: int, thought: bool, dialect_name: str) -> Grammar:
    dialect = find_dialect(dialect_name)
    calls: dict[str, dict[str, str]] = {}
    notes: dict[str, list[str]] = {}
    tools: dict[str, str] = {}
    for number, (tool, parameters) in enumerate(json.loads(content), start=1):
        name = f"tool-{number}-{_slug(tool)}"
        tools[name] = tool
        rules, notes[name] = _tool_rules(name, tool, parameters, dialect_name)
        if rules:
            calls[name] = rules
    text = _turn(calls, max_calls, thought, dialect)
    if gbnf_problems(text):
        # Whatever is wrong with one tool, the others stay.
        for name in list(calls):
            problems = gbnf_problems(_turn({name: calls[name]}, 1, False, dialect))
            if problems:
                del calls[name]
                notes[name] = [f"tool {tools[name]!r} is left out of the grammar: {problems[0]}"]
        text = _turn(calls, max_calls, thought, dialect)
        check_gbnf(text)
    left_out = tuple(tool for name, tool in tools.items() if name not in calls)
    told = dict.fromkeys(note for about in notes.values() for note in about)
    return Grammar(text, tuple(told), left_out)


def _turn(calls: dict[str, dict[str, str]], max_calls: int, thought: bool, dialect: Dialect) -> str:
    """GBNF text for a turn with these calls: name of the rule -> all the rules it needs."""
    has_calls = bool(calls) and max_calls > 0
    rules = dialect.turn_rules(has_calls, max_calls, thought)
    if has_calls:
        rules["call"] = " | ".join(calls)
    for found in calls.values():
        rules |= found
    fixed = gbnf_rules("json.gbnf") | gbnf_rules(dialect.grammar_file)
    return _reachable(rules, fixed)


@functools.lru_cache(maxsize=4 * _REMEMBERED)
def _tool_rules(
    name: str, tool: str, parameters: str, dialect: str
) -> tuple[dict[str, str], list[str]]:
    """Rules for the calls of one tool, none where its schema allows none; and notes."""
    schema = SchemaRules(name, json.loads(parameters))
    params = schema.params()
    if params.text is None:
        return {}, [
            f"tool {tool!r} is left out of the grammar: its parameters contradict each other, "
            "no call can satisfy them"
        ]
    notes = [
        f"tool {tool!r}{f', parameter {place!r}' if place else ''}: {keyword!r} is not enforced "
        "by the grammar, it is checked after"
        for place, keyword in params.notes
    ]
    return {name: find_dialect(dialect).call_rule(tool, params.text), **schema.rules}, notes


def _slug(name: str) -> str:
    """Part of a rule name that a reader recognises; the number before it keeps names apart."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32] or "x"


def _reachable(rules: dict[str, str], fixed: dict[str, str]) -> str:
    """The rules that ``root`` needs, each followed by those that it is the first to need."""
    known = fixed | rules
    order: dict[str, None] = {}
    waiting = ["root"]
    while waiting:
        name = waiting.pop()
        if name not in order:
            order[name] = None
            waiting += reversed([n for n in names_in(known[name]) if n not in order])
    return "".join(f"{name} ::= {known[name]}\n" for name in order)
