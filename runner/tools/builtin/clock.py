"""``get_time``: the date, time and weekday."""

from __future__ import annotations

import difflib
import functools
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import datetime, timezone, tzinfo
from typing import Annotated

from pydantic import Field

from runner.core.contract import Demonstration
from runner.core.errors import ErrorKind, ToolError
from runner.tools.builtin.text import longest
from runner.tools.function import FunctionTool, tool


class Clock:
    """Tells the time.

    Parameters
    ----------
    now
        Gives the present moment as an aware datetime; for tests.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> None:
        self._now = now

    def get_time(
        self,
        timezone: Annotated[
            str | None,
            Field(
                description="such as UTC or Europe/Paris; default is local",
                json_schema_extra=longest(60),
            ),
        ] = None,
    ) -> str:
        """Get the current date, time and weekday."""
        name = (timezone or "").strip()
        if name.casefold() in ("", "local"):
            moment, label = self._now().astimezone(), ""
        else:
            label, zone = _zone(name)
            moment = self._now().astimezone(zone)
        offset = moment.strftime("%z")
        offset = f"UTC{offset[:3]}:{offset[3:5]}" if moment.utcoffset() else "UTC"
        where = offset if label in ("", "UTC") else f"{label} {offset}"
        return f"{moment:%Y-%m-%d %H:%M:%S} {where} ({_WEEKDAYS[moment.weekday()]})"


# strftime's %A would follow the locale of the process.
_ALIKE = 0.75
_SHORTEST_GUESSED = 4  # PST is not nearly MST
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def clock_tool(clock: Clock | None = None) -> FunctionTool:
    """The tool ``get_time``, reading ``clock``."""
    return tool(
        examples=[{}, {"timezone": "Asia/Tokyo"}],
        demonstration=Demonstration(
            task="What time is it?",
            params={},
            result="2024-03-05 16:20:11 UTC (Tuesday)",
            answer="It is 16:20.",
        ),
        errors=(ErrorKind.INVALID_INPUT, ErrorKind.NOT_FOUND),
    )((clock or Clock()).get_time)


get_time = clock_tool()


def _zone(name: str) -> tuple[str, tzinfo]:
    """Canonical name and zone for a name in any case, with spaces or underscores.

    Raises
    ------
    ToolError
        There is no such zone; the message names close ones.
    """
    key = name.replace(" ", "_").casefold()
    if key in ("utc", "z"):
        return "UTC", timezone.utc
    zones = _zones()
    if key in zones:
        return zones[key], zoneinfo.ZoneInfo(zones[key])
    close = _close(key, zones)
    advice = f"did you mean {' or '.join(close)}?" if close else "use UTC or a name like Asia/Tokyo"
    raise ToolError(f"there is no time zone {name[:60]!r}; {advice}", kind=ErrorKind.NOT_FOUND)


def _close(key: str, zones: Mapping[str, str]) -> list[str]:
    # Etc/GMT+2 is two hours west of Greenwich: too easy to mistake to be suggested.
    names = {folded: name for folded, name in zones.items() if not folded.startswith("etc/")}
    city = key.rpartition("/")[2]
    cities: dict[str, str] = {}
    for folded, name in sorted(names.items()):
        cities.setdefault(folded.rpartition("/")[2], name)
    if city in cities:
        return [cities[city]]
    if len(key) < _SHORTEST_GUESSED or not key.replace("/", "").replace("_", "").isalpha():
        return []
    close = [names[match] for match in difflib.get_close_matches(key, names, 2, _ALIKE)]
    return close or [cities[match] for match in difflib.get_close_matches(city, cities, 2, _ALIKE)]


@functools.cache
def _zones() -> Mapping[str, str]:
    return {name.casefold(): name for name in zoneinfo.available_timezones()}
