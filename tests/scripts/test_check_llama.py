"""The check of a build names what crashed; here with a stand-in for the library."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

build_check: Any = importlib.import_module("build_check")
wheel_cache: Any = importlib.import_module("wheel_cache")

LIBRARY = """
import ctypes, os, signal, types
llama_token = ctypes.c_int32
mode = os.environ["STAND_IN"]
def nothing(*_): return None
llama_backend_init = llama_synchronize = nothing
llama_log_set = llama_memory_clear = llama_free = llama_model_free = nothing
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
    if size == 300 and mode == "dies when measured": os.kill(os.getpid(), signal.SIGILL)
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
        ("dies when measured", False, "killed by SIGILL while measuring m.gguf"),
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
    result = build_check.check(build, Path(sys.executable), [tmp_path / "m.gguf"])
    assert (result.checked, result.reason) == (checked, reason)
    assert (result.speed is not None) == checked
    if mode == "good":
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if "decoding" in line] == [
            f"  check: decoding {size} tokens of m.gguf" for size in (1, 8, 64, 512)
        ]


def test_the_smallest_model_that_loads_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = LIBRARY.replace('mode == "unloadable"', "b'strange' in path")
    (tmp_path / "llama_cpp.py").write_text(refusing)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("STAND_IN", "good")
    build = wheel_cache.Build("1-avx2", "1", "avx2", (), (), "gcc 12.2.0", checked=True)
    files = [tmp_path / name for name in ("strange.gguf", "small.gguf", "large.gguf")]
    speed = build_check.measure(build, Path(sys.executable), files).speed
    assert speed.model == "small.gguf"
    assert speed.prompt > 0 and speed.decode > 0 and speed.threads > 0
    assert build_check.measure(build, Path(sys.executable), files[:1]).speed is None


def test_large_models_are_left_out_of_the_check(tmp_path: Path) -> None:
    sizes = {"huge.gguf": 9_000_000_000, "mid.gguf": 4000, "small.gguf": 300, "notes.txt": 1}
    for name, size in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    found = build_check.check_files(tmp_path)
    assert [path.name for path in found] == ["small.gguf", "mid.gguf"]
    for name in ("small.gguf", "mid.gguf"):
        (tmp_path / name).unlink()
    assert [path.name for path in build_check.check_files(tmp_path)] == ["huge.gguf"]
