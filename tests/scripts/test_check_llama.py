"""The check of a build names what crashed; here with a stand-in for the library."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

llama_build: Any = importlib.import_module("llama_build")
wheel_cache: Any = importlib.import_module("wheel_cache")

LIBRARY = """
import ctypes, os, signal, types
llama_token = ctypes.c_int32
mode = os.environ["STAND_IN"]
def nothing(*_): return None
llama_backend_init = llama_log_set = llama_memory_clear = llama_free = llama_model_free = nothing
def llama_log_callback(function): return function
def llama_supports_gpu_offload(): return False
def llama_model_default_params(): return types.SimpleNamespace()
def llama_context_default_params(): return types.SimpleNamespace()
def llama_model_load_from_file(path, params): return None if mode == "unloadable" else 1
def llama_init_from_model(model, params):
    assert params.n_threads > 0 and params.n_threads_batch > 0
    return 1
def llama_model_get_vocab(model): return 1
def llama_get_memory(context): return 1
def llama_vocab_n_tokens(vocab): return 3
def llama_tokenize(vocab, text, size, tokens, room, bos, special): return 600
def llama_batch_get_one(tokens, size): return size
def llama_decode(context, size):
    if size >= 8 and mode == "crash": os.kill(os.getpid(), signal.SIGILL)
    return -3 if mode == "fails" else 0
def llama_get_logits_ith(context, index):
    return [1.0, float("nan") if mode == "nan" else 2.0, 3.0]
"""


@pytest.mark.parametrize(
    ("mode", "checked", "reason"),
    [
        ("good", True, ""),
        ("crash", False, "killed by SIGILL while decoding 8 tokens of m.gguf"),
        ("nan", False, "decoding 1 tokens of m.gguf gave numbers that are not finite"),
        ("fails", False, "decoding 1 tokens of m.gguf failed with code -3"),
        ("unloadable", False, "it could load no model file"),
    ],
)
def test_the_check_tells_what_happens(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: str,
    checked: bool,
    reason: str,
) -> None:
    (tmp_path / "llama_cpp.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("STAND_IN", mode)
    build = wheel_cache.Build("1-avx2", "1", "avx2", (), (), "gcc 12.2.0")
    result = llama_build.check(build, Path(sys.executable), [tmp_path / "m.gguf"])
    assert (result.checked, result.reason) == (checked, reason)
    if mode == "good":
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if "decoding" in line] == [
            f"  check: decoding {size} tokens of m.gguf" for size in (1, 8, 64, 512)
        ]
