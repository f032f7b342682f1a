"""Twenty small tasks with known outcomes, and the folder that they are about."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from runner.agent import RunResult

FILES = {
    "notes.txt": (
        "Buy milk\nCall the dentist on Friday\nFix the bike\nRead chapter seven\nWater plants\n"
    ),
    "inventory.csv": "item,count\nbolts,120\nnuts,340\nwashers,75\n",
    "server.log": (
        "09:00 INFO service started\n09:14 WARNING disk 81 percent full\n"
        "09:20 ERROR cannot reach database db-7\n09:21 INFO retry\n09:22 INFO connected\n"
    ),
    "docs/readme.md": "# Orion\nOrion is the billing service. Its port is 8443.\n",
}


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes
    ----------
    expected
        Regular expressions; all must be found in the answer, in any case.
    uses
        Tools of which at least one call must have succeeded, each.
    needs_none
        Whether the task must be answered without any call.
    """

    name: str
    prompt: str
    expected: tuple[str, ...]
    uses: tuple[str, ...] = ()
    needs_none: bool = False

    def solved_by(self, result: RunResult) -> bool:
        """Whether a run came to the known outcome in a valid way."""
        if result.status != "answered" or result.answer is None:
            return False
        good = {r.call.name for r in result.calls if r.error is None}
        if not set(self.uses) <= good or (self.needs_none and result.calls):
            return False
        answer = result.answer.replace(",", "")
        return all(re.search(pattern, answer, re.IGNORECASE) for pattern in self.expected)


def tasks(now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> Sequence[Task]:
    """The twenty tasks; those about the date expect today's."""
    today = now()
    calculator, clock = ("calculator",), ("get_time",)
    return (
        Task("multiply", "What is 123 multiplied by 456?", ("56088",), calculator),
        Task("add", "What is 1984 plus 2077?", ("4061",), calculator),
        Task("power", "Calculate 2 to the power of 20.", ("1048576",), calculator),
        Task("divide", "Divide 1001 by 13.", (r"\b77\b",), calculator),
        Task("root", "What is the square root of 1764?", (r"\b42\b",), calculator),
        Task("percent", "How much is 15 percent of 640?", (r"\b96\b",), calculator),
        Task("story", "A box holds 24 cans. How many cans are in 17 boxes?", ("408",), calculator),
        Task("date", "What is today's date?", (_date(today),), clock),
        Task("weekday", "Which day of the week is it today?", (f"{today:%A}",), clock),
        Task(
            "product-and-time",
            "What is 123 multiplied by 456, and what time is it now?",
            ("56088", r"\d{1,2}:\d\d"),
            ("calculator", "get_time"),
        ),
        Task(
            "two-products",
            "Compute 37 * 41 and 58 * 63. Tell me both results.",
            ("1517", "3654"),
            calculator,
        ),
        Task(
            "list",
            "Which files are in this folder?",
            ("notes\\.txt", "inventory\\.csv"),
            ("list_files",),
        ),
        Task("list-docs", "List the files in the folder docs.", ("readme\\.md",), ("list_files",)),
        Task("read", "What does notes.txt say about Friday?", ("dentist",), ()),
        Task("lines", "How many lines does notes.txt have?", (r"\b(5|five)\b",), ()),
        Task("csv", "How many nuts are there according to inventory.csv?", ("340",), ()),
        Task("nested", "Which port does docs/readme.md mention?", ("8443",), ()),
        Task("search", "Search the files for the word ERROR. What went wrong?", ("database",), ()),
        Task("greeting", "Hello! How are you?", (r"\w",), needs_none=True),
        Task("thanks", "Thank you, that is all for today.", (r"\w",), needs_none=True),
    )


def make_workspace(folder: Path) -> None:
    """Write `FILES` into ``folder``."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _date(day: datetime) -> str:
    """A pattern for the usual spellings of a date."""
    month, number, year = f"({day:%B}|{day:%b}|0?{day.month})", rf"\b0?{day.day}", f"{day.year}"
    orders = (
        f"{year}.{month}.{number}",
        f"{month}.*{number}.*{year}",
        f"{number}.*{month}.*{year}",
    )
    return "|".join(orders)
