"""``search_files``: plain text in the files of a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

from pydantic import Field

from runner.core.contract import Demonstration
from runner.core.errors import ErrorKind, ToolError
from runner.tools.builtin.text import count, longest, one_line, safe
from runner.tools.builtin.workspace import PATH_CHARS, Workspace
from runner.tools.function import FunctionTool, tool

MAX_FILES = 2000
MAX_MATCHES = 50
MAX_FILE_BYTES = 2 * 10**6
MAX_TOTAL_BYTES = 100 * 10**6
MAX_LINE = 200
MAX_CHARS = 3600

_PEEK = 8192
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def search_files_tool(workspace: Workspace) -> FunctionTool:
    """The tool ``search_files`` for one workspace."""

    @tool(
        examples=[{"query": "invoice"}, {"query": "timeout", "path": "app.log"}],
        demonstration=Demonstration(
            task="Where is the word budget mentioned?",
            params={"query": "budget"},
            result='1 matching line for "budget" in 5 files\nplan.md:3: The budget is 900 euros.',
            answer="In line 3 of plan.md: the budget is 900 euros.",
        ),
        errors=(ErrorKind.INVALID_INPUT, ErrorKind.NOT_FOUND, ErrorKind.DENIED),
    )
    def search_files(
        query: Annotated[str, Field(description="text to find", json_schema_extra=longest(200))],
        path: Annotated[
            str, Field(description="folder or file", json_schema_extra=longest(PATH_CHARS))
        ] = ".",
        pattern: Annotated[
            str, Field(description="file names, such as *.txt", json_schema_extra=longest(60))
        ] = "*",
    ) -> str:
        """Find the lines in files that contain a text."""
        if not query.strip() or "\n" in query:
            message = "query must be a text on one line, such as a word"
            raise ToolError(message, kind=ErrorKind.INVALID_INPUT)
        search = _Search(query)
        for name, data in search.files(workspace, workspace.resolve(path), pattern):
            search.look_into(name, data)
        return search.report()

    return search_files


@dataclass
class _Search:
    """One search: what it found so far, and what it had to leave out."""

    query: str
    matches: int = 0
    lines: list[str] = field(default_factory=list)
    files_seen: int = 0
    too_large: int = 0
    stopped: bool = False
    room: int = MAX_CHARS
    bytes_seen: int = 0

    def files(self, workspace: Workspace, place: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
        """Name and bytes of the files to look into, within the bounds."""
        if not place.is_dir():
            with workspace.open_file(place) as file:
                yield from self._read(workspace.name(place), file.fileno())
            return
        for folder, _, others, descriptor in workspace.walk(place):
            for name in others:
                shown = workspace.name(folder / name)
                if not fnmatch(name, pattern) and not fnmatch(shown, pattern):
                    continue
                if self.files_seen >= MAX_FILES or self.bytes_seen >= MAX_TOTAL_BYTES:
                    self.stopped = True
                    return
                try:
                    opened = os.open(name, _FILE, dir_fd=descriptor)
                except OSError:  # a link, or not readable: nothing to search
                    continue
                try:
                    yield from self._read(shown, opened)
                finally:
                    os.close(opened)

    def _read(self, shown: str, opened: int) -> Iterator[tuple[str, bytes]]:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            return
        self.files_seen += 1
        if found.st_size > MAX_FILE_BYTES:
            self.too_large += 1
            return
        data = os.read(opened, MAX_FILE_BYTES)
        self.bytes_seen += len(data)
        if b"\0" not in data[:_PEEK]:
            yield shown, data

    def look_into(self, name: str, data: bytes) -> None:
        """Note the lines of one file that hold the query."""
        wanted = self.query.casefold()
        text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
        if wanted not in text.casefold():
            return
        for number, line in enumerate(text.split("\n"), start=1):
            position = line.casefold().find(wanted)
            if position < 0:
                continue
            self.matches += 1
            if len(self.lines) < MAX_MATCHES and self.room > 0:
                shown = f"{name}:{number}: {_around(line, position)}"
                self.room -= len(shown) + 1
                if self.room > 0:
                    self.lines.append(shown)

    def report(self) -> str:
        """The count, then the lines, then what was left out."""
        found = count(self.matches, "matching line") if self.matches else "no matches"
        head = f'{found} for "{one_line(self.query, 60)}" in {count(self.files_seen, "file")}'
        if len(self.lines) < self.matches:
            head += f", the first {len(self.lines)} are shown"
        notes = []
        if self.stopped:
            notes.append("(not all files were searched; narrow it with path or pattern)")
        if self.too_large:
            notes.append(f"({count(self.too_large, 'file')} over 2 MB not searched)")
        return "\n".join([head, *self.lines, *notes])


def _around(line: str, position: int) -> str:
    """The part of a long line that holds the match."""
    line = line.removesuffix("\r").replace("\t", " ")
    if len(line) <= MAX_LINE:
        return safe(line)
    start = max(0, min(position - MAX_LINE // 4, len(line) - MAX_LINE))
    end = start + MAX_LINE
    before, after = "..." if start else "", "..." if end < len(line) else ""
    return f"{before}{safe(line[start:end])}{after}"
