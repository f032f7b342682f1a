"""Writing: a whole file or nothing, never over another by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.core.contract import Effect
from runner.core.errors import ErrorKind, ToolError
from runner.core.ports import Tool
from runner.tools.builtin import builtin_tools


@pytest.fixture
def write(tmp_path: Path) -> Tool:
    return builtin_tools(["write_file"], tmp_path)[0]


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("content", "counts"),
    [
        ("", "0 lines, 0 bytes"),
        ("one", "1 line, 3 bytes"),
        ("one\n", "1 line, 4 bytes"),
        ("one\ntwo", "2 lines, 7 bytes"),
        ("größe €\r\n", "1 line, 13 bytes"),
    ],
)
def test_the_text_is_written_as_it_is(
    write: Tool, tmp_path: Path, content: str, counts: str
) -> None:
    assert write({"path": "a.txt", "content": content}) == f"wrote {counts} to a.txt"
    assert (tmp_path / "a.txt").read_bytes() == content.encode()
    assert names_in(tmp_path) == ["a.txt"]


def test_missing_folders_are_made(write: Tool, tmp_path: Path) -> None:
    assert write({"path": "./a/b/../c.txt", "content": "x"}) == "wrote 1 line, 1 byte to a/c.txt"
    assert write({"path": "d/e/f.txt", "content": "x"}).endswith("to d/e/f.txt")
    assert (tmp_path / "d/e/f.txt").read_text() == "x"


def test_an_existing_file_is_replaced_only_on_request(write: Tool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(ToolError, match=r"a\.txt exists already.*overwrite") as caught:
        write({"path": "a.txt", "content": "new"})
    assert caught.value.kind is ErrorKind.INVALID_INPUT
    assert (tmp_path / "a.txt").read_text() == "old"
    write({"path": "a.txt", "content": "new", "overwrite": True})
    assert (tmp_path / "a.txt").read_text() == "new"


def test_permissions_are_kept(write: Tool, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    write({"path": "run.sh", "content": "new", "overwrite": True})
    assert script.stat().st_mode & 0o777 == 0o750


def test_new_files_follow_the_umask(write: Tool, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write({"path": "a.txt", "content": ""})
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_read_only_file_is_left_alone(write: Tool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o444)
    with pytest.raises(ToolError, match=r"a\.txt is read-only") as caught:
        write({"path": "a.txt", "content": "new", "overwrite": True})
    assert caught.value.kind is ErrorKind.DENIED
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_link_inside_the_workspace_stays_a_link(write: Tool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("a.txt")
    write({"path": "link.txt", "content": "new", "overwrite": True})
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_write_that_fails_leaves_the_old_file_and_no_traces(
    write: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError) as caught:
        write({"path": "a.txt", "content": "new", "overwrite": True})
    message = "a.txt: No space left on device"
    assert (str(caught.value), caught.value.kind) == (message, ErrorKind.FAILED)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("path", ["docs", ".", "", "new/"])
def test_a_folder_is_no_place_for_text(write: Tool, tmp_path: Path, path: str) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(ToolError, match="is a folder; give the name of a file") as caught:
        write({"path": path, "content": "x", "overwrite": True})
    assert caught.value.kind is ErrorKind.INVALID_INPUT
    assert names_in(tmp_path) == ["docs"]


def test_a_file_is_no_place_for_files(write: Tool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(ToolError, match=r"a\.txt is a file, not a folder") as caught:
        write({"path": "a.txt/b.txt", "content": "x"})
    assert caught.value.kind is ErrorKind.NOT_FOUND


def test_content_has_a_bound(write: Tool, tmp_path: Path) -> None:
    write({"path": "most.txt", "content": "€" * 33_333 + "x"})
    with pytest.raises(ToolError, match="100,001 bytes, but at most 100,000") as caught:
        write({"path": "more.txt", "content": "x" * 100_001})
    assert caught.value.kind is ErrorKind.TOO_LARGE
    assert names_in(tmp_path) == ["most.txt"]


def test_half_a_character_is_refused(write: Tool, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="surrogate") as caught:
        write({"path": "a.txt", "content": "\ud83d"})
    assert caught.value.kind is ErrorKind.INVALID_INPUT
    assert names_in(tmp_path) == []


def test_folders_have_a_greatest_depth(write: Tool, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="folders deep") as caught:
        write({"path": "a/" * 60 + "b.txt", "content": "x"})
    assert caught.value.kind is ErrorKind.DENIED
    assert names_in(tmp_path) == []


def test_its_contract_says_that_it_writes(write: Tool) -> None:
    assert write.contract.effect is Effect.WRITE
