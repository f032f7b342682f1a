"""Where the runner keeps what it can get or compute again."""

from __future__ import annotations

import os
from pathlib import Path

from runner.core.errors import ConfigError


def cache_folder() -> Path:
    """``$RUNNER_CACHE_DIR``, else ``~/.cache/runner``; always absolute.

    Raises
    ------
    ConfigError
        The variable is not set and the user has no home, as in some containers.
    """
    chosen = os.environ.get("RUNNER_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return Path.home() / ".cache" / "runner"
    except RuntimeError as error:
        raise ConfigError(
            f"no folder for the cache: user {os.geteuid()} has no home folder",
            hint="set RUNNER_CACHE_DIR to a folder that this user may write to",
        ) from error
