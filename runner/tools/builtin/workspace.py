"""The one folder that file tools may use, and the ways into it."""

from __future__ import annotations

import difflib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from runner.core.errors import ConfigError, ErrorKind, ToolError
from runner.tools.builtin.text import one_line

MAX_PATH = 4000
PATH_CHARS = 200  # what a model may write: enough for real paths, and it cannot ramble on
MAX_DEPTH = 40
_MOST_SIBLINGS = 2000
_LONGEST_NAME = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO that somebody put here meanwhile must not wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ADVICE = "only paths inside the workspace can be used, such as notes.txt or docs/notes.txt"
_KINDS = {
    errno.ENOENT: ErrorKind.NOT_FOUND,
    errno.ENOTDIR: ErrorKind.NOT_FOUND,
    errno.EACCES: ErrorKind.DENIED,
    errno.EPERM: ErrorKind.DENIED,
    errno.EROFS: ErrorKind.DENIED,
    errno.ELOOP: ErrorKind.DENIED,
    errno.ENAMETOOLONG: ErrorKind.DENIED,
}


class Workspace:
    """A folder that paths from a model are confined to.

    A path is first resolved, part by part, and must stay inside at every step. What is then opened
    is reached from the folder down without following any link, so nothing can be swapped in
    between.

    Parameters
    ----------
    root
        An existing folder.

    Attributes
    ----------
    root
        The folder, as an absolute path without links.

    Raises
    ------
    ConfigError
        It is missing, or no folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        if not os.path.isdir(self.root):  # noqa: PTH112 - unlike Path's, it never raises
            what = "is not a folder" if os.path.lexists(self.root) else "does not exist"
            raise ConfigError(
                f"the workspace {str(root)!r} {what}",
                hint="give an existing folder; file tools can use only what is in it",
            )
        self._spellings = (str(self.root).rstrip("/"), str(root.absolute()).rstrip("/"))

    def resolve(self, path: str, *, writing: bool = False) -> Path:
        """The real place inside the workspace that ``path`` means.

        Parameters
        ----------
        path
            As the model wrote it: relative to the workspace, or absolute and inside it.
        writing
            The file may be missing, but must be safe to write.

        Raises
        ------
        ToolError
            ``denied`` where it leads outside or to something that is no plain file or folder,
            ``not_found`` where there is nothing.
        """
        place = self.root
        for part in self._parts(path):
            link = place / part
            if part == "..":
                place = place.parent
            elif os.path.islink(link):  # noqa: PTH114 - unlike Path's, it never raises
                place = Path(os.path.realpath(link))
                if writing and not os.path.lexists(place) and place.is_relative_to(self.root):
                    raise _denied(path, "is a link that leads nowhere")
            else:
                place = link
            if not place.is_relative_to(self.root):
                raise _denied(path, "leads out of the workspace")
        if writing:
            self._check_writable(path, place)
        with os_errors(one_line(path, 100)):
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                if writing:
                    return place
                raise self._missing(place) from None
            except NotADirectoryError:
                raise self._missing(place) from None
        if stat.S_ISLNK(found.st_mode):
            raise _denied(path, "is a link that leads nowhere")
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise _denied(path, "is not a plain file or folder")
        if writing and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            raise _denied(path, "has a second name elsewhere (hard link) and cannot be written")
        return place

    def name(self, place: Path) -> str:
        """How a resolved place is called in the workspace: ``docs/notes.txt``, ``.``."""
        return one_line(place.relative_to(self.root).as_posix(), _LONGEST_NAME)

    @contextmanager
    def open_folder(self, place: Path, *, create: bool = False) -> Iterator[int]:
        """A descriptor of a resolved folder; ``create`` makes missing ones.

        Raises
        ------
        ToolError
            It cannot be opened.
        """
        with os_errors(self.name(place)):
            descriptor = os.open(self.root, _FOLDER)
        try:
            with os_errors(self.name(place)):
                for part in place.relative_to(self.root).parts:
                    if create:
                        with suppress(FileExistsError):
                            os.mkdir(part, dir_fd=descriptor)
                    below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                    os.close(descriptor)
                    descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def open_file(self, place: Path) -> Iterator[BinaryIO]:
        """A resolved file, opened for reading.

        Raises
        ------
        ToolError
            It is a folder, or cannot be opened.
        """
        shown = self.name(place)
        at_root = place == self.root
        with self.open_folder(place if at_root else place.parent) as folder:

            def opener(name: str, _: int) -> int:
                return os.open(name, _FILE, dir_fd=folder)

            with os_errors(shown):
                file = open("." if at_root else place.name, "rb", opener=opener)  # noqa: SIM115
        with file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _denied(shown, "is not a plain file")
            yield file

    def walk(
        self, place: Path, *, recursive: bool = True
    ) -> Iterator[tuple[Path, list[str], list[str], int]]:
        """Folders below a resolved one, top down, as ``os.fwalk`` gives them.

        Yields the folder, the names of the folders in it, those of all else, and a descriptor that
        is valid until the next step. Links are named but never followed; when recursive, ``.git``
        is skipped, and so is what lies more than `MAX_DEPTH` levels down.
        """
        with self.open_folder(place) as start:
            for path, folders, others, here in os.fwalk(".", dir_fd=start):
                if recursive:
                    folders[:] = [name for name in folders if name != ".git"]
                # Hidden folders come last: .venv must not use up a search before src is reached.
                folders.sort(key=lambda name: (name.startswith("."), name))
                yield place / path, list(folders), sorted(others), here
                if not recursive or path.count("/") >= MAX_DEPTH:
                    folders.clear()

    def _parts(self, path: str) -> list[str]:
        if "\0" in path or len(path) > MAX_PATH:
            what = "is too long" if len(path) > MAX_PATH else "holds a NUL character"
            raise _denied(path, what)
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise _denied(path, "is not valid text") from error
        inside = path
        if path.startswith("/"):
            tops = [top for top in self._spellings if f"{path}/".startswith(f"{top}/")]
            if not tops:
                raise self._absolute(path)
            inside = path[len(tops[0]) :]
        parts = [part for part in inside.split("/") if part not in ("", ".")]
        if parts and parts[0].startswith("~") and not os.path.lexists(self.root / parts[0]):
            raise _denied(path, "begins with ~, which is not the workspace")
        return parts

    def _absolute(self, path: str) -> ToolError:
        """An absolute path elsewhere; says which relative one was meant, if there is one."""
        inside = path.strip("/") or "."
        try:
            self.resolve(inside)
        except ToolError:
            return _denied(path, "is outside of the workspace")
        return _denied(path, "is outside of the workspace", f"use {one_line(inside)}")

    def _check_writable(self, path: str, place: Path) -> None:
        parts = place.relative_to(self.root).parts
        if len(parts) > MAX_DEPTH:
            raise _denied(path, f"is more than {MAX_DEPTH} folders deep")
        # Git runs commands that are named in its own files.
        if any(part.casefold() == ".git" for part in parts):
            raise _denied(path, "is part of a Git repository's own data and cannot be written")

    def _missing(self, place: Path) -> ToolError:
        """Names what is missing, and what is there with a similar name."""
        parent, wanted, rest = place.parent, place.name, Path()
        while parent != self.root and not os.path.lexists(parent):
            parent, wanted, rest = parent.parent, parent.name, wanted / rest
        shown = self.name(place)
        if not parent.is_dir():
            message = f"there is no {shown}, because {self.name(parent)} is a file, not a folder"
            return ToolError(message, kind=ErrorKind.NOT_FOUND)
        with os.scandir(parent) as found:
            siblings = itertools.islice(found, _MOST_SIBLINGS)
            names = {entry.name.lower(): entry.name for entry in siblings}
        close = []
        for match in difflib.get_close_matches(wanted.lower(), sorted(names), 2):
            candidate = parent / names[match]
            whole = candidate / rest
            close.append(self.name(whole if os.path.lexists(whole) else candidate))
        advice = "list_files shows what there is"
        if close:
            advice = f"did you mean {' or '.join(close)}?"
        return ToolError(f"there is no {shown}; {advice}", kind=ErrorKind.NOT_FOUND)


@contextmanager
def os_errors(shown: str) -> Iterator[None]:
    """Turns an OSError into a ToolError that calls the file ``shown``, never by its real path."""
    try:
        yield
    except IsADirectoryError as error:
        message = f"{shown} is a folder; list_files shows what is in it"
        raise ToolError(message, kind=ErrorKind.INVALID_INPUT) from error
    except OSError as error:
        kind = _KINDS.get(error.errno or 0, ErrorKind.FAILED)
        raise ToolError(f"{shown}: {os.strerror(error.errno or 0)}", kind=kind) from error


def _denied(path: str, what: str, advice: str = _ADVICE) -> ToolError:
    return ToolError(f"{one_line(path, 100)} {what}; {advice}", kind=ErrorKind.DENIED)
