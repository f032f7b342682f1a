"""``runner models cache`` in a process of its own, on a folder with real states."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from runner.models.llama.state_cache import StateKey, default_state_cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with two states of one model and one of another."""
    monkeypatch.setenv("RUNNER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RUNNER_STATE_CACHE_MB", "5")
    cache = default_state_cache()
    for name, count in (("big", 300), ("small", 1200), ("small", 40)):
        key = StateKey(name, "build", {"n_ctx": 4096}, tuple(range(count)), name)
        assert cache.save(key, bytes(1_000_000)) == ""
    return cache.folder


def runner(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner", "models", "cache", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_states_are_listed_as_text(folder: Path) -> None:
    done = runner("list")
    assert done.returncode == 0
    for word in ("big", "small", "1,200", "1.0 MB", "last use"):
        assert word in done.stdout
    for file in folder.iterdir():
        assert file.stem in done.stdout
    assert f"3.0 MB of at most 5.0 MB in {folder}" in done.stderr


def test_states_are_listed_as_json(folder: Path) -> None:
    data = json.loads(runner("list", "--json").stdout)
    assert (data["folder"], data["limit_bytes"]) == (str(folder), 5_000_000)
    assert {(state["model"], state["tokens"]) for state in data["states"]} == {
        ("big", 300), ("small", 1200), ("small", 40),
    }  # fmt: skip
    assert data["total_bytes"] == sum(file.stat().st_size for file in folder.iterdir())
    for state in data["states"]:
        file = folder / f"{state['key']}.state"
        assert state["bytes"] == file.stat().st_size
        used = datetime.fromisoformat(state["used"]).timestamp()
        assert used == pytest.approx(file.stat().st_mtime, abs=1)


def test_a_damaged_state_is_listed_as_such(folder: Path) -> None:
    next(folder.iterdir()).write_bytes(b"\x00")
    assert "damaged" in runner("list").stdout
    states = json.loads(runner("list", "--json").stdout)["states"]
    assert [state["tokens"] for state in states].count(None) == 1


def test_clear_removes_all_and_says_how_much(folder: Path) -> None:
    done = runner("clear")
    assert (done.returncode, done.stdout) == (0, "removed 3 states, 3.0 MB\n")
    assert list(folder.iterdir()) == []
    assert runner("clear").stdout == "removed 0 states, 0.0 MB\n"
    assert json.loads(runner("list", "--json").stdout)["states"] == []


def test_clear_can_be_for_one_model(folder: Path) -> None:
    size = sum(file.stat().st_size for file in folder.iterdir())
    data = json.loads(runner("clear", "--model", "small", "--json").stdout)
    assert data["removed"] == 2
    (left,) = folder.iterdir()
    assert data["bytes"] == size - left.stat().st_size


def test_clear_says_which_models_there_are_where_it_finds_none(folder: Path) -> None:
    done = runner("clear", "--model", "smal")
    assert (done.returncode, done.stdout) == (0, "removed 0 states, 0.0 MB\n")
    assert "'smal'" in done.stderr
    assert "big, small" in done.stderr


def test_a_wrong_limit_is_wrong_configuration(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNER_STATE_CACHE_MB", "2 GB")
    done = runner("list", "--json")
    assert done.returncode == 2
    assert "RUNNER_STATE_CACHE_MB" in json.loads(done.stdout)["error"]["message"]
