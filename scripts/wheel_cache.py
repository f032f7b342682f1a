"""The cache of built wheels, with what is known about each; shared by all checkouts of a user."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from children import SetupError, say
from speed import Speed


@dataclass(frozen=True)
class Build:
    """What is known about a wheel; kept as `build.json` beside it.

    ``checked`` is None as long as no model has decoded with it; ``reason`` says why not, or why
    the check failed. ``speed`` is None as long as it was not measured.
    """

    key: str
    version: str
    profile: str
    cmake_args: tuple[str, ...]
    cpu_features: tuple[str, ...]
    compiler: str
    seconds: float = 0.0
    checked: bool | None = None
    reason: str = ""
    speed: Speed | None = None

    @property
    def label(self) -> str:
        """The profile, and the compiler where several may build it."""
        compiler = self.compiler.partition(".")[0]
        return f"{self.profile} with {compiler}" if self.profile == "native" else self.profile

    def save(self, file: Path, **more: object) -> None:
        new = file.with_name(f".{file.name}.new")
        new.write_text(json.dumps(asdict(self) | more, indent=2) + "\n", "utf-8")
        new.replace(file)


@dataclass(frozen=True)
class Wheels:
    """The cache of wheels: one folder a build, named by its key."""

    folder: Path

    def wheel(self, key: str) -> Path | None:
        return next((self.folder / key).glob("*.whl"), None)

    def need(self, key: str) -> Path:
        """The wheel of a build that was made.

        Raises
        ------
        SetupError
            Somebody has removed it.
        """
        wheel = self.wheel(key)
        if wheel is None:
            raise SetupError(f"expected a wheel in {self.folder / key}, found none; run this again")
        return wheel

    def read(self, key: str) -> Build | None:
        """What is known about a build; None without a wheel or without a readable record."""
        file = self.folder / key / "build.json"
        if self.wheel(key) is None or not file.is_file():
            return None
        try:
            return _build(json.loads(file.read_text("utf-8")))
        except (ValueError, TypeError, AttributeError):
            return None

    def save(self, build: Build) -> None:
        build.save(self.folder / build.key / "build.json")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while building and checking, so that two set-ups do not do it twice."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another set-up that is building (lock {file.name})")
                fcntl.flock(file, fcntl.LOCK_EX)
            for stale in self.folder.glob(".build-*"):  # of a set-up that was killed
                shutil.rmtree(stale, ignore_errors=True)
            yield


def _build(record: dict[str, Any]) -> Build:
    """Keys of a newer release are passed over: no reason to build a wheel again."""
    known = {field.name: record[field.name] for field in fields(Build) if field.name in record}
    speed = known.pop("speed", None)
    return Build(**known, speed=Speed(**speed) if speed else None)
