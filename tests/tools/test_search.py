"""Searching: finds every line, in any case, within its bounds, and says what was left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.core.errors import ErrorKind, ToolError
from runner.core.ports import Tool
from runner.tools.builtin import builtin_tools, search


@pytest.fixture
def find(tmp_path: Path) -> Tool:
    (tmp_path / "docs").mkdir()
    (tmp_path / "app.log").write_text("INFO start\nError: disk\nINFO retry\nerror again\n")
    (tmp_path / "docs/readme.md").write_text("No ERROR here\r\n")
    return builtin_tools(["search_files"], tmp_path)[0]


def test_it_finds_lines_in_any_case(find: Tool) -> None:
    assert find({"query": "error"}) == (
        '3 matching lines for "error" in 2 files\n'
        "app.log:2: Error: disk\napp.log:4: error again\ndocs/readme.md:1: No ERROR here"
    )


@pytest.mark.parametrize(
    ("params", "head"),
    [
        ({"path": "docs"}, '1 matching line for "error" in 1 file'),
        ({"path": "app.log"}, '2 matching lines for "error" in 1 file'),
        ({"pattern": "*.md"}, '1 matching line for "error" in 1 file'),
        ({"pattern": "docs/*"}, '1 matching line for "error" in 1 file'),
        ({"pattern": "*.csv"}, 'no matches for "error" in 0 files'),
    ],
)
def test_it_can_be_narrowed(find: Tool, params: dict[str, str], head: str) -> None:
    assert find({"query": "error", **params}).split("\n")[0] == head


def test_it_says_when_nothing_is_found(find: Tool) -> None:
    assert find({"query": "e.*r"}) == 'no matches for "e.*r" in 2 files'


@pytest.mark.parametrize("query", ["", "  ", "a\nb"])
def test_a_query_is_text_on_one_line(find: Tool, query: str) -> None:
    with pytest.raises(ToolError, match="query") as caught:
        find({"query": query})
    assert caught.value.kind is ErrorKind.INVALID_INPUT


def test_many_matches_are_counted_and_the_first_shown(find: Tool, tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("needle\n" * 300)
    head, *lines = find({"query": "needle"}).split("\n")
    assert head == '300 matching lines for "needle" in 3 files, the first 50 are shown'
    assert lines == [f"many.txt:{number}: needle" for number in range(1, 51)]


def test_a_long_line_is_cut_around_the_match(find: Tool, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(f"{'a' * 5000} needle {'b' * 5000}\nneedle {'c' * 500}")
    _, first, second = find({"query": "NEEDLE"}).split("\n")
    assert first.startswith("long.txt:1: ...a")
    assert first.endswith("b...")
    assert " needle " in first
    assert second.startswith("long.txt:2: needle c")
    assert all(len(line) <= len("long.txt:1: ......") + 200 for line in (first, second))


def test_results_fit(find: Tool, tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_text(f"needle {'x' * 190}\n" * 50)
    text = find({"query": "needle"})
    assert len(text) <= find.contract.limits.max_result_chars
    assert text.startswith('50 matching lines for "needle" in 3 files, the first 1')


def test_binary_files_git_data_and_links_are_skipped(find: Tool, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("needle")
    (tmp_path / "image.bin").write_bytes(b"\0needle")
    (tmp_path / "again.log").symlink_to("app.log")
    assert find({"query": "needle"}).startswith("no matches")
    assert find({"query": "disk"}).startswith("1 matching line")


def test_large_files_are_skipped_and_said_so(find: Tool, tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"needle\n" + b"x" * 2_000_000)
    assert find({"query": "needle"}).split("\n") == [
        'no matches for "needle" in 3 files',
        "(1 file over 2 MB not searched)",
    ]


@pytest.mark.parametrize(("bound", "value"), [("MAX_FILES", 1), ("MAX_TOTAL_BYTES", 10)])
def test_it_stops_at_its_bounds_and_says_so(
    find: Tool, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(search, bound, value)
    text = find({"query": "error"})
    assert text.startswith('2 matching lines for "error" in 1 file\n')
    assert text.endswith("\n(not all files were searched; narrow it with path or pattern)")


def test_hidden_folders_come_last(
    find: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/lib.py").write_text("error")
    monkeypatch.setattr(search, "MAX_FILES", 2)
    assert find({"query": "error"}).startswith("3 matching lines")


def test_shown_lines_are_made_safe(find: Tool, tmp_path: Path) -> None:
    (tmp_path / "odd\nname").write_bytes(b"needle \x1b[0m \xff\n")
    assert find({"query": "needle"}).split("\n")[1] == "odd\\nname:1: needle \\x1b[0m \ufffd"
