"""Evaluates arithmetic over a short list of operators and functions, within fixed bounds.

Works on Python's syntax tree and runs no code.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings

from runner.core.errors import ErrorKind, ToolError
from runner.tools.builtin.operations import (
    CONSTANTS,
    FUNCTIONS,
    OPERATORS,
    Number,
    applied,
    checked,
    invalid,
    too_large,
)
from runner.tools.builtin.text import one_line

MAX_CHARS = 500
MAX_DEPTH = 40

_EXACT_FLOAT = 2**53
_SPELLINGS = str.maketrans({"×": "*", "⋅": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_TIMES_X = re.compile(r"[\d)] ?[xX] ?[\d(]")
_THOUSANDS = re.compile(r"(?<![\w.])\d{1,3}(,\d{3})+(?![\w.])")


def calculate(expression: str) -> str:
    """The value of ``expression`` as text: whole numbers exactly, others to 15 digits.

    Raises
    ------
    ToolError
        ``invalid_input`` where it is not arithmetic or has no value, ``too_large`` where it or
        its value goes beyond the bounds.
    """
    if len(expression) > MAX_CHARS:
        raise too_large(f"the expression is longer than {MAX_CHARS} characters; split it up")
    text = " ".join(expression.translate(_SPELLINGS).split())
    text = _PERCENT_OF.sub(r"(\1 / 100) * ", text)
    try:
        return _shown(_value(_parsed(text), 0))
    except ToolError as error:
        if error.kind is ErrorKind.INVALID_INPUT and _THOUSANDS.search(text):
            raise invalid(f"{error}; write 2000, not 2,000") from error
        raise


# "15% of 80" and "15% * 80" can mean one thing only; "200 + 15%" cannot.
_PERCENT_OF = re.compile(r"(\d+(?:\.\d+)?) ?% ?(?:\*(?!\*)|of\b) ?")


def _parsed(text: str) -> ast.expr:
    if not text:
        raise invalid("the expression is empty; write arithmetic such as (2 + 3) * 4")
    if "#" in text:
        raise invalid("comments are not possible; write only arithmetic such as (2 + 3) * 4")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError) as error:
        raise too_large("the expression is nested too deeply; split it up") from error
    except (SyntaxError, ValueError) as error:
        advice = "write arithmetic such as (2 + 3) * 4"
        if "%" in text:
            advice = "% is the remainder; for 15 percent of 80 write 0.15 * 80"
        elif "=" in text:
            advice = "leave out the = and write one side only"
        elif _TIMES_X.search(text):
            advice = "write * to multiply"
        raise invalid(f"cannot read {_quoted(text)}; {advice}") from error


def _value(node: ast.expr, depth: int) -> Number:
    if depth > MAX_DEPTH:
        raise too_large("the expression is nested too deeply; split it up")
    if isinstance(node, ast.BinOp):
        return _chain(node, depth)
    if isinstance(node, ast.UnaryOp):
        return _unary(node, depth)
    if isinstance(node, ast.Call):
        return _call(node, depth)
    if isinstance(node, ast.Constant):
        return _literal(node.value)
    name = _name(node)
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name in FUNCTIONS:
        raise invalid(f"{name} is a function; write {name}(...) with numbers in the brackets")
    if name is not None:
        raise _unknown(name)
    what = _REFUSED.get(type(node), "this")
    raise invalid(f"{what} not possible; use numbers, + - * / // % **, brackets, sqrt() and so on")


def _literal(value: object) -> Number:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return checked(value)
    kind = "text" if isinstance(value, (str, bytes)) else repr(value)
    raise invalid(f"{kind} is not possible here; only numbers are")


def _chain(node: ast.BinOp, depth: int) -> Number:
    """A chain such as 1 + 2 + 3 leans to the left: it is folded in a loop, however long it is."""
    links = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        links.append((first.op, first.right))
        first = first.left
    value = _value(first, depth + 1)
    for symbol, right in reversed(links):
        operation = OPERATORS.get(type(symbol))
        if operation is None:
            raise invalid("only the operators + - * / // % ** are possible")
        value = applied(operation, (value, _value(right, depth + 1)))
    return value


def _unary(node: ast.UnaryOp, depth: int) -> Number:
    if isinstance(node.op, ast.USub):
        return -_value(node.operand, depth + 1)
    if isinstance(node.op, ast.UAdd):
        return _value(node.operand, depth + 1)
    raise invalid("only the operators + - * / // % ** are possible")


def _call(node: ast.Call, depth: int) -> Number:
    name = _name(node.func)
    if name is None:
        raise invalid("write * to multiply: 2 * (3 + 4), not 2(3 + 4)")
    if name in CONSTANTS:
        raise invalid(f"{name} is a number; write * to multiply: {name} * (...)")
    if name not in FUNCTIONS:
        raise _unknown(name)
    function = FUNCTIONS[name]
    if node.keywords or any(isinstance(argument, _NOT_PLAIN) for argument in node.args):
        raise invalid(f"{name}() takes plain numbers only; write for example {function.example}")
    count = len(node.args)
    if not function.least <= count <= function.most:
        numbers = "1 number" if count == 1 else f"{count} numbers"
        raise invalid(f"{name}() does not take {numbers}; write for example {function.example}")
    arguments = tuple(_value(argument, depth + 1) for argument in node.args)
    try:
        return applied(function.run, arguments)
    except (TypeError, ValueError) as error:
        given = ", ".join(_brief(argument) for argument in arguments)
        reason = "needs whole numbers" if function.whole else "has no value"
        raise invalid(f"{name}({given}) {reason}; write for example {function.example}") from error


_NOT_PLAIN = (ast.Starred, ast.List, ast.Tuple, ast.Set)
_REFUSED: dict[type[ast.expr], str] = {
    ast.Compare: "comparisons are",
    ast.BoolOp: "and / or are",
    ast.IfExp: "conditions are",
    ast.Lambda: "functions of your own are",
    ast.NamedExpr: "variables are",
    ast.JoinedStr: "text is",
    ast.Tuple: "several expressions at once are",
    ast.List: "lists are",
    ast.Set: "sets are",
    ast.Dict: "dictionaries are",
    ast.Attribute: "a dot with a name is",
    ast.Subscript: "square brackets are",
}


def _name(node: ast.expr) -> str | None:
    """``sqrt`` for both ``sqrt`` and ``math.sqrt``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        known = node.attr in FUNCTIONS or node.attr in CONSTANTS
        return node.attr if node.value.id == "math" and known else None
    return None


def _unknown(name: str) -> ToolError:
    close = difflib.get_close_matches(name[:60].lower(), [*FUNCTIONS, *CONSTANTS], 1)
    advice = f"did you mean {close[0]}? " if close else ""
    names = ", ".join([*FUNCTIONS, "pi", "e", "tau"])
    return invalid(f"the name {_quoted(name)} is not known; {advice}known names: {names}")


def _shown(value: Number) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOAT:
        value = int(value)
    return str(value) if isinstance(value, int) else format(value, ".15g")


def _brief(value: Number) -> str:
    text = _shown(value)
    return text if len(text) <= 20 else f"{text[:17]}..."


def _quoted(text: str) -> str:
    return f'"{one_line(text, 60)}"'
