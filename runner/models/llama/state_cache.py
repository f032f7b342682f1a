"""States of a KV cache on disk: a long system prompt is evaluated once, not at every start."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from runner.core.errors import ConfigError, RunnerError
from runner.models.cache_folder import cache_folder
from runner.models.llama.state_file import (
    DamagedError,
    State,
    UntrustedError,
    check_mine,
    head_of,
    open_state,
    read_head,
    read_state,
)
from runner.models.llama.state_key import StateKey, model_identity

__all__ = ["Entry", "StateCache", "StateKey", "default_state_cache", "model_identity"]

ENVIRONMENT = "RUNNER_STATE_CACHE_MB"
_DEFAULT_MEGABYTES = 2048
_SUFFIX = ".state"
_UNFINISHED = ".tmp"
_UNFINISHED_SECONDS = 3600.0
"""No writer takes so long: what is older was left behind by a crash."""


@dataclass(frozen=True)
class Entry:
    """A state on disk.

    Attributes
    ----------
    digest
        Digest of its key.
    name
        The model's name; empty where the head of the file is damaged.
    tokens
        How many tokens it stands for; None where the head of the file is damaged.
    size
        Bytes of the file.
    used
        When it was last saved or loaded, in seconds since the epoch.
    """

    digest: str
    name: str
    tokens: int | None
    size: int
    used: float


class StateCache:
    """The states in one folder; the least recently used ones make room for new ones.

    Several processes may share the folder: files appear whole or not at all, and one that another
    process removed is a miss.

    Parameters
    ----------
    folder
        Made with the first state, for this user only.
    limit
        Most bytes of all files together; 0 switches the cache off.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def load(self, key: StateKey) -> bytes | None:
        """The state that was saved for ``key``; None where there is none that can be trusted.

        Why a file cannot be used is said on stderr. A damaged one is removed.
        """
        if not self.limit:
            return None
        path = self._path(key)
        try:
            check_mine(self.folder.stat())
            with open_state(path) as file:
                state = read_state(file, key)
                # A read-only disk does without an order of use.
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())
                return state
        except FileNotFoundError:
            return None
        except DamagedError as error:
            _say(f"removed the state {path}: {error}")
            with contextlib.suppress(OSError):
                path.unlink()
        except UntrustedError as error:
            _say(f"did not use the state {path}: {error}")
        except OSError as error:
            _say(f"cannot read the state {path}: {error.strerror}")
        return None

    def save(self, key: StateKey, state: State) -> str:
        """Keep ``state`` for ``key``, in the place of an older one.

        Returns
        -------
        str
            Why it was not kept; empty where it was. A full or read-only disk is no error: without
            the cache everything works, only slower.
        """
        if not self.limit:
            return f"the cache of states is switched off (${ENVIRONMENT} is 0)"
        head = head_of(key, state, name=key.name)
        size = len(head) + memoryview(state).nbytes
        if size > self.limit:
            return (
                f"the state has {size / 1e6:,.1f} MB, and all states together may have "
                f"{self.limit / 1e6:,.1f} MB; ${ENVIRONMENT} raises that"
            )
        path = self._path(key)
        try:
            self._make_folder()
            self._evict(size, instead_of=path)
            number, unfinished = mkstemp(dir=self.folder, suffix=_UNFINISHED)
            try:
                # Not synced to the disk: what a power cut tears, the digest finds.
                with os.fdopen(number, "wb") as file:
                    file.write(head)
                    file.write(state)
                Path(unfinished).replace(path)
            finally:
                Path(unfinished).unlink(missing_ok=True)
        except UntrustedError as error:
            return f"did not write the state {path}: {error}"
        except OSError as error:
            return f"cannot write the state {path}: {error.strerror}"
        return ""

    def entries(self) -> list[Entry]:
        """All states, the last used one first.

        Raises
        ------
        ConfigError
            The folder cannot be read.
        """
        try:
            files = self._files()
        except OSError as error:
            raise self._refused("read", error) from error
        return [self._entry(path, facts) for path, facts in reversed(files)]

    def clear(self, name: str | None = None) -> list[Entry]:
        """Remove all states, or those of the model called ``name``; return what was removed.

        Raises
        ------
        ConfigError
            The folder cannot be read, or a file cannot be removed.
        """
        removed = [entry for entry in self.entries() if name is None or entry.name == name]
        paths = [self.folder / f"{entry.digest}{_SUFFIX}" for entry in removed]
        try:
            if name is None:
                paths += self._paths(_UNFINISHED)
            for path in paths:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused("clear", error) from error
        return removed

    def _path(self, key: StateKey) -> Path:
        return self.folder / f"{key.digest()}{_SUFFIX}"

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.folder.stat().st_uid == os.geteuid():
            self.folder.chmod(0o700)
        check_mine(self.folder.stat())

    def _paths(self, suffix: str) -> list[Path]:
        try:
            return [path for path in self.folder.iterdir() if path.suffix == suffix]
        except FileNotFoundError:
            return []

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """The files of states that are this user's, the least recently used one first."""
        files = []
        for path in self._paths(_SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                facts = path.lstat()
                if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
                    files.append((path, facts))
        return sorted(files, key=lambda file: file[1].st_mtime_ns)

    def _entry(self, path: Path, facts: os.stat_result) -> Entry:
        name, tokens = "", None
        with contextlib.suppress(OSError, RunnerError), open_state(path) as file:
            _, fields = read_head(file)
            if isinstance(fields.get("name"), str) and isinstance(fields.get("tokens"), int):
                name, tokens = fields["name"], fields["tokens"]
        return Entry(path.stem, name, tokens, facts.st_size, facts.st_mtime)

    def _refused(self, verb: str, error: OSError) -> ConfigError:
        return ConfigError(
            f"cannot {verb} the folder of states {self.folder}: {error.strerror}",
            hint="check whose it is; $RUNNER_CACHE_DIR moves the cache",
        )

    def _evict(self, needed: int, *, instead_of: Path) -> None:
        """Make room for ``needed`` bytes, and remove what crashed writers left behind."""
        oldest = time.time() - _UNFINISHED_SECONDS
        for path in self._paths(_UNFINISHED):
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_mtime < oldest:
                    path.unlink()
        files = [(path, facts.st_size) for path, facts in self._files() if path != instead_of]
        total = sum(size for _, size in files)
        for path, size in files:
            if total + needed <= self.limit:
                break
            path.unlink(missing_ok=True)
            total -= size


def default_state_cache() -> StateCache:
    """The cache in ``$RUNNER_CACHE_DIR/states``, else ``~/.cache/runner/states``.

    Its limit is ``$RUNNER_STATE_CACHE_MB`` in millions of bytes, by default 2048.

    Raises
    ------
    ConfigError
        ``$RUNNER_STATE_CACHE_MB`` is no such number.
    """
    text = os.environ.get(ENVIRONMENT, "").strip() or str(_DEFAULT_MEGABYTES)
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ConfigError(
            f"${ENVIRONMENT}: expected a whole number of megabytes, found {text!r}",
            hint=f"leave it unset for {_DEFAULT_MEGABYTES}; 0 switches the cache of states off",
        )
    return StateCache(cache_folder() / "states", int(text) * 1_000_000)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
