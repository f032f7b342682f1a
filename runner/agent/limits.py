"""Bounds of a run. Each knows what is ``used`` and what is ``remaining``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from runner.core.contract import ToolContract
from runner.core.conversation import ModelTurn
from runner.core.errors import ErrorKind, ProtocolError, ToolError
from runner.protocol.messages import message


class TurnLimit:
    """At most ``most`` turns."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    @property
    def remaining(self) -> int:
        return self.most - self.used

    def take(self) -> bool:
        """Begin a turn; False when none is left."""
        if self.remaining <= 0:
            return False
        self.used += 1
        return True


def check_number_of_calls(turn: ModelTurn, most: int) -> None:
    """Raise `ProtocolError` where a turn has more than ``most`` calls."""
    if len(turn.calls) > most:
        text = message("errors", "too_many", found=len(turn.calls), most=most)
        raise ProtocolError(text, kind="too_many")


class CallLimits:
    """Calls for each tool: the contract's own bound, or the run's where it gives one.

    Parameters
    ----------
    most
        Tool name -> most calls in this run; overrides the contract.
    """

    def __init__(
        self, contracts: Sequence[ToolContract], most: Mapping[str, int] | None = None
    ) -> None:
        self._most = {tool.name: tool.limits.max_calls for tool in contracts} | dict(most or {})
        self.used: Counter[str] = Counter()

    def remaining(self, name: str) -> int | None:
        """Calls that ``name`` has left; None for no bound."""
        most = self._most[name]
        return None if most is None else max(0, most - self.used[name])

    def take(self, name: str) -> int:
        """Count a call and return its number, from 1.

        Raises
        ------
        ToolError
            None is left; the message is for the model.
        """
        if self.remaining(name) == 0:
            text = message("loop", "no_calls_left", tool=name, limit=self._most[name])
            raise ToolError(text, kind=ErrorKind.LIMIT)
        self.used[name] += 1
        return self.used[name]

    def open(self, contracts: Sequence[ToolContract]) -> list[ToolContract]:
        """The contracts that may still be called."""
        return [tool for tool in contracts if self.remaining(tool.name) != 0]
