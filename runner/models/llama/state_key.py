"""What a saved state of a KV cache belongs to."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.core.errors import ModelFileError

_FORMAT = 1
_ENDS = 1 << 20
_BLOCKS = 16
_BLOCK = 1 << 16


@dataclass(frozen=True)
class StateKey:
    """What a state belongs to: it is used again only where all of this is the same.

    Attributes
    ----------
    model
        Identity of the model file, see `model_identity`.
    build
        The engine: its version, and what it says about system and processor.
    parameters
        Whatever shapes the context: window, types of K and V, flash attention, batch sizes, layers
        on a GPU. JSON values.
    tokens
        The tokens that the state stands for, in order.
    name
        The model's name, for people. No part of the key.
    """

    model: str
    build: str
    parameters: Mapping[str, str | int | float | bool | None]
    tokens: Sequence[int]
    name: str = field(default="", compare=False)

    def fields(self) -> dict[str, Any]:
        """The key as JSON-ready data, with the digest and the number of the tokens."""
        return {
            "format": _FORMAT,
            "model": self.model,
            "build": self.build,
            "parameters": dict(self.parameters),
            "tokens": len(self.tokens),
            "tokens_digest": digest(canonical(list(self.tokens))).hexdigest(),
        }

    def digest(self) -> str:
        """32 hex digits over all of the key; the name of its file."""
        return digest(canonical(self.fields())).hexdigest()[:32]


def model_identity(path: Path) -> str:
    """A cheap stand-in for the digest of a model file, which takes seconds: 64 hex digits.

    It covers the size, the time of the last change, the first and the last MiB, and 16 blocks of
    64 KiB in between. A file that was changed elsewhere only, with its old time set again, is
    taken for the same.

    Raises
    ------
    ModelFileError
        The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            whole = digest(canonical([facts.st_size, facts.st_mtime_ns]))
            whole.update(file.read(_ENDS))
            for number in range(1, _BLOCKS + 1):
                file.seek(facts.st_size * number // (_BLOCKS + 1))
                whole.update(file.read(_BLOCK))
            file.seek(max(facts.st_size - _ENDS, 0))
            whole.update(file.read(_ENDS))
    except OSError as error:
        raise ModelFileError(
            f"cannot read the model file {path}: {error.strerror}",
            hint="`runner models list` shows which files are there",
        ) from error
    return whole.hexdigest()


def canonical(data: Any) -> bytes:
    """JSON in one spelling only."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(data: bytes) -> hashlib.blake2b:
    """A digest of 64 hex digits, to which more can be added."""
    # Quick on every processor; SHA-256 is so only on those that have instructions for it.
    return hashlib.blake2b(data, digest_size=32)
