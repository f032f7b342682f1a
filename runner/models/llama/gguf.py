"""Reads the head of a GGUF file: enough to refuse a bad file before native code sees it.

The format is described in llama.cpp's ``docs/gguf.md``. The `gguf` package reads it too, but it
materialises every vocabulary entry, which takes 9 to 17 seconds for the files in `models.toml`;
this reader skips what it does not need.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.errors import ModelFileError

MAGIC = b"GGUF"
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_LONGEST_KEPT_ARRAY = 64
# ggml type -> (weights in a block, bytes of a block), from ggml's type traits.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True)
class GGUFHeader:
    """What the head of a file says.

    Attributes
    ----------
    metadata
        Scalars, strings and arrays of up to 64 scalars; longer arrays are their length as ``int``.
    tensors
        Number of tensors.
    data_end
        Byte behind the last tensor: the least size of an intact file.
    size
        Size of the file in bytes.
    """

    version: int
    metadata: dict[str, Any]
    tensors: int
    data_end: int
    size: int

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", "unknown"))

    @property
    def context_train(self) -> int | None:
        """Context length that the model was trained with, in tokens, where the file says so."""
        value = self.metadata.get(f"{self.architecture}.context_length")
        return value if isinstance(value, int) else None

    @property
    def chat_template(self) -> str | None:
        value = self.metadata.get("tokenizer.chat_template")
        return value if isinstance(value, str) else None


def read_header(path: Path) -> GGUFHeader:
    """Read and check the head of a GGUF file.

    Raises
    ------
    ModelFileError
        The file is missing, no GGUF, cut short, or one part of a split model without the others.
    """
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing"
        raise ModelFileError(
            f"expected a GGUF model file at {path}, found {found}",
            hint="get it with `runner models pull NAME`, or correct `path` in models.toml",
        )
    _check_parts(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(256)
        if start[:4] != MAGIC:
            raise ModelFileError(
                f"{path} is not a GGUF file: {_what_is(start, size)}",
                hint="a GGUF file begins with the four letters GGUF; download the model again",
            )
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data, size).header()
        except (struct.error, IndexError, ValueError) as error:
            raise ModelFileError(
                f"{path} ends inside its own header ({size:,} bytes): {error}",
                hint="the file was cut short or damaged; download the model again",
            ) from error


def check_complete(path: Path, header: GGUFHeader) -> None:
    """Raise `ModelFileError` with both sizes when the file ends before its last tensor does."""
    if header.size < header.data_end:
        raise ModelFileError(
            f"{path} is cut short: it has {header.size:,} bytes, "
            f"its tensors need {header.data_end:,}",
            hint="the download or copy broke off; delete the file and get the model again",
        )


class _Reader:
    def __init__(self, data: mmap.mmap, size: int) -> None:
        self.data = data
        self.size = size
        self.at = 4

    def header(self) -> GGUFHeader:
        version = self.scalar("I")
        if version not in (2, 3):
            raise ValueError(f"GGUF version 2 or 3 expected, found {version}")
        tensors, pairs = self.scalar("Q"), self.scalar("Q")
        if tensors > 1_000_000 or pairs > 1_000_000:
            raise ValueError(f"it claims {tensors} tensors and {pairs} metadata entries")
        metadata = {}
        for _ in range(pairs):
            key = self.string()
            metadata[key] = self.value(self.scalar("I"))
        end = 0
        for _ in range(tensors):
            end = max(end, self.tensor_end())
        alignment = int(metadata.get("general.alignment", 32))
        data_start = -(-self.at // alignment) * alignment
        return GGUFHeader(version, metadata, tensors, data_start + end, self.size)

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        end = self.at + length
        if end > self.size:
            raise ValueError(f"a text of {length} bytes begins at byte {self.at}")
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end
        return text

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind])
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        raise ValueError(f"unknown metadata type {kind} at byte {self.at}")

    def array(self) -> Any:
        kind, count = self.scalar("I"), self.scalar("Q")
        if count > self.size:
            raise ValueError(f"an array claims {count} entries")
        if count <= _LONGEST_KEPT_ARRAY:
            return [self.value(kind) for _ in range(count)]
        if kind in _SCALARS:
            self.at += count * struct.calcsize("<" + _SCALARS[kind])
        elif kind == _STRING:
            unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
            for _ in range(count):
                at += 8 + unpack(data, at)[0]
            self.at = at
        else:
            raise ValueError(f"an array of type {kind} with {count} entries")
        return count

    def tensor_end(self) -> int:
        self.string()
        weights = 1
        for _ in range(self.scalar("I")):
            weights *= self.scalar("Q")
        kind, offset = self.scalar("I"), self.scalar("Q")
        per_block, block_bytes = _BLOCKS.get(kind, (1, 0))
        return int(offset + weights // per_block * block_bytes)


def _what_is(start: bytes, size: int) -> str:
    if size == 0:
        return "it is empty"
    if start.startswith(b"version https://git-lfs"):
        return f"it is a Git LFS pointer of {size} bytes, not the model itself"
    if start[:4] in (b"ggml", b"ggjt", b"lmgg", b"tjgg"):
        return "it is in an older ggml format that current engines do not read"
    if start[:4] == b"FUGG":
        return "its bytes are in reverse order"
    if start[:4] == b"PK\x03\x04":
        return "it is a zip archive"
    if start.lstrip()[:1] == b"<":
        return f"it looks like an HTML or XML page of {size:,} bytes"
    if b"\0" not in start and start.isascii():
        return f"it is a text file of {size:,} bytes that begins with {start[:24].decode()!r}"
    return f"it begins with the bytes {start[:4].hex(' ')}"


def _check_parts(path: Path) -> None:
    match = re.fullmatch(r"(.+)-(\d{5})-of-(\d{5})\.gguf", path.name)
    if not match:
        return
    stem, number, total = match.group(1), int(match.group(2)), int(match.group(3))
    if number != 1:
        raise ModelFileError(
            f"{path} is part {number} of a split model",
            hint=f"point `path` at the first part, {stem}-00001-of-{total:05}.gguf",
        )
    for part in range(1, total + 1):
        name = f"{stem}-{part:05}-of-{total:05}.gguf"
        if not (path.parent / name).is_file():
            raise ModelFileError(
                f"{path} is a split model of {total} parts, and part {part} is missing",
                hint=f"put {name} into the same folder",
            )
