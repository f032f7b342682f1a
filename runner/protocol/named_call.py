"""Calls written as a name and its input: ``search {...}``, ``search(query="x")``, ReAct lines."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner.protocol.json_text import JsonNumber, JsonObject, integer, strict_json, strict_json_at
from runner.protocol.messages import message
from runner.protocol.relaxed import ENDS_EARLY, read_relaxed_at
from runner.protocol.relaxed_words import is_placeholder

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
_PROBLEM = "only name(key=value) with plain values can be read"
_NOT_PYTHON = (
    SyntaxError, ValueError, TypeError, RecursionError, MemoryError, tokenize.TokenError
)  # fmt: skip
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
        It looks like Python code that calls a tool, with more in it than plain values; or the
        input was cut off, says two things or nothing.
    """
    match = _NAME_AND_OBJECT.match(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], json=_whole(match["input"].lstrip("( \t\n")))
    text = text.rstrip(" \t\n;`")
    match = _PYTHON_CALL.fullmatch(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], value=_python_input(match["input"]))
    match = _NAME_AND_TEXT.fullmatch(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], value=_text_input(match["input"].strip()))
    match = _NAME_ALONE.fullmatch(text)
    if match is not None and known(match["name"]):
        return NamedCall(match["name"], cost=1)
    return None


def _whole(text: str) -> str:
    """``text``, whose brackets are all closed: in an input on its own, the last keys may lack."""
    try:
        strict_json_at(text, 0)
    except ValueError:
        try:
            read_relaxed_at(text, 0)
        except ValueError as error:
            if str(error) == ENDS_EARLY:
                raise ValueError(message("details", "ends")) from error
    return text


def _text_input(text: str) -> str:
    """What the text on an input line says, without the quotes around the whole of it."""
    quote, inner = text[:1], text[1:-1]
    if is_placeholder(text.strip("\"'`")):
        raise ValueError(f"its input, {json.dumps(text[:60], ensure_ascii=False)}, gives no value")
    if quote not in ("'", '"', "`"):
        return text
    if quote == '"':
        try:
            value = strict_json(text)
        except ValueError:
            pass
        else:
            assert isinstance(value, str)
            return value
    elif len(text) > 1 and text.endswith(quote) and quote not in inner and "\\" not in inner:
        return inner
    if text.count(quote) % 2 or "\\" in text or text.endswith(quote):
        raise ValueError("the quotes around its input are not clear")
    return text


def _python_input(text: str) -> Any:
    """The keyword arguments of ``(key=value)`` as an object, or its only argument."""
    if len(text) > _LARGEST_CODE:
        raise ValueError(_PROBLEM)
    source = f"f{text}"
    try:
        _check_strings(source)
        with warnings.catch_warnings():
            # What Python warns about, such as an escape that is none, has two readings.
            warnings.simplefilter("error")
            call = ast.parse(source, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError(_PROBLEM)
        if len(call.args) > (0 if call.keywords else 1) or None in [k.arg for k in call.keywords]:
            raise ValueError(_PROBLEM)
        literal = _Literals(source)
        if call.args:
            return literal.value(call.args[0])
        return JsonObject([(str(k.arg), literal.value(k.value)) for k in call.keywords])
    except _DoubtError:
        raise
    except _NOT_PYTHON as error:
        raise ValueError(_PROBLEM) from error


class _DoubtError(ValueError):
    """A literal that says two things."""


def _check_strings(source: str) -> None:
    """Raise where the strings of Python code have escapes that are doubtful, or are put together.

    `\\n`, `\\t`, `\\r` and `\\u` are read as Python does. The letters behind other backslashes are
    rather those of a path or a pattern.
    """
    behind_string = False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            if behind_string:
                raise _DoubtError("two strings stand side by side; write one")
            prefix, _, body = token.string.partition(token.string[-1])
            if "r" in prefix.lower():
                continue
            if re.match(r"[A-Za-z]:\\[^\\]", body):
                raise _DoubtError("a path needs two backslashes for each")
            for match in re.finditer(r"\\(.)", body, re.DOTALL):
                if match[1] not in "\\'\"ntru":
                    raise _DoubtError(f"\\{match[1]} is no clear escape; double the backslash")
        behind_string = token.type == tokenize.STRING or (
            behind_string and token.type in (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT)
        )


class _Literals:
    """Reads the literals of a Python expression, and keeps how its numbers are spelled."""

    def __init__(self, source: str) -> None:
        self._lines = [line.encode() for line in re.split(r"\r\n|\r|\n", source)]

    def value(self, node: ast.expr) -> Any:
        """The JSON value of a literal; raises `ValueError` where it is none."""
        if isinstance(node, ast.Name) and node.id in _PYTHON_NAMES:
            return _PYTHON_NAMES[node.id]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            keys = [ast.literal_eval(key) for key in node.keys if key is not None]
            if len(keys) != len(node.keys) or not all(isinstance(key, str) for key in keys):
                raise ValueError("keys must be text")
            return JsonObject(list(zip(keys, map(self.value, node.values), strict=True)))
        value = ast.literal_eval(node)
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise ValueError("no JSON value")
        json.dumps(value, ensure_ascii=False).encode()
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(node, value)
        return value

    def _number(self, node: ast.expr, value: float) -> Any:
        line = self._lines[node.lineno - 1]
        text = line[node.col_offset : node.end_col_offset].decode().replace(" ", "")
        if isinstance(value, int):
            return integer(text, value)
        if not _FLOAT.fullmatch(text):
            raise ValueError(f"{text} is no number of JSON")
        return JsonNumber(text)
