"""Two contracts and a tool class for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.core.contract import ToolContract


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
