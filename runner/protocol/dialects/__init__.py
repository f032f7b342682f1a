"""How turns are spelled: one file for each dialect.

Another package adds a dialect with a file of its own and an entry point in the group
``runner.dialects``, whose name is the dialect's and whose object is an instance of `Dialect`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from runner.core.errors import ConfigError
from runner.protocol.dialects.action import ACTION
from runner.protocol.dialects.base import Dialect
from runner.protocol.dialects.hermes import HERMES

__all__ = ["ACTION", "DIALECTS", "HERMES", "Dialect", "find_dialect"]

ENTRY_POINTS = "runner.dialects"
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ACTION, HERMES)}


def find_dialect(name: str) -> Dialect:
    """The dialect of that name: a built-in one, or one that another package registered.

    Raises
    ------
    ConfigError
        There is none, or what is registered is no dialect.
    """
    if name in DIALECTS:
        return DIALECTS[name]
    others = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name not in others:
        raise ConfigError(
            f"there is no dialect {name!r}",
            hint=f"known: {', '.join(sorted([*DIALECTS, *others]))}; see docs/protocol.md",
        )
    try:
        dialect = others[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"the dialect {name!r} ({others[name].value}) cannot be loaded: {error}",
            hint=f"correct the entry point in the group {ENTRY_POINTS!r} of its package",
        ) from error
    if not isinstance(dialect, Dialect):
        raise ConfigError(
            f"the dialect {name!r} ({others[name].value}) is a {type(dialect).__name__}",
            hint="it must be an instance of runner.protocol.dialects.Dialect",
        )
    if dialect.name != name:
        raise ConfigError(
            f"the dialect {name!r} ({others[name].value}) calls itself {dialect.name!r}",
            hint="its entry point and its attribute `name` must be the same",
        )
    DIALECTS[name] = dialect
    return dialect
