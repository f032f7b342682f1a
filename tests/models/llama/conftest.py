"""Tiny real models, one file each for all tests. Skipped, visibly, where the engine is missing."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of architecture llama that never ends a turn by itself."""
    return _written(tmp_path_factory, "write_llama")


@pytest.fixture(scope="session")
def tiny_mamba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent model: its cache cannot drop a part."""
    return _written(tmp_path_factory, "write_mamba")


@pytest.fixture(scope="session")
def tiny_swa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with sliding-window layers."""
    return _written(tmp_path_factory, "write_gemma_swa")


def _written(folders: pytest.TempPathFactory, writer: str) -> Path:
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: run ./scripts/setup")
    tiny_models = pytest.importorskip("tiny_models", reason="the gguf package is not installed")
    write: Callable[[Path], Path] = getattr(tiny_models, writer)
    return write(folders.mktemp("tiny") / f"{writer}.gguf")
