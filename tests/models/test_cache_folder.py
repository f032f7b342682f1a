"""Where the cache is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.models.cache_folder import cache_folder

HOMELESS = """
import os
from runner.core.errors import ConfigError
from runner.models.cache_folder import cache_folder
os.setuid(54321)  # no user of this system
try:
    cache_folder()
except ConfigError as error:
    print(error, error.hint)
"""


def test_it_is_where_the_environment_says_and_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNNER_CACHE_DIR", "here")
    assert cache_folder() == tmp_path / "here"


@pytest.mark.parametrize("unset", [True, False])
def test_it_is_below_the_home_folder_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unset: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RUNNER_CACHE_DIR", "")
    if unset:
        monkeypatch.delenv("RUNNER_CACHE_DIR")
    assert cache_folder() == tmp_path / ".cache" / "runner"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_a_home_is_told_what_to_set() -> None:
    left_out = ("HOME", "RUNNER_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    command = [sys.executable, "-c", HOMELESS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "user 54321 has no home" in done.stdout
    assert "RUNNER_CACHE_DIR" in done.stdout
