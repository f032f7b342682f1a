"""Texts for the model. They live in `texts/`; this module only fills them in."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from runner.core import toml

_FOLDER = Path(__file__).parent / "texts"
_ENVIRONMENT = Environment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


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
    """The text ``key`` of a table of ``messages.toml``, filled in."""
    return _message_templates()[table][key].render(values)
