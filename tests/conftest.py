"""What all tests share: contracts, tools and a place for transcripts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from simple_tools import ADD, SEARCH, SimpleTool

from runner.core.contract import Limits
from runner.core.errors import ToolError

# A busy machine is no fault of the code: no test is timed.
settings.register_profile("runner", deadline=None)
settings.load_profile("runner")
# No test finds what another has left on disk; tests of that have a folder of their own.
os.environ["RUNNER_STATE_CACHE_MB"] = "0"


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes a transcript outside its own folder."""
    monkeypatch.setenv("RUNNER_RECORDS", str(tmp_path / "records"))


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Child processes must see SIGINT, also where the tests run in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def add() -> SimpleTool:
    return SimpleTool(ADD, lambda params: str(params["a"] + params["b"]))


@pytest.fixture
def add_twice_only() -> SimpleTool:
    contract = ADD.model_copy(update={"limits": Limits(max_calls=2)})
    return SimpleTool(contract, lambda params: str(params["a"] + params["b"]))


@pytest.fixture
def search() -> SimpleTool:
    def find(params: dict[str, Any]) -> str:
        if params["query"] == "nothing":
            raise ToolError("nothing found", hint="try a wider word")
        return f"3 books about {params['query']}"

    return SimpleTool(SEARCH, find)
