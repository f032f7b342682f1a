"""A worker process is inside `runner.models`, so that package imports what it is asked for only."""

from __future__ import annotations

import subprocess
import sys

import pytest

import runner.models


@pytest.mark.parametrize("name", runner.models.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(runner.models, name).__name__ == name


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="load_modell"):
        _ = runner.models.load_modell


def test_a_worker_imports_nothing_that_only_its_parent_needs() -> None:
    code = "import sys, runner.models.llama.worker\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "runner.models.settings" in modules
    parents = {"jsonschema", "lark", "platformdirs", "rich", "runner.core.contract", "typer"}
    assert modules & (parents | {"runner.models.catalog", "runner.models.llama.model"}) == set()
