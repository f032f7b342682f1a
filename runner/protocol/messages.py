"""Texts for the model. They live in `texts/`; this module only fills them in."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from runner.core import toml
from runner.protocol.dialects import ACTION, Dialect

_FOLDER = Path(__file__).parent / "texts"
_ENVIRONMENT = Environment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)
# Not Jinja's own `tojson`, which writes for HTML.
_ENVIRONMENT.filters["tojson_text"] = functools.partial(json.dumps, ensure_ascii=False)


@functools.cache
def template(name: str) -> Template:
    """The template in ``texts/<name>``."""
    return _ENVIRONMENT.from_string((_FOLDER / name).read_text("utf-8"))


@functools.cache
def _message_templates() -> dict[str, dict[str, Template]]:
    tables = toml.loads((_FOLDER / "messages.toml").read_text("utf-8"))
    return {
        table: {key: _ENVIRONMENT.from_string(text) for key, text in texts.items()}
        for table, texts in tables.items()
    }


def message(table: str, key: str, /, **values: Any) -> str:
    """The text ``key`` of a table of ``messages.toml``, filled in.

    The words for how a turn is spelled (`runner.protocol.dialects.Dialect.words` and the keys of a
    call) are those of the dialect that `speaking` has set.
    """
    text = _message_templates()[table][key].render({**_words(_speaking.get()), **values})
    # A model may write half of a surrogate pair, which no terminal and no file can take.
    return text.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def speaking(dialect: Dialect) -> Iterator[None]:
    """Messages speak the language of ``dialect`` inside this block."""
    token = _speaking.set(dialect)
    try:
        yield
    finally:
        _speaking.reset(token)


@functools.cache
def _words(dialect: Dialect) -> dict[str, str]:
    keys = {"name_key": dialect.name_key, "params_key": dialect.params_key}
    return {**dialect.words, **keys}


_speaking: ContextVar[Dialect] = ContextVar("dialect", default=ACTION)
