"""Adapters to models: GGUF files in a worker process, and scripted models."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.models.catalog import Catalog, find_catalog, load_catalog, load_model
    from runner.models.scripted import ScriptedModel

__all__ = ["Catalog", "ScriptedModel", "find_catalog", "load_catalog", "load_model"]

_HOMES = {
    "Catalog": "runner.models.catalog",
    "ScriptedModel": "runner.models.scripted",
    "find_catalog": "runner.models.catalog",
    "load_catalog": "runner.models.catalog",
    "load_model": "runner.models.catalog",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a worker, too, is inside this package."""
    if name not in _HOMES:
        raise AttributeError(f"module 'runner.models' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
