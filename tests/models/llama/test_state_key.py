"""A model file is known by its size, its time and samples of its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.core.errors import ModelFileError
from runner.models.llama.state_key import model_identity

SIZE = 4_000_000


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(bytes(SIZE))
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    return path


def change(path: Path, place: int) -> None:
    """Change a byte and keep the time."""
    facts = path.stat()
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"x")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_a_copy_with_its_time_is_the_same_model(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(model.read_bytes())
    os.utime(copy, ns=(0, model.stat().st_mtime_ns))
    assert model_identity(copy) == model_identity(model)


@pytest.mark.parametrize("place", [0, (1 << 20) - 1, SIZE // 17 * 8 + 1000, SIZE - 1])
def test_another_content_is_another_model(model: Path, place: int) -> None:
    before = model_identity(model)
    change(model, place)
    assert model_identity(model) != before


def test_another_time_is_another_model(model: Path) -> None:
    before = model_identity(model)
    os.utime(model, ns=(0, model.stat().st_mtime_ns + 1))
    assert model_identity(model) != before


def test_another_size_is_another_model(model: Path) -> None:
    before, then = model_identity(model), model.stat().st_mtime_ns
    with model.open("ab") as file:
        file.write(b"\0")
    os.utime(model, ns=(0, then))
    assert model_identity(model) != before


def test_a_small_file_has_an_identity_too(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"GGUF")
    assert len(model_identity(tmp_path / "small")) == 64


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"lost\.gguf"):
        model_identity(tmp_path / "lost.gguf")
