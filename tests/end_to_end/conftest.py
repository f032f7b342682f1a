"""Real models. Skipped, visibly, where the engine or a model file is not there."""

import importlib.util

import pytest

from runner.models import load_catalog, load_model

NAMES = ("qwen2.5-coder-0.5b", "smollm2-135m", "gemma3-270m-base")


@pytest.fixture(scope="session", params=NAMES)
def each_model(request):
    yield from _loaded(request.param)


@pytest.fixture(scope="session")
def default_model():
    yield from _loaded(NAMES[0])


@pytest.fixture(scope="session")
def small_model():
    yield from _loaded("smollm2-135m")


def settings_of(name):
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: run ./scripts/setup")
    settings = load_catalog().models[name]
    if not settings.path.is_file():
        pytest.skip(f"{settings.path} is not there: run `runner models pull {name}`")
    return settings


def _loaded(name):
    settings_of(name)
    with load_model(name) as model:
        yield model
