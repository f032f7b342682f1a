"""The engine in a virtual environment: what is installed there, and whether it works."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build_check import check, measure
from children import SetupError, run, say
from wheel_cache import Build

PACKAGE = "llama-cpp-python"


@dataclass(frozen=True)
class Engine:
    """llama-cpp-python in a virtual environment.

    ``others`` are requirements to install with it, ``files`` the models to check it with.
    """

    venv: Path
    others: Sequence[str]
    files: Sequence[Path]

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def _stamp(self) -> Path:
        return self.venv / "llama-build.json"

    def current(self, builds: Sequence[Build]) -> dict[str, Any] | None:
        """The record of what is installed; None unless it was taken from these same builds."""
        if not self._stamp.is_file():
            return None
        found: dict[str, Any] = json.loads(self._stamp.read_text("utf-8"))
        package = f"lib/python*/site-packages/llama_cpp_python-{builds[0].version}.dist-info"
        good = (
            found.get("ladder") == [build.key for build in builds]
            and {"speed", "why"} <= found.keys()  # what older set-ups left is renewed once
            and (found.get("checked") is True or not self.files)
            and any(self.venv.glob(package))
        )
        return found if good else None

    def record(self, build: Build, builds: Sequence[Build], why: str) -> None:
        """Note what is installed, and what it was taken from."""
        build.save(self._stamp, ladder=[plan.key for plan in builds], why=why)

    def forget(self) -> None:
        self._stamp.unlink(missing_ok=True)

    def install(self, wheel: Path) -> None:
        say(f"{PACKAGE}: installing {wheel.name}")
        # Two steps: a wheel of the same version is installed again only by force, but its
        # dependencies must not be, since that would need a network.
        self._pip("install", "--force-reinstall", "--no-deps", str(wheel))
        self._pip("install", str(wheel), *self.others)

    def uninstall(self) -> None:
        self._pip("uninstall", "--yes", PACKAGE)

    def prove(self, build: Build, wheel: Path, *, anew: bool = False) -> Build:
        """Install a wheel and find out what is not known about it yet.

        Parameters
        ----------
        anew
            Whether to measure even what was measured before.
        """
        self.install(wheel)
        if not build.checked:
            return check(build, self.python, self.files)
        if anew or build.speed is None:
            return measure(build, self.python, self.files)
        return build

    def _pip(self, *arguments: str) -> None:
        done = run([str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments])
        if done.code:
            raise SetupError(f"`pip {' '.join(arguments)}` ended with {done.ending}:\n{done.tail}")
