"""Transcripts: append-only JSON lines, one event a line, one file a run, one folder a day.

Every event has ``seq`` (from 1), ``time`` (UTC, ISO 8601) and ``event`` (its kind); the other keys
depend on the kind and are listed in docs/transcripts.md.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from runner.core.closing import Closing
from runner.core.errors import ConfigError

ENVIRONMENT = "RUNNER_RECORDS"
# Some readers take these for the end of a line as well.
_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}


def default_folder() -> Path:
    """``$RUNNER_RECORDS``, else the user's state folder."""
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen) if chosen else user_state_path("runner") / "records"


class Transcript(Closing):
    """Writes one transcript. A context manager. Files can be read by their owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seq = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._file: int | None = os.open(path, flags, 0o600)
        except OSError as error:
            raise ConfigError(
                f"cannot write a transcript to {path}: {error.strerror}",
                hint=f"choose another folder with --records or ${ENVIRONMENT}",
            ) from error

    @classmethod
    def create(cls, folder: Path | None = None) -> Transcript:
        """A new transcript in ``folder`` (default: `default_folder`), named by time.

        Raises
        ------
        ConfigError
            The folder cannot be written to.
        """
        now = datetime.now(timezone.utc)
        name = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}.jsonl"
        return cls((folder or default_folder()) / f"{now:%Y-%m-%d}" / name)

    @property
    def location(self) -> str:
        return str(self.path)

    def record(self, kind: str, data: dict[str, Any]) -> None:
        """Append one event in a single write.

        Raises
        ------
        ConfigError
            The disk takes no more.
        """
        if self._file is None:
            raise ValueError(f"the transcript {self.path} is closed")
        self._seq += 1
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        event = {"seq": self._seq, "time": now, "event": kind, **data}
        text = json.dumps(event, ensure_ascii=False, default=str).translate(_LINE_ENDS)
        line = f"{text}\n".encode("utf-8", "backslashreplace")
        try:
            written = os.write(self._file, line)
        except OSError as error:
            raise self._full(error.strerror) from error
        if written < len(line):
            raise self._full(f"only {written} of {len(line)} bytes were taken")

    def _full(self, reason: str | None) -> ConfigError:
        return ConfigError(
            f"cannot write to the transcript {self.path}: {reason}",
            hint="the run stops here, so that nothing happens without a record; make room",
        )

    def close(self) -> None:
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a transcript. A last line that a crash tore is left out.

    Raises
    ------
    ConfigError
        The file cannot be read, or is damaged before its last line; names the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(
            f"cannot read the transcript {path}: {error.strerror}",
            hint="`runner record list` shows the transcripts there are",
        ) from error
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
            if not isinstance(event, dict) or "event" not in event:
                raise ValueError("no event")
        except ValueError as error:
            if number == len(lines):  # empty after a whole line, torn otherwise
                return
            raise ConfigError(
                f"{path} is damaged in line {number}: expected a JSON object with 'event'",
                hint="transcripts are written by the runner only; was it edited?",
            ) from error
        yield event


def list_transcripts(folder: Path | None = None) -> list[Path]:
    """All transcripts of a folder, newest first."""
    return sorted((folder or default_folder()).glob("*/*.jsonl"), key=lambda p: p.name)[::-1]


def find_transcript(name: str, folder: Path | None = None) -> Path:
    """The transcript that ``name`` means: a path, the name or its beginning, or ``last``.

    Raises
    ------
    ConfigError
        None, or more than one.
    """
    if Path(name).is_file():
        return Path(name)
    known = list_transcripts(folder)
    if name == "last" and known:
        return known[0]
    matches = [path for path in known if path.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    found = f"{len(matches)} transcripts begin with" if matches else "no transcript is called"
    raise ConfigError(
        f"{found} {name!r} in {folder or default_folder()}",
        hint="`runner record list` shows them; `last` means the newest",
    )
