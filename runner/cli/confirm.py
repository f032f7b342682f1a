"""Asks at the terminal whether a call may run that had to be repaired."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.core.conversation import Receipt, ToolCall


def can_ask() -> bool:
    """Whether somebody sits there: stdin and stderr are both a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(call: ToolCall, receipts: Sequence[Receipt]) -> bool:
    """Show a call and what was guessed in it, and ask. Anything but yes is a no, so is Ctrl-D."""
    lines = [
        f"   {call.name} changes something, and part of the call had to be guessed:",
        *(f"   - {receipt.what}" for receipt in receipts),
        f"   {call.name} {json.dumps(call.input, ensure_ascii=False)}",
        "   Run it as it stands here? No lets the model write it again. [y/N] ",
    ]
    sys.stderr.write("\n".join(map(_visible, lines)))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _visible(line: str) -> str:
    """``line`` with what a terminal would not show, or would obey, written as escapes."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line)
