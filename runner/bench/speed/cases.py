"""What is written while it is measured: tools, tasks, and the grammar of one call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from runner.core.contract import ToolContract
from runner.core.conversation import Message
from runner.protocol import tool_grammar
from runner.protocol.prompt import opening_messages


def _tool(name: str, description: str, **properties: str) -> ToolContract:
    types = {
        key: {"type": "number" if what.startswith("number") else "string", "description": what}
        for key, what in properties.items()
    }
    schema = {"type": "object", "properties": types, "required": list(types)}
    return ToolContract.from_schema(name, description, schema)


TOOLS = (
    _tool("calculator", "Evaluates arithmetic.", expression="such as 3 * (2 + 1)"),
    _tool("get_time", "Tells the time in a place.", place="a city"),
    _tool("read_file", "Reads a text file.", path="path of the file"),
    _tool("move_file", "Moves a file.", source="path as it is", target="path as it will be"),
    _tool("book_invoice", "Books an invoice.", number="its number", amount="number in euros"),
)
CALLS = (
    "What is 123 * 456?",
    "What time is it in Oslo?",
    "Read the file notes.txt",
    "How much is 17.5 percent of 2340?",
    "Show me what config/server.toml says.",
    "What time is it in Buenos Aires right now?",
    "Add 12, 15 and 99.",
    "Open README.md and tell me what it is about.",
)
COPIES = (
    "Read the file /srv/archive/2023/quarterly-reports/north-region/summary-final-v2.txt",
    "Move /var/backups/postgres/daily-2024-11-05.dump.gz to "
    "/mnt/cold-storage/postgres/daily-2024-11-05.dump.gz",
    "Book the invoice INV-2024-00017-NORTHWIND-CONSULTING over 18250.75 euros.",
    "Read the file projects/warehouse-automation/docs/requirements/acceptance-criteria.md please.",
    "Move reports/incoming/sensor_readings_station_0047.csv to "
    "reports/processed/sensor_readings_station_0047.csv",
    "What does /etc/systemd/system/multi-user.target.wants/inventory-sync.service say?",
)
QUESTIONS = (
    "Explain in five sentences what a hash table is.",
    "Tell me a short story about a lighthouse.",
    "Why is the sky blue? Answer in a few sentences.",
)
_PLACES = ("Oslo", "Lima", "Accra", "Hanoi", "Quito", "Perth", "Turin", "Nairobi")
_FOLDERS = ("docs", "src/core", "data/2024", "etc/app", "reports/q3")
_FILES = ("index.md", "main.py", "table.csv", "settings.json", "summary.txt")


def messages(task: str) -> list[Message]:
    """A whole first prompt with the tools of this file."""
    return [*opening_messages(TOOLS), Message("user", task)]


def one_call() -> str:
    """GBNF of exactly one call: no choice to answer, no place to stop early."""
    rules = tool_grammar(TOOLS, max_calls=1, thought=False).splitlines()
    return "\n".join(['root ::= "ACTION: " call', *rules[1:]])


def answer() -> str:
    """GBNF of an answer in free text."""
    return tool_grammar((), thought=False)


def many_tasks(count: int) -> Sequence[str]:
    """As many different tasks as asked for, at most 257."""
    pairs = itertools.product(_FOLDERS, _FILES)
    files = [f"{folder}/{file}" for folder, file in pairs]
    made = [
        *(f"What time is it in {place}?" for place in _PLACES),
        *(f"Read the file {file}" for file in files),
        *(f"What is {a} times {b}?" for a in range(11, 19) for b in (7, 23, 104, 0.5)),
        *(f"Move {a} to old/{a}" for a in files),
        *(f"Book the invoice {n}-{n * 7 % 90} over {n * 13 % 700}.{n % 90 + 10} euros."
          for n in range(1000, 1080)),
        *(f"How many lines does {file} have, and what is in it?" for file in files),
        *(f"Please tell me the time at the harbour of {place}." for place in _PLACES),
        *(f"Compute ({a} + {a * 3}) / {b}" for a in range(5, 32) for b in (2, 9)),
    ]  # fmt: skip
    if count > len(made):
        raise ValueError(f"expected at most {len(made)} tasks, found {count}")
    # Spread over all kinds, whatever the count.
    return [made[index * len(made) // count] for index in range(count)]
