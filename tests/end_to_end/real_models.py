"""The real models, where they are."""

import importlib.util

import pytest

from runner.models import load_catalog
from runner.models.llama.model import LlamaModel

NAMES = ("qwen2.5-coder-0.5b", "smollm2-135m", "gemma3-270m-base")


def settings_of(name):
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: run ./scripts/setup")
    settings = load_catalog().models[name]
    if not settings.path.is_file():
        pytest.skip(f"{settings.path} is not there: run `runner models pull {name}`")
    return settings


def fresh(name, **changes):
    """A model of its own, with some settings changed."""
    settings = settings_of(name).model_copy(update=changes)
    return LlamaModel(name, settings, load_catalog().file.parent)
