"""Writes small GGUF files for tests: a whole head with made-up tensors."""

from __future__ import annotations

import struct
from pathlib import Path

STRING, ARRAY, UINT32, BOOL = 8, 9, 4, 7


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(metadata: list[tuple[str, int, bytes]], tensors: list[tuple[str, int, int]]) -> bytes:
    """``metadata``: key, type, packed value. ``tensors``: name, weights, ggml type (f32 is 0)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, kind, value in metadata:
        head += text(key) + struct.pack("<I", kind) + value
    offset, data = 0, b""
    for name, weights, kind in tensors:
        head += text(name) + struct.pack("<IQIQ", 1, weights, kind, offset)
        data += b"\0" * (weights * 4)
        offset = len(data)
    return head + b"\0" * (-len(head) % 32) + data


def write_small(path: Path) -> Path:
    words = b"".join(text(f"word{i}") for i in range(500))
    path.write_bytes(
        gguf(
            [
                ("general.architecture", STRING, text("llama")),
                ("llama.context_length", UINT32, struct.pack("<I", 2048)),
                ("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, 500) + words),
                ("tokenizer.chat_template", STRING, text("{{ messages }}")),
            ],
            [("a", 64, 0), ("b", 32, 0)],
        )
    )
    return path
