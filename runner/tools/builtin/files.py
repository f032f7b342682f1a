"""``list_files`` and ``read_file``."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import Field

from runner.core.contract import Demonstration
from runner.core.errors import ErrorKind, ToolError
from runner.tools.builtin.text import count, longest, safe
from runner.tools.builtin.workspace import PATH_CHARS, Workspace
from runner.tools.function import FunctionTool, tool

MAX_ENTRIES = 200
MAX_SEEN = 20_000
MAX_CHARS = 3600  # of content; the head of a result and its file names come on top
MAX_COUNTED_BYTES = 256 * 2**20

_CHUNK = 2**20
_PEEK = 8192


def list_files_tool(workspace: Workspace) -> FunctionTool:
    """The tool ``list_files`` for one workspace."""

    @tool(
        examples=[{}, {"path": "docs"}],
        demonstration=Demonstration(
            task="Which files are here?",
            params={"path": "."},
            result="2 entries in .\nmain.c (2,100 bytes)\nutil.c (900 bytes)",
            answer="There are two files: main.c and util.c.",
        ),
        errors=(ErrorKind.INVALID_INPUT, ErrorKind.NOT_FOUND, ErrorKind.DENIED),
    )
    def list_files(
        path: Annotated[
            str, Field(description="folder", json_schema_extra=longest(PATH_CHARS))
        ] = ".",
        recursive: Annotated[bool, Field(description="also folders inside")] = False,
    ) -> str:
        """List the files in a folder with their sizes."""
        place = workspace.resolve(path)
        shown = workspace.name(place)
        if not place.is_dir():
            message = f"{shown} is a file, not a folder; read_file shows its text"
            raise ToolError(message, kind=ErrorKind.INVALID_INPUT)
        seen, lines = _listing(workspace, place, recursive)
        more = "more than " if seen > MAX_SEEN else ""
        head = f"{more}{count(min(seen, MAX_SEEN), 'entry', 'entries')} in {shown}"
        if len(lines) < seen:
            head += f", the first {len(lines)} are shown; list a folder in it to see others"
        return "\n".join([head, *lines])

    return list_files


def _listing(workspace: Workspace, place: Path, recursive: bool) -> tuple[int, list[str]]:
    """Number of entries, and a line for each of the first."""
    lines: list[str] = []
    seen, room = 0, MAX_CHARS
    for folder, folders, others, descriptor in workspace.walk(place, recursive=recursive):
        for name in sorted([*folders, *others]):
            seen += 1
            if len(lines) < MAX_ENTRIES and room > 0:
                line = _entry(workspace, folder / name, descriptor)
                room -= len(line) + 1
                if room > 0:
                    lines.append(line)
            elif seen > MAX_SEEN:
                return seen, lines
    return seen, lines


def _entry(workspace: Workspace, place: Path, descriptor: int) -> str:
    shown = workspace.name(place)
    try:
        found = os.stat(place.name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return f"{shown} (not readable)"
    if stat.S_ISDIR(found.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(found.st_mode):
        return f"{shown} ({count(found.st_size, 'byte')})"
    if not stat.S_ISLNK(found.st_mode):
        return f"{shown} (special file)"
    target = Path(os.path.realpath(place))
    if not target.is_relative_to(workspace.root):
        return f"{shown} (link out of the workspace)"
    return f"{shown} (link to {workspace.name(target) if os.path.lexists(target) else 'nothing'})"


def read_file_tool(workspace: Workspace) -> FunctionTool:
    """The tool ``read_file`` for one workspace."""

    @tool(
        examples=[{"path": "docs/plan.txt"}, {"path": "app.log", "start_line": 201}],
        demonstration=Demonstration(
            task="How many lines does report.txt have?",
            params={"path": "report.txt"},
            result="report.txt: 2 lines, 30 bytes\nAll went well.\nSee you soon.",
            answer="report.txt has 2 lines.",
        ),
        errors=(
            ErrorKind.INVALID_INPUT,
            ErrorKind.NOT_FOUND,
            ErrorKind.DENIED,
            ErrorKind.TOO_LARGE,
        ),
    )
    def read_file(
        path: Annotated[str, Field(json_schema_extra=longest(PATH_CHARS))],
        start_line: Annotated[int, Field(ge=1)] = 1,
        max_lines: Annotated[int, Field(ge=1)] = 200,
    ) -> str:
        """Read a text file and count its lines."""
        place = workspace.resolve(path)
        with workspace.open_file(place) as file:
            return _page(file, workspace.name(place), start_line, max_lines)

    return read_file


@dataclass(frozen=True)
class _Scan:
    """What one pass over a file finds.

    ``offset`` is where the wanted line begins, in bytes; None where it was not reached.
    """

    lines: int
    complete: bool
    offset: int | None


def _page(file: BinaryIO, shown: str, start_line: int, max_lines: int) -> str:
    """The head, then as many lines from ``start_line`` on as are wanted and fit."""
    if b"\0" in file.read(_PEEK):
        message = f"{shown} is a binary file, and only text can be read"
        raise ToolError(message, kind=ErrorKind.INVALID_INPUT)
    scan = _scan(file, start_line)
    if scan.offset is None or (start_line > scan.lines and start_line > 1):
        if scan.complete:
            message = f"{shown} has {count(scan.lines, 'line')}, so there is no line {start_line}"
            raise ToolError(message, kind=ErrorKind.INVALID_INPUT)
        message = f"{shown} is too large to read beyond line {scan.lines}"
        raise ToolError(message, kind=ErrorKind.TOO_LARGE)
    lines, cut = _lines(file, scan.offset, max_lines)
    size = os.fstat(file.fileno()).st_size
    more = "" if scan.complete else "more than "
    head = [f"{shown}: {more}{count(scan.lines, 'line')}, {count(size, 'byte')}"]
    last = start_line + len(lines) - 1
    if start_line > 1 or last < scan.lines:
        span = f"line {last:,}" if last == start_line else f"lines {start_line:,}-{last:,}"
        rest = f"; to read on: start_line={last + 1}" if last < scan.lines else ""
        head.append(f"{span} of {more}{scan.lines:,}{rest}")
    if cut:
        head.append(f"line {last:,} is longer than {MAX_CHARS:,} characters, this is its start")
    return "\n".join([*head, *lines])


def _scan(file: BinaryIO, start_line: int) -> _Scan:
    """Counts lines chunk by chunk; a last line without a line break counts too."""
    file.seek(0)
    newlines, position, last = 0, 0, b"\n"
    offset = 0 if start_line == 1 else None
    while position < MAX_COUNTED_BYTES and (chunk := file.read(_CHUNK)):
        here = chunk.count(b"\n")
        if offset is None and newlines + here >= start_line - 1:
            offset = position + _after(chunk, start_line - 1 - newlines)
        newlines += here
        position += len(chunk)
        last = chunk[-1:]
    complete = not file.read(1)
    return _Scan(newlines + (complete and last != b"\n"), complete, offset)


def _after(chunk: bytes, newlines: int) -> int:
    """Index of what follows the given number of line breaks."""
    index = 0
    for _ in range(newlines):
        index = chunk.index(b"\n", index) + 1
    return index


def _lines(file: BinaryIO, offset: int, most: int) -> tuple[list[str], bool]:
    """Lines from a byte offset on that fit, and whether the only one had to be cut."""
    file.seek(offset)
    wanted = 4 * MAX_CHARS + 4  # a character takes up to four bytes in UTF-8
    data = file.read(wanted)
    text = data.decode("utf-8", errors="replace")
    if offset == 0:
        text = text.removeprefix("\ufeff")
    raw = text.split("\n")
    if len(data) < wanted and raw[-1] == "":
        raw.pop()
    lines: list[str] = []
    room = MAX_CHARS
    for line in raw[:most]:
        shown = safe(line.removesuffix("\r"))
        room -= len(shown) + 1
        if room < 0:
            return (lines, False) if lines else ([shown[:MAX_CHARS]], True)
        lines.append(shown)
    return lines, False
