"""The doctor says which build of the engine is in use, why, and how fast it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from runner.models.diagnosis import examine

pytest.importorskip("llama_cpp")

SPEED = {"model": "small.gguf", "prompt": 627.4, "decode": 50.1, "threads": 2}


def engine_finding(prefix: Path, monkeypatch: pytest.MonkeyPatch, record: dict[str, object]) -> str:
    (prefix / "llama-build.json").write_text(json.dumps(record))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    (finding,) = (one for one in examine(test=False) if one.check == "engine")
    assert finding.state == "ok"
    return finding.found.partition(", ")[2]


def test_the_build_its_reason_and_its_speed_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"profile": "native", "why": "AMX with clang 19", "speed": SPEED}
    assert engine_finding(tmp_path, monkeypatch, record) == (
        "build profile native: AMX with clang 19; at set-up, small.gguf with 2 threads: "
        "prompt 627 tokens/s, writing 50 tokens/s"
    )


@pytest.mark.parametrize("more", [{}, {"speed": None}])
def test_a_build_that_was_never_measured_is_shown_without_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object]
) -> None:
    record = {"profile": "avx2", "checked": True, **more}
    assert engine_finding(tmp_path, monkeypatch, record) == "build profile avx2"
