"""The operators, functions and constants of arithmetic, each held within fixed bounds.

No integer gets more than `MAX_DIGITS` digits: powers and factorials are judged before they are
calculated, all else can at most double the digits that go in. So nothing takes noticeable time.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from runner.core.errors import ErrorKind, ToolError

Number: TypeAlias = "int | float"

MAX_DIGITS = 1000
MAX_FACTORIAL = 500
MAX_ROUND_DIGITS = 30

_MANY = 250
_MAX_BITS = int(MAX_DIGITS * math.log2(10))
_TOO_BIG = 10**MAX_DIGITS


def applied(operation: Callable[..., Number], arguments: tuple[Number, ...]) -> Number:
    """The result of one operation, where it has a real value within the bounds.

    Raises
    ------
    ToolError
        It has none. TypeError and ValueError of the operation pass through.
    """
    try:
        return checked(operation(*arguments))
    except ZeroDivisionError as error:
        raise invalid("division by zero has no value") from error
    except OverflowError as error:
        raise too_large("a number on the way is too large to calculate with") from error


def checked(value: Number) -> Number:
    """``value``, if it is a real number within the bounds.

    Raises
    ------
    ToolError
        It is not.
    """
    if isinstance(value, complex):
        raise invalid("a root of a negative number has no real value")
    if isinstance(value, float) and not math.isfinite(value):
        raise too_large("a number on the way is too large to calculate with")
    if abs(value) >= _TOO_BIG:
        raise too_large(_digits_message())
    return value


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and b and a % b == 0:
        return a // b
    return a / b


def _power(base: Number, exponent: Number) -> Number:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and exponent > 0 and (int(base).bit_length() - 1) * exponent > _MAX_BITS + 1:
        raise too_large(_digits_message())
    result: Number = base**exponent
    return result


def _root(value: Number) -> Number:
    if isinstance(value, int) and value >= 0 and math.isqrt(value) ** 2 == value:
        return math.isqrt(value)
    return math.sqrt(value)


def _factorial(value: Number) -> int:
    if value > MAX_FACTORIAL:
        raise too_large(f"factorial() goes up to {MAX_FACTORIAL}")
    return math.factorial(_whole(value))


def _whole(value: Number) -> int:
    if value != int(value):
        raise ValueError("not a whole number")
    return int(value)


def _round(value: Number, digits: Number = 0) -> Number:
    if abs(digits) > MAX_ROUND_DIGITS:
        raise invalid(f"round() goes up to {MAX_ROUND_DIGITS} digits; write round(2.345, 2)")
    return round(value, _whole(digits)) if digits else round(value)


@dataclass(frozen=True)
class Function:
    """What may be called, with how many numbers, and how that looks."""

    run: Callable[..., Number]
    example: str
    least: int = 1
    most: int = 1
    whole: bool = False


FUNCTIONS = {
    "abs": Function(abs, "abs(-5)"),
    "round": Function(_round, "round(2.345, 2)", most=2),
    "min": Function(min, "min(3, 5)", least=2, most=_MANY),
    "max": Function(max, "max(3, 5)", least=2, most=_MANY),
    "sqrt": Function(_root, "sqrt(16)"),
    "floor": Function(math.floor, "floor(2.7)"),
    "ceil": Function(math.ceil, "ceil(2.1)"),
    "pow": Function(_power, "pow(2, 10)", least=2, most=2),
    "exp": Function(math.exp, "exp(1)"),
    "log": Function(math.log, "log(8) or log(8, 2)", most=2),
    "ln": Function(math.log, "ln(8)"),
    "log2": Function(math.log2, "log2(8)"),
    "log10": Function(math.log10, "log10(1000)"),
    "sin": Function(math.sin, "sin(pi / 2)"),
    "cos": Function(math.cos, "cos(pi)"),
    "tan": Function(math.tan, "tan(pi / 4)"),
    "asin": Function(math.asin, "asin(1)"),
    "acos": Function(math.acos, "acos(1)"),
    "atan": Function(math.atan, "atan(1)"),
    "radians": Function(math.radians, "radians(90)"),
    "degrees": Function(math.degrees, "degrees(pi)"),
    "hypot": Function(math.hypot, "hypot(3, 4)", most=_MANY),
    "factorial": Function(_factorial, "factorial(5)", whole=True),
    "gcd": Function(
        lambda *values: math.gcd(*map(_whole, values)), "gcd(12, 18)", 2, _MANY, whole=True
    ),
    "lcm": Function(
        lambda *values: math.lcm(*map(_whole, values)), "lcm(4, 6)", 2, _MANY, whole=True
    ),
}
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "π": math.pi}
OPERATORS: dict[type[ast.operator], Callable[..., Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}


def _digits_message() -> str:
    return f"the result has more than {MAX_DIGITS} digits; calculate with smaller numbers"


def invalid(message: str) -> ToolError:
    """The error for what is not arithmetic, or has no value."""
    return ToolError(message, kind=ErrorKind.INVALID_INPUT)


def too_large(message: str) -> ToolError:
    """The error for what goes beyond the bounds."""
    return ToolError(message, kind=ErrorKind.TOO_LARGE)
