"""A saved state as a file: one line of JSON that says what it belongs to, and then the state.

States are native data that the engine believes. So a file is used only where it belongs to this
user, where nobody else may write to it, and where every byte is as it was saved.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from runner.core.errors import RunnerError
from runner.models.llama.state_key import StateKey, canonical, digest

_LONGEST_HEAD = 1 << 16

State = bytes | bytearray | memoryview


class DamagedError(RunnerError):
    """The file is not what was saved."""


class UntrustedError(RunnerError):
    """Somebody else may have written it."""


def head_of(key: StateKey, state: State, *, name: Any) -> bytes:
    """The first line; its digest covers the rest of the line and the state."""
    fields = key.fields() | {"name": name, "size": memoryview(state).nbytes}
    whole = digest(canonical(fields))
    whole.update(state)
    return canonical(fields | {"digest": whole.hexdigest()}) + b"\n"


def open_state(path: Path) -> BinaryIO:
    """Open a file that only this user can have written.

    Raises
    ------
    UntrustedError
        Somebody else can have written it, or it is no regular file.
    OSError
        It cannot be opened; a symbolic link cannot either.
    """
    # Without O_NONBLOCK a named pipe would wait here for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise UntrustedError("it is no regular file")
        check_mine(facts)
    except UntrustedError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def check_mine(facts: os.stat_result) -> None:
    """Raise `UntrustedError` unless only this user may write to what ``facts`` are of."""
    if facts.st_uid != os.geteuid():
        raise UntrustedError("it belongs to another user")
    if facts.st_mode & 0o022:
        raise UntrustedError("other users may write to it")


def read_head(file: BinaryIO) -> tuple[bytes, dict[str, Any]]:
    """The first line, as it is and as data; raises `DamagedError` where it is no JSON object."""
    line = file.readline(_LONGEST_HEAD)
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"its first line is no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise DamagedError(f"its first line should be an object, found {type(fields).__name__}")
    return line, fields


def read_state(file: BinaryIO, key: StateKey) -> bytes:
    """The state, where it is the one that was saved for ``key``; raises `DamagedError` if not."""
    line, found = read_head(file)
    for field, expected in key.fields().items():
        if found.get(field) != expected:
            raise DamagedError(f"{field!r} should be {expected!r}, found {found.get(field)!r}")
    size = os.fstat(file.fileno()).st_size - len(line)
    if found.get("size") != size:
        raise DamagedError(f"it should have {found.get('size')!r} bytes, found {size}")
    state = file.read(size)
    # Its head, letter by letter, is what this key and these bytes are saved under.
    if line != head_of(key, state, name=found.get("name")):
        raise DamagedError("its digest does not fit")
    return state
