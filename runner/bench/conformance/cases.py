"""One measured case, what came of it, and the table of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """What came of a case. The value is the heading of its column."""

    CORRECT = "correct"
    RESPELLED = "respelled"
    """Valid; accepted only with its keys in another order, or with 1.0 written as 1."""
    REFUSED = "refused"
    """The schema is refused with a message, so nothing was measured."""
    FREE = "either"
    """The data leave it open, or only reflect a choice of the tool that they come from."""
    ODD = "gold invalid"
    """What the data want is not valid under the schema that the data give."""
    WEAKENED = "weakened, then checked"
    """Invalid, but the grammar takes it; a note says so and the check after parsing refuses it."""
    UNCHECKED = "weakened, not checked"
    """As above, but the check after parsing takes it too."""
    STRICT = "too strict"
    LOOSE = "silently too loose"
    MISREAD = "misread"
    """Valid, and the grammar takes it, but the parser refuses it or reads something else."""
    BROKEN = "no grammar"
    """The matcher does not take the grammar that was made."""

    @property
    def fault(self) -> bool:
        """Whether no case should end like this."""
        return self in _FAULTS


_FAULTS = frozenset(
    (Outcome.UNCHECKED, Outcome.STRICT, Outcome.LOOSE, Outcome.MISREAD, Outcome.BROKEN)
)


@dataclass(frozen=True)
class Case:
    """A measured case.

    Attributes
    ----------
    group
        The row of the table that it is counted in.
    name
        Tells it from the others of its group.
    detail
        What was measured and why it ended so; for people.
    """

    group: str
    name: str
    outcome: Outcome
    detail: str = ""


def table(cases: Iterable[Case], *, unit: str = "tests") -> list[list[str]]:
    """Heading, one row for each group and the totals, as text; only columns that occur."""
    counts: dict[str, Counter[Outcome]] = {}
    total: Counter[Outcome] = Counter()
    for case in cases:
        counts.setdefault(case.group, Counter())[case.outcome] += 1
        total[case.outcome] += 1
    always = (Outcome.CORRECT, Outcome.STRICT, Outcome.LOOSE)
    columns = [outcome for outcome in Outcome if outcome in always or total[outcome]]
    rows = [["", unit, *(str(outcome.value) for outcome in columns)]]
    for name, row in [*counts.items(), ("total", total)]:
        rows.append([name, str(row.total()), *(str(row[outcome]) for outcome in columns)])
    return rows
