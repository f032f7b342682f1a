"""Finds the data: files in ``$RUNNER_CONFORMANCE_DIR``, and the installed package bfcl-eval."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from runner.core.errors import ConfigError

SETTING = "RUNNER_CONFORMANCE_DIR"
BFCL = "bfcl-eval==2026.3.23"


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file in ``$RUNNER_CONFORMANCE_DIR``.

    Raises
    ------
    ConfigError
        The variable is not set, or the file is not there.
    """
    folder = os.environ.get(SETTING, "")
    hint = f"set {SETTING} to a folder with the files that docs/conformance.md lists"
    if not folder:
        raise ConfigError(f"{SETTING} is not set, so there is no {name} to measure with", hint=hint)
    file = Path(folder) / name
    if not file.is_file():
        raise ConfigError(f"{SETTING}={folder} has no file {name}", hint=hint)
    return _lines(file)


def bfcl_rows(category: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Question and gold calls of each row of a BFCL category, such as ``simple_python``.

    Raises
    ------
    ConfigError
        bfcl-eval is not installed, or has no such category.
    """
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or spec.origin is None:
        raise ConfigError(
            "the package bfcl-eval, which brings the BFCL data, is not installed",
            hint=f"scripts/setup --dev gets it, or: pip install --no-deps {BFCL}",
        )
    folder = Path(spec.origin).parent / "data"
    name = f"BFCL_v4_{category}.json"
    if not (folder / name).is_file():
        raise ConfigError(f"{folder} has no file {name}", hint=f"pip install --no-deps {BFCL}")
    gold = {row["id"]: row["ground_truth"] for row in _lines(folder / "possible_answer" / name)}
    return [(row, gold[row["id"]]) for row in _lines(folder / name)]


def _lines(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]
