"""The grammar of a turn: fixed rules from `grammars/`, and one rule for each tool."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runner.core.contract import ToolContract
from runner.protocol.grammar_files import gbnf_rules, names_in
from runner.protocol.json_schema import SchemaRules, literal


@dataclass(frozen=True)
class Grammar:
    """GBNF text with the start rule ``root``, and what it does not enforce.

    ``notes`` are sentences for the user, one for each weakened parameter.
    """

    text: str
    notes: tuple[str, ...] = ()


def tool_grammar(tools: Sequence[ToolContract], *, max_calls: int = 4, thought: bool = True) -> str:
    """GBNF text for one turn; see `build_grammar`."""
    return build_grammar(tools, max_calls=max_calls, thought=thought).text


def build_grammar(
    tools: Sequence[ToolContract], *, max_calls: int = 4, thought: bool = True
) -> Grammar:
    """The grammar of one turn.

    Parameters
    ----------
    tools
        What may be called now; with none (or ``max_calls=0``) only an answer is left.
    max_calls
        Most ACTION lines in the turn.
    thought
        Whether one THOUGHT line may come first.

    Raises
    ------
    ConfigError
        A schema refers to something that is not in it.
    """
    rules: dict[str, str] = {}
    notes: list[str] = []
    calls = []
    for number, tool in enumerate(tools, start=1):
        name = f"tool-{number}-{_slug(tool.name)}"
        schema = SchemaRules(name, tool.parameters)
        params = schema.rule_for(tool.parameters)
        head = literal(f'{{"tool": {json.dumps(tool.name, ensure_ascii=False)}, "params": ')
        rules[name] = f'{head} {params} "}}"'
        rules |= schema.rules
        calls.append(name)
        notes += [
            f"tool {tool.name!r}, parameter {place!r}: {keyword!r} is not enforced by the grammar, "
            "it is checked after"
            for place, keyword in schema.notes
        ]
    body = "answer"
    if calls and max_calls > 0:
        rules["call"] = " | ".join(calls)
        more = f' ( "\\n" action ){{0,{max_calls - 1}}}' if max_calls > 1 else ""
        # Many vocabularies have one token for the closing braces and the line break.
        rules["actions"] = f'action{more} "\\n"?'
        body = "( actions | answer )"
    rules = {"root": f"{'thought? ' if thought else ''}{body}", **rules}
    fixed = gbnf_rules("protocol.gbnf") | gbnf_rules("json.gbnf")
    return Grammar(_reachable(rules, fixed), tuple(dict.fromkeys(notes)))


def _slug(name: str) -> str:
    """Part of a rule name that a reader recognises; the number before it keeps names apart."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32] or "x"


def _reachable(rules: dict[str, str], fixed: dict[str, str]) -> str:
    known = fixed | rules
    order: dict[str, None] = {}
    waiting = ["root"]
    while waiting:
        name = waiting.pop(0)
        if name in order:
            continue
        order[name] = None
        waiting += sorted(names_in(known[name]) - set(order), key=list(known).index)
    return "".join(f"{name} ::= {known[name]}\n" for name in order)
