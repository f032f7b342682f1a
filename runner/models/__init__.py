"""Adapters to models: GGUF files in a worker process, and scripted models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.core.lazy import lazy

if TYPE_CHECKING:
    from runner.models.catalog import Catalog, find_catalog, load_catalog, load_model
    from runner.models.scripted import ScriptedModel

__all__ = ["Catalog", "ScriptedModel", "find_catalog", "load_catalog", "load_model"]

# When they are first used: a worker, too, is inside this package.
_HOMES = {
    "Catalog": "runner.models.catalog",
    "ScriptedModel": "runner.models.scripted",
    "find_catalog": "runner.models.catalog",
    "load_catalog": "runner.models.catalog",
    "load_model": "runner.models.catalog",
}
__getattr__ = lazy(__name__, _HOMES)
