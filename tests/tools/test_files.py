"""Listing and reading: counts that a small model can trust, results that always fit."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.core.errors import ErrorKind, ToolError
from runner.core.ports import Tool
from runner.tools.builtin import builtin_tools, files
from runner.tools.builtin.text import safe


@pytest.fixture
def list_files(tmp_path: Path) -> Tool:
    return builtin_tools(["list_files"], tmp_path)[0]


@pytest.fixture
def read_file(tmp_path: Path) -> Tool:
    return builtin_tools(["read_file"], tmp_path)[0]


def test_a_listing_counts_its_entries_and_tells_sizes(list_files: Tool, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "a.txt").write_text("1")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/readme.md").write_text("12")
    assert list_files({}) == (
        "4 entries in .\n.hidden (0 bytes)\na.txt (1 byte)\nb.txt (5 bytes)\ndocs/"
    )


def test_listed_names_are_paths_that_can_be_read(list_files: Tool, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/readme.md").write_text("12")
    listed = list_files({"path": "docs"})
    assert listed == "1 entry in docs\ndocs/readme.md (2 bytes)"


def test_a_recursive_listing_goes_down_but_not_into_git(list_files: Tool, tmp_path: Path) -> None:
    for folder in (".git/hooks", "a/b"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a/b/c.txt").write_text("")
    (tmp_path / "d.txt").write_text("")
    text = list_files({"recursive": True})
    assert text == "4 entries in .\na/\nd.txt (0 bytes)\na/b/\na/b/c.txt (0 bytes)"
    assert ".git/" in list_files({})


def test_links_and_special_files_are_named_as_such(list_files: Tool, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "in").symlink_to("notes.txt")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "out").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    lines = list_files({"recursive": True}).splitlines()
    assert lines[1:] == [
        "in (link to notes.txt)",
        "notes.txt (0 bytes)",
        "nowhere (link to nothing)",
        "out (link out of the workspace)",
        "pipe (special file)",
    ]


def test_an_empty_folder_has_no_entries(list_files: Tool) -> None:
    assert list_files({}) == "0 entries in ."


def test_a_long_listing_is_cut_but_counted(list_files: Tool, tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"{number:03}").write_text("")
    head, *lines = list_files({}).splitlines()
    assert head.startswith("250 entries in ., the first 200 are shown")
    assert lines == [f"{number:03} (0 bytes)" for number in range(200)]


def test_a_listing_of_long_names_fits_into_a_result(list_files: Tool, tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:0150}").write_text("")
    text = list_files({})
    shown = len(text.splitlines()) - 1
    assert len(text) <= list_files.contract.limits.max_result_chars
    assert shown > 10
    assert text.startswith(f"100 entries in ., the first {shown} are shown")


def test_a_listing_stops_counting_at_its_bound(
    list_files: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_ENTRIES", 5)
    monkeypatch.setattr(files, "MAX_SEEN", 10)
    for number in range(20):
        (tmp_path / f"{number:02}").write_text("")
    assert list_files({}).startswith("more than 10 entries in ., the first 5 are shown")


def test_names_are_made_safe(list_files: Tool, tmp_path: Path) -> None:
    (tmp_path / "two\nlines\x1b[31m").write_text("")
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("")
    text = list_files({})
    assert text.splitlines()[1:] == ["caf\\xe9 (0 bytes)", "two\\nlines\\x1b[31m (0 bytes)"]
    assert text.encode("utf-8")


def test_a_file_cannot_be_listed_nor_a_folder_read(
    list_files: Tool, read_file: Tool, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ToolError, match=r"notes\.txt is a file.*read_file") as caught:
        list_files({"path": "notes.txt"})
    assert caught.value.kind is ErrorKind.INVALID_INPUT
    for path in ("docs", ".", "", f"{tmp_path}"):
        with pytest.raises(ToolError, match=r"is a folder; list_files") as caught:
            read_file({"path": path})
        assert caught.value.kind is ErrorKind.INVALID_INPUT


@pytest.mark.parametrize(
    ("data", "head"),
    [
        (b"", "0 lines, 0 bytes"),
        (b"a", "1 line, 1 byte"),
        (b"a\n", "1 line, 2 bytes"),
        (b"\n", "1 line, 1 byte"),
        (b"a\nb", "2 lines, 3 bytes"),
        (b"a\r\nb\r\n", "2 lines, 6 bytes"),
        (b"a\n\n", "2 lines, 3 bytes"),
        ("ä\n".encode(), "1 line, 3 bytes"),
        (b"Buy milk\nCall Ann\nFix bike\nRead\nWater\n", "5 lines, 38 bytes"),
    ],
)
def test_the_head_counts_lines_and_bytes(
    read_file: Tool, tmp_path: Path, data: bytes, head: str
) -> None:
    (tmp_path / "notes.txt").write_bytes(data)
    text = read_file({"path": "notes.txt"})
    assert text.split("\n")[0] == f"notes.txt: {head}"
    assert text.split("\n")[1:] == data.decode().replace("\r", "").splitlines()


def test_a_part_says_which_and_how_to_read_on(read_file: Tool, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"{n}\n" for n in range(1, 3022)))
    head = "log: 3,021 lines, 13,998 bytes"
    first = read_file({"path": "log"}).split("\n")
    assert first[:3] == [head, "lines 1-200 of 3,021; to read on: start_line=201", "1"]
    assert first[-1] == "200"
    middle = read_file({"path": "log", "start_line": 1500, "max_lines": 2})
    assert middle == (
        f"{head}\nlines 1,500-1,501 of 3,021; to read on: start_line=1502\n1500\n1501"
    )
    last = read_file({"path": "log", "start_line": 3021})
    assert last == f"{head}\nline 3,021 of 3,021\n3021"


def test_a_start_line_beyond_the_end_is_an_error(read_file: Tool, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a\nb\n")
    (tmp_path / "empty.txt").write_text("")
    for path, start, count in [("notes.txt", 3, "2 lines"), ("empty.txt", 2, "0 lines")]:
        with pytest.raises(ToolError, match=f"has {count}, so there is no line {start}") as caught:
            read_file({"path": path, "start_line": start})
        assert caught.value.kind is ErrorKind.INVALID_INPUT
    with pytest.raises(ToolError, match="start_line"):
        read_file({"path": "notes.txt", "start_line": 0})


LINES = st.lists(
    st.text(st.characters(exclude_characters="\r\n\0\ufeff", exclude_categories=["Cs"]), max_size=9)
    | st.text("äx€😀\t", min_size=100, max_size=900),
    min_size=1,
    max_size=40,
)


PART = re.compile(r"lines? \d+(?:-\d+)? of \d+(?:; to read on: start_line=(\d+))?")


@given(lines=LINES, step=st.integers(1, 50), ending=st.sampled_from(["", "\n", "\r\n"]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_on_gives_every_line_once(
    read_file: Tool, tmp_path: Path, lines: list[str], step: int, ending: str
) -> None:
    data = ("\n".join(lines) + ending).encode()
    (tmp_path / "f").write_bytes(data)
    expected = data.decode().replace("\r", "").removesuffix("\n").split("\n") if data else []
    found: list[str] = []
    start = 1
    while start:
        text = read_file({"path": "f", "start_line": start, "max_lines": step})
        assert len(text) <= read_file.contract.limits.max_result_chars
        head, *rest = text.split("\n")
        assert re.fullmatch(rf"f: {len(expected)} lines?, {len(data):,} bytes?", head)
        part = PART.fullmatch(rest[0]) if rest else None
        start = int(part[1] or 0) if part else 0
        found += rest[1:] if part else rest
    assert found == [safe(line) for line in expected]


def test_a_line_that_is_too_long_is_cut_and_said_so(read_file: Tool, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"short\n{'x' * 100_000}\nend\n")
    first = read_file({"path": "f"})
    assert first.endswith("\nline 1 of 3; to read on: start_line=2\nshort")
    second = read_file({"path": "f", "start_line": 2}).split("\n")
    assert second[1] == "line 2 of 3; to read on: start_line=3"
    assert second[2] == "line 2 is longer than 3,600 characters, this is its start"
    assert second[3] == "x" * 3600
    assert read_file({"path": "f", "start_line": 3}).endswith("\nend")


def test_a_huge_file_is_read_in_pieces(
    read_file: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_COUNTED_BYTES", 8 * 2**20)
    with (tmp_path / "big.log").open("wb") as file:
        file.write(b"a line\n" * 2**20)
        file.truncate(2 * 2**30)  # two gigabytes, of which the disk holds seven megabytes
    tracemalloc.start()
    try:
        text = read_file({"path": "big.log", "start_line": 1_000_000, "max_lines": 3})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text.split("\n") == [
        "big.log: more than 1,048,576 lines, 2,147,483,648 bytes",
        "lines 1,000,000-1,000,002 of more than 1,048,576; to read on: start_line=1000003",
        *["a line"] * 3,
    ]
    assert peak < 8 * 2**20
    with pytest.raises(ToolError, match="too large to read beyond line 1048576") as caught:
        read_file({"path": "big.log", "start_line": 2_000_000})
    assert caught.value.kind is ErrorKind.TOO_LARGE


def test_binary_files_are_refused(read_file: Tool, tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(ToolError, match=r"image\.png is a binary file") as caught:
        read_file({"path": "image.png"})
    assert caught.value.kind is ErrorKind.INVALID_INPUT


def test_contents_are_made_safe(read_file: Tool, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbftab\t\x1b[31mred\x07\nlatin \xe9\n\xe2\x80\xa8\rx\n")
    text = read_file({"path": "f"})
    assert text.split("\n", 1)[1] == "tab\t\\x1b[31mred\\x07\nlatin \ufffd\n\\u2028\\x0dx"


def test_a_file_that_may_not_be_read_is_denied(
    read_file: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("x")
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "f":
            raise PermissionError(13, "Permission denied", f"{tmp_path}/f")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)  # permissions do not bind a test that runs as root
    with pytest.raises(ToolError) as caught:
        read_file({"path": "f"})
    assert (str(caught.value), caught.value.kind) == ("f: Permission denied", ErrorKind.DENIED)
