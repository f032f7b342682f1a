"""Adapters to models: GGUF files in a worker process, and scripted models."""

from runner.models.catalog import Catalog, find_catalog, load_catalog, load_model
from runner.models.scripted import ScriptedModel

__all__ = ["Catalog", "ScriptedModel", "find_catalog", "load_catalog", "load_model"]
