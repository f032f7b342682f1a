"""Calls written as a name and its input: ``search {...}``, ``search(query="x")``, ReAct lines."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner.protocol.json_text import JsonObject

_LARGEST_CODE = 8_000
_NAME = r"[*_`\"']{0,3}(?P<name>[^\s\"'`\\{}\[\]:,，：()*]{1,128}?)[*_`\"']{0,3}"
_INPUT_LINE = (
    r"[*_]{0,2}(?:action[ _]?input|tool[ _]?input|input|params|parameters|arguments|args)[*_]{0,2}"
    r"\s{0,9}[:：][*_]{0,2}"
)
_NAME_AND_OBJECT = re.compile(
    rf"{_NAME}[ \t]{{0,9}}(?:[:：]|\[ARGS\]|\n\s{{0,99}}{_INPUT_LINE})?\s{{0,99}}"
    r"(?P<input>\(?\s{0,99}[{｛].*)",
    re.DOTALL | re.IGNORECASE,
)
_NAME_AND_TEXT = re.compile(
    rf"{_NAME}[ \t]{{0,9}}\n\s{{0,99}}{_INPUT_LINE}(?P<input>[^\n{{\[]+)", re.IGNORECASE
)
_NAME_ALONE = re.compile(rf"{_NAME}[ \t]{{0,9}}(?:\(\s{{0,9}}\))?")
_PYTHON_CALL = re.compile(rf"{_NAME}[ \t]{{0,9}}(?P<input>\(.+\))", re.DOTALL)
_PYTHON_NAMES = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class NamedCall:
    """A tool's name, and its input as ``json`` text or as a ``value``.

    ``cost`` is that of a `runner.core.conversation.Receipt`.
    """

    name: str
    json: str | None = None
    value: Any = None
    cost: int = 0


def named_call(text: str, known: Callable[[str], bool]) -> NamedCall | None:
    """The call that ``text`` spells with a known name, or None where it spells none.

    Raises
    ------
    ValueError
        It looks like Python code that calls a tool, with more in it than plain values.
    """
    match = _NAME_AND_OBJECT.match(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], json=match["input"].lstrip("( \t\n"))
    text = text.rstrip(" \t\n;`")
    match = _PYTHON_CALL.fullmatch(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], value=_python_input(match["input"]))
    match = _NAME_AND_TEXT.fullmatch(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], value=match["input"].strip(" \t\"'"))
    match = _NAME_ALONE.fullmatch(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], cost=1)
    return None


def _python_input(text: str) -> Any:
    """The keyword arguments of ``(key=value)`` as an object, or its only argument."""
    problem = "only name(key=value) with plain values can be read"
    if len(text) > _LARGEST_CODE:
        raise ValueError(problem)
    try:
        call = ast.parse(f"f{text}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError(problem)
        if len(call.args) > (0 if call.keywords else 1) or None in [k.arg for k in call.keywords]:
            raise ValueError(problem)
        if call.args:
            return _literal(call.args[0])
        return JsonObject([(str(k.arg), _literal(k.value)) for k in call.keywords])
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(problem) from error


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _PYTHON_NAMES:
        return _PYTHON_NAMES[node.id]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) for key in node.keys if key is not None]
        if len(keys) != len(node.keys) or not all(isinstance(key, str) for key in keys):
            raise ValueError("keys must be text")
        return JsonObject(list(zip(keys, map(_literal, node.values), strict=True)))
    value = ast.literal_eval(node)
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError("no JSON value")
    json.dumps(value, ensure_ascii=False).encode()
    return value
