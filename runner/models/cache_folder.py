"""Where the runner keeps what it can get or compute again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$RUNNER_CACHE_DIR``, else ``~/.cache/runner``; always absolute."""
    chosen = os.environ.get("RUNNER_CACHE_DIR")
    return Path(chosen).absolute() if chosen else Path.home() / ".cache" / "runner"
