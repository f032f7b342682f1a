"""``write_file``: a whole file at once, or nothing."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from runner.core.contract import Demonstration, Effect
from runner.core.errors import ErrorKind, ToolError
from runner.tools.builtin.text import count, longest
from runner.tools.builtin.workspace import PATH_CHARS, Workspace, os_errors
from runner.tools.function import FunctionTool, tool

MAX_BYTES = 100_000


def write_file_tool(workspace: Workspace) -> FunctionTool:
    """The tool ``write_file`` for one workspace."""

    @tool(
        effect=Effect.WRITE,
        examples=[
            {"path": "docs/plan.txt", "content": "1. Measure\n2. Cut\n"},
            {"path": "status.txt", "content": "done\n", "overwrite": True},
        ],
        demonstration=Demonstration(
            task="Write the word done into status.txt.",
            params={"path": "status.txt", "content": "done\n"},
            result="wrote 1 line, 5 bytes to status.txt",
            answer="I wrote it into status.txt.",
        ),
        errors=(
            ErrorKind.INVALID_INPUT,
            ErrorKind.DENIED,
            ErrorKind.NOT_FOUND,
            ErrorKind.TOO_LARGE,
        ),
    )
    def write_file(
        path: Annotated[str, Field(json_schema_extra=longest(PATH_CHARS))],
        content: str,
        overwrite: Annotated[bool, Field(description="replace an existing file")] = False,
    ) -> str:
        """Write a new text file."""
        data = _encoded(content)
        place = workspace.resolve(path, writing=True)
        shown = workspace.name(place)
        if path.endswith("/") or place.is_dir():
            message = f"{shown} is a folder; give the name of a file"
            raise ToolError(message, kind=ErrorKind.INVALID_INPUT)
        if os.path.lexists(place) and not overwrite:
            message = f"{shown} exists already; to replace it, set overwrite to true"
            raise ToolError(message, kind=ErrorKind.INVALID_INPUT)
        with workspace.open_folder(place.parent, create=True) as folder, os_errors(shown):
            _replace(folder, place.name, shown, data)
        lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        return f"wrote {count(lines, 'line')}, {count(len(data), 'byte')} to {shown}"

    return write_file


def _encoded(content: str) -> bytes:
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        message = "content holds half of a surrogate pair; write the whole character"
        raise ToolError(message, kind=ErrorKind.INVALID_INPUT) from error
    if len(data) > MAX_BYTES:
        message = f"content has {len(data):,} bytes, but at most {MAX_BYTES:,} can be written"
        raise ToolError(message, kind=ErrorKind.TOO_LARGE)
    return data


def _replace(folder: int, name: str, shown: str, data: bytes) -> None:
    """Put a file in the place of ``name`` in one step; keeps the permissions of an old one."""
    old = None
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777
    # Replacing a file needs no right to write to it, but somebody took that right away.
    if old is not None and not old & 0o222:
        raise ToolError(f"{shown} is read-only; use another name", kind=ErrorKind.DENIED)
    temporary = f".write-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if old is not None:
                os.fchmod(descriptor, old)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
