"""Calls that change something: they run as they were written, or after somebody agreed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from runner.core.contract import Effect, ToolContract
from runner.core.conversation import ModelTurn, Receipt, ToolCall
from runner.core.errors import ProtocolError
from runner.protocol.dialects import Dialect
from runner.protocol.messages import message, speaking

GUARDED = frozenset([Effect.WRITE, Effect.EXEC])
"""Effects of calls that must not rest on a guess."""

Confirm = Callable[[ToolCall, Sequence[Receipt]], bool]
"""Asks whether a call may run as it was read; gets what had to be guessed to read it."""


def check_repairs(
    turn: ModelTurn,
    contracts: Sequence[ToolContract],
    dialect: Dialect,
    confirm: Confirm | None,
    emit: Callable[[str, dict[str, Any]], None],
) -> None:
    """Raise where reading a call that writes or executes had a cost and nobody agrees to it.

    The whole turn is refused, or all of it runs. Each question is recorded with its answer; the
    first no ends the asking.

    Parameters
    ----------
    contracts
        The tools that may be called now. Calls of others are let through: they are not run.
    dialect
        Whose words the message for the model uses.
    confirm
        None where there is nobody to ask, which is a no.
    emit
        Records the event ``call.confirmed``.

    Raises
    ------
    ProtocolError
        Of kind ``repaired``; says which call, and what was guessed.
    """
    guarded = {contract.name for contract in contracts if contract.effect in GUARDED}
    for number, call in enumerate(turn.calls, start=1):
        guesses = [r for r in turn.receipts if r.cost and r.call in ("", call.id)]
        if call.name not in guarded or not guesses:
            continue
        what = [receipt.what for receipt in guesses]
        if confirm is not None:
            # A copy, so that what was asked about is what runs.
            granted = confirm(copy.deepcopy(call), guesses)
            asked = {"id": call.id, "name": call.name, "input": call.input, "what": what}
            emit("call.confirmed", {**asked, "granted": granted})
            if granted:
                continue
        with speaking(dialect):
            text = message("loop", "repaired", number=number, tool=call.name, what="; ".join(what))
        raise ProtocolError(text, kind="repaired", tool=call.name)
