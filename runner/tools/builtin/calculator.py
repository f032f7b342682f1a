"""``calculator``: arithmetic, exact where it can be, without running any code."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runner.core.contract import Demonstration
from runner.core.errors import ErrorKind
from runner.tools.builtin.arithmetic import calculate
from runner.tools.builtin.text import longest
from runner.tools.function import tool


@tool(
    examples=[{"expression": "17 * 4 + 3"}, {"expression": "sqrt(2) / 5"}],
    demonstration=Demonstration(
        task="What is 17.5 times 12?",
        params={"expression": "17.5 * 12"},
        result="210",
        answer="17.5 times 12 is 210.",
    ),
    errors=(ErrorKind.INVALID_INPUT, ErrorKind.TOO_LARGE),
)
def calculator(
    expression: Annotated[
        str,
        Field(
            description="numbers, + - * / // % **, sqrt(), round() ...",
            json_schema_extra=longest(300),
        ),
    ],
) -> str:
    """Calculate an arithmetic expression."""
    return calculate(expression)
