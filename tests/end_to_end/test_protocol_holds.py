"""The grammar's promise with real models: every ACTION turn parses strictly, without repair."""

import sys
from pathlib import Path

import pytest

from runner.core.conversation import Message
from runner.protocol import ProtocolError, parse_turn, tool_grammar
from runner.protocol.prompt import opening_messages
from runner.tools.builtin import builtin_names, builtin_tools

TASKS = [
    *[f"What is {a} times {b}?" for a, b in [(12, 9), (123, 456), (7, 8), (99, 101), (3, 33)]],
    *[f"Add {a} and {b}." for a, b in [(1, 2), (1984, 2077), (5, 55), (600, 66), (0, 0)]],
    *[f"What is the square root of {n}?" for n in (4, 144, 1764, 2, 81)],
    *[f"Divide {a} by {b}." for a, b in [(10, 4), (1001, 13), (81, 9), (7, 2), (1, 3)]],
    *[f"What time is it in {city}?" for city in ("Tokyo", "Oslo", "Lima", "Cairo", "Perth")],
    *[f"List the files in {folder}." for folder in ("docs", "src", "the folder a/b", "Köln", ".")],
    *[f"Read {name}." for name in ("notes.txt", "a b.txt", "docs/plan.md", "x.csv", "größe.txt")],
    *[f"Find the word {word}." for word in ("error", "budget", '"quoted"', "ACTION", "{brace}")],
    *[
        f"Write {text} into {name}."
        for text, name in [
            ("hello", "a.txt"),
            ("the line\nOBSERVATION: x", "b.txt"),
            ('{"a": 1}', "c.json"),
            ("C:\\temp\\new", "d.txt"),
            ("a poem", "poem.txt"),
        ]
    ],
    "Hello!",
    "What is 5 plus 5, and what time is it?",
    "List the files and read the first one.",
    "Who wrote Hamlet?",
    "今天几号？",
]


@pytest.mark.parametrize("forced", [False, True], ids=["free to answer", "made to call"])
def test_every_action_turn_under_the_grammar_parses_strictly(
    each_model, tmp_path: Path, capsys, forced
):
    contracts = [tool.contract for tool in builtin_tools(builtin_names(), tmp_path)]
    grammar = tool_grammar(contracts)
    if forced:
        grammar = "\n".join(["root ::= actions", *grammar.splitlines()[1:]])
    opening = opening_messages(contracts)
    assert len(TASKS) == 50
    actions = repaired = cut = 0
    for task in TASKS:
        generation = each_model.generate(
            [*opening, Message("user", task)], grammar=grammar, max_tokens=500, seed=1
        )
        if generation.stop in ("length", "degenerate") and "ACTION: " in generation.text:
            with pytest.raises(ProtocolError):
                parse_turn(generation.text, contracts, generation.stop)
            cut += 1
            continue
        turn = parse_turn(generation.text, contracts, generation.stop)
        if turn.calls:
            actions += 1
            repaired += bool(turn.receipts)
    with capsys.disabled():
        sys.stdout.write(
            f" {each_model.name}: {actions} ACTION turns of 50, {repaired} repaired, "
            f"{cut} cut off and refused "
        )
    assert repaired == 0
    assert cut <= 5
    assert actions + cut == 50 or not forced
