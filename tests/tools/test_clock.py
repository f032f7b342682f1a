"""The clock tells date, time, zone and weekday, and helps with names of zones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

import pytest

from runner.core.errors import ErrorKind, ToolError
from runner.tools.builtin.clock import Clock, clock_tool, get_time
from runner.tools.function import FunctionTool

MOMENT = datetime(2026, 12, 1, 14, 3, 22, tzinfo=timezone.utc)


@pytest.fixture
def fixed() -> FunctionTool:
    return clock_tool(Clock(now=lambda: MOMENT))


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    return move


@pytest.fixture(autouse=True)
def back_in_own_zone() -> Iterator[None]:
    yield
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2026-12-01 14:03:22 UTC (Tuesday)"),
        ("utc", "2026-12-01 14:03:22 UTC (Tuesday)"),
        ("Z", "2026-12-01 14:03:22 UTC (Tuesday)"),
        ("Europe/Berlin", "2026-12-01 15:03:22 Europe/Berlin UTC+01:00 (Tuesday)"),
        ("europe/berlin", "2026-12-01 15:03:22 Europe/Berlin UTC+01:00 (Tuesday)"),
        ("America/New York", "2026-12-01 09:03:22 America/New_York UTC-05:00 (Tuesday)"),
        ("Asia/Kolkata", "2026-12-01 19:33:22 Asia/Kolkata UTC+05:30 (Tuesday)"),
        ("Pacific/Auckland", "2026-12-02 03:03:22 Pacific/Auckland UTC+13:00 (Wednesday)"),
    ],
)
def test_it_tells_the_time_in_a_zone(fixed: FunctionTool, zone: str, text: str) -> None:
    assert fixed({"timezone": zone}) == text


@pytest.mark.parametrize(
    "params", [{}, {"timezone": None}, {"timezone": ""}, {"timezone": "local"}]
)
def test_without_a_zone_it_is_local_time(
    fixed: FunctionTool, in_zone: Callable[[str], None], params: dict[str, str]
) -> None:
    in_zone("XYZ-3")  # POSIX spelling: three hours east of Greenwich
    assert fixed(params) == "2026-12-01 17:03:22 UTC+03:00 (Tuesday)"
    in_zone("UTC0")
    assert fixed(params) == "2026-12-01 14:03:22 UTC (Tuesday)"


@pytest.mark.parametrize(
    ("zone", "meant"),
    [("Berlin", "Europe/Berlin"), ("Tokio", "Asia/Tokyo"), ("Europe/Pariss", "Europe/Paris")],
)
def test_an_unknown_zone_is_answered_with_close_ones(
    fixed: FunctionTool, zone: str, meant: str
) -> None:
    with pytest.raises(ToolError) as caught:
        fixed({"timezone": zone})
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert f"did you mean {meant}" in str(caught.value)


@pytest.mark.parametrize("zone", ["UTC+2", "PST", "Etc/GMT+99", "../../etc/passwd", "/etc", "\x00"])
def test_a_zone_that_is_not_nearly_another_is_not_guessed(fixed: FunctionTool, zone: str) -> None:
    with pytest.raises(ToolError) as caught:
        fixed({"timezone": zone})
    assert "did you mean" not in str(caught.value)
    assert "use UTC" in str(caught.value)


def test_the_tool_itself_tells_the_present() -> None:
    before = datetime.now(timezone.utc).replace(microsecond=0)
    told = datetime.strptime(get_time({"timezone": "UTC"})[:19], "%Y-%m-%d %H:%M:%S")
    assert before <= told.replace(tzinfo=timezone.utc) <= datetime.now(timezone.utc)
