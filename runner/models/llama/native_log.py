"""What llama.cpp says about its work."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import llama_cpp as lib

_DEBUG, _CONTINUED = 1, 5


class _Log:
    def __init__(self) -> None:
        self._shown = True

    def __call__(self, level: int, text: bytes, data: Any) -> None:
        if level != _CONTINUED:
            self._shown = level > _DEBUG
        if self._shown:
            sys.stderr.write(text.decode("utf-8", "replace"))


_CALLBACK = lib.llama_log_callback(_Log())


def keep_out_details() -> None:
    """Write its messages to stderr, without the thousands that are for its own developers."""
    lib.llama_log_set(_CALLBACK, ctypes.c_void_p(0))
