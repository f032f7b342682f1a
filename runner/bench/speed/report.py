"""Runs the measurements of one model and says how its figures compare with their targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.bench.speed import starts
from runner.core.errors import ModelError
from runner.models.llama.process import THREAD_SETTINGS
from runner.models.settings import ModelSettings

PARTS = ("calls", "copies", "answers", "run", "same", "start", "busy", "memory")
"""What can be measured. ``same`` compares texts and takes minutes; it is measured when named."""
_IN_CHILD = ("calls", "copies", "answers", "run", "same")
_LARGE_VOCABULARY = 200_000

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ratio:
    """One figure with its target.

    Attributes
    ----------
    part
        Where it was measured.
    what
        What is divided by what.
    value, target
        Good is ``value >= target``, or ``value <= target`` where ``most`` is set.
    """

    part: str
    what: str
    value: float
    target: float
    most: bool = False

    @property
    def met(self) -> bool:
        value = float(f"{self.value:.3g}")
        return value <= self.target if self.most else value >= self.target

    def to_json(self) -> dict[str, Any]:
        """The figure as shown, and whether it is good."""
        return {
            "part": self.part,
            "what": self.what,
            "value": float(f"{self.value:.3g}"),
            "target": self.target,
            "at_most": self.most,
            "met": self.met,
        }


def measure(
    name: str, settings: ModelSettings, folder: Path, parts: Sequence[str], tasks: int, say: Say
) -> dict[str, Any]:
    """All figures of some parts, by part; see `ratios`.

    Parameters
    ----------
    tasks
        How many tasks ``same`` compares.

    Raises
    ------
    ModelError
        The measuring process failed.
    """
    figures: dict[str, Any] = {}
    inside = [part for part in parts if part in _IN_CHILD]
    if inside:
        request = {"settings": settings.public(), "folder": str(folder), "parts": inside}
        figures |= _in_child({**request, "tasks": tasks}, say)
    if "start" in parts:
        figures["start"] = starts.measure_starts(name, settings, folder, say)
    if "busy" in parts:
        figures["busy"] = starts.measure_busy(name, settings, folder, say)
    if "memory" in parts:
        figures["memory"] = starts.measure_memory(name, settings, folder, say)
    return figures


def _in_child(request: dict[str, Any], say: Say) -> dict[str, Any]:
    process = subprocess.Popen(
        [sys.executable, "-m", "runner.bench.speed.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**THREAD_SETTINGS, **os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[str] = []
    # Native code writes more than a pipe holds.
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    reader.start()
    figures: dict[str, Any] | None = None
    try:
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        for line in process.stdout:
            event = json.loads(line)
            if "progress" in event:
                say(event["progress"])
            else:
                figures = event["figures"]
    finally:
        process.kill()
        process.wait()
        reader.join()
    if figures is None:
        last = errors[-1].strip() if errors else "it said nothing"
        raise ModelError(f"the measuring process ended without figures: {last}")
    return figures


def ratios(figures: dict[str, Any]) -> list[Ratio]:
    """The figures that have a target, from what `measure` returned."""
    found: list[Ratio] = []
    large = figures.get("model", {}).get("vocabulary", 0) > _LARGE_VOCABULARY
    targets = (1.8, 6.0) if large else (1.25, 2.2)
    if "calls" in figures:
        rates = figures["calls"]["tokens_per_second"]
        found.append(Ratio("calls", "runner : unconstrained", rates["runner"] / rates["free"],
                           targets[0]))  # fmt: skip
        found.append(Ratio("calls", "runner : llama-cpp-python grammar=",
                           rates["runner"] / rates["llama-cpp-python"], targets[1]))  # fmt: skip
    if "copies" in figures:
        rates = figures["copies"]["tokens_per_second"]
        found.append(Ratio("copies", "runner : unconstrained", rates["runner"] / rates["free"],
                           1.6))  # fmt: skip
    if "answers" in figures:
        rates = figures["answers"]["tokens_per_second"]
        found.append(Ratio("answers", "under the grammar : unconstrained",
                           rates["runner"] / rates["free"], 0.97))  # fmt: skip
    if "run" in figures:
        run = figures["run"]
        found.append(Ratio("run", "seconds : ideal", run["seconds"] / run["ideal_seconds"], 1.08,
                           most=True))  # fmt: skip
        found.append(Ratio("run", "prompt tokens evaluated again", run["evaluated_again"], 0,
                           most=True))  # fmt: skip
    if "same" in figures:
        same = figures["same"]
        found.append(Ratio("same", "texts that differ without an explanation",
                           same["different"] - same["explained"], 0, most=True))  # fmt: skip
    if "start" in figures:
        start = figures["start"]
        found.append(Ratio("start", "first text, second start : first",
                           start["warm_seconds"] / start["cold_seconds"], 0.15,
                           most=True))  # fmt: skip
        found.append(Ratio("start", "seconds from command to model, without loading",
                           start["command_seconds"], 1.0, most=True))  # fmt: skip
        found.append(Ratio("start", "runner --help : importing typer and pydantic",
                           start["help_ratio"], 1.6, most=True))  # fmt: skip
    if "busy" in figures:
        busy = figures["busy"]
        found.append(Ratio("busy", "beside two busy processes : quiet",
                           busy["busy"] / busy["quiet"], 0.45))  # fmt: skip
    if "memory" in figures:
        memory = figures["memory"]
        found.append(Ratio("memory", "MB beyond file, KV cache and buffers", memory["beyond_mb"],
                           80, most=True))  # fmt: skip
    return found
