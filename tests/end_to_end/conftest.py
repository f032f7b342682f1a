"""Real models. Skipped, visibly, where the engine or a model file is not there."""

import pytest
from real_models import NAMES, settings_of

from runner.models import load_model


@pytest.fixture(scope="session", params=NAMES)
def each_model(request):
    yield from _loaded(request.param)


@pytest.fixture(scope="session")
def default_model():
    yield from _loaded(NAMES[0])


@pytest.fixture(scope="session")
def small_model():
    yield from _loaded("smollm2-135m")


def _loaded(name):
    settings_of(name)
    with load_model(name) as model:
        yield model
