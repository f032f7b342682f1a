"""What all tests share: contracts, tools and a place for transcripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.core.contract import Limits, ToolContract
from runner.core.errors import ToolError


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes a transcript outside its own folder."""
    monkeypatch.setenv("RUNNER_RECORDS", str(tmp_path / "records"))


class SimpleTool:
    """A tool from a contract and a plain function of the params."""

    def __init__(self, contract: ToolContract, function: Callable[[dict[str, Any]], str]) -> None:
        self.contract = contract
        self.function = function
        self.inputs: list[dict[str, Any]] = []

    def __call__(self, params: dict[str, Any]) -> str:
        self.inputs.append(params)
        return self.function(params)


ADD = ToolContract.from_schema(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
SEARCH = ToolContract.from_schema(
    "search",
    "Search the library.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "exact": {"type": "boolean"},
        },
        "required": ["query"],
    },
)


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
