"""Decodes real tokens of one model in batches of several sizes; the caller sees whether this dies.

Run by scripts/setup.py in a child process, since a bad build ends the whole process: the code for
batches differs from the code for single tokens, and for AMX from that for AVX.

usage: check_llama.py THREADS [MODEL.gguf]      (no MODEL: only load the library)

Exit codes: 0 all good, 1 wrong numbers or a failed decode, 3 the model cannot be loaded here.
"""

from __future__ import annotations

import ctypes
import math
import resource
import sys
from pathlib import Path
from typing import Any

import llama_cpp as lib

BATCHES = (1, 8, 64, 512)
_CONTEXT = 1024
_TEXT = b"The quick brown fox jumps over the lazy dog while 123 people watch from 45 windows. " * 64
_CANNOT_LOAD = 3


def main(threads: int, path: Path | None) -> int:
    # A core file of a process that holds a model is of no use to anybody, and large.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lib.llama_backend_init()
    if path is None:
        print("the library loads", flush=True)
        return 0
    quiet = lib.llama_log_callback(lambda level, text, data: None)
    lib.llama_log_set(quiet, ctypes.c_void_p(0))
    # Builds for a GPU still use the processor for what does not fit there: check both.
    for layers in (0, -1) if lib.llama_supports_gpu_offload() else (0,):
        code = check(path, threads, layers)
        if code:
            return code
    return 0


def check(path: Path, threads: int, gpu_layers: int) -> int:
    """Load and decode; the line before each batch is what names the batch when this dies."""
    where = f"{path.name} on the GPU" if gpu_layers else path.name
    print(f"loading {where}", flush=True)
    params = lib.llama_model_default_params()
    params.n_gpu_layers = gpu_layers
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    context = make_context(model, threads) if model else None
    if not context:
        return _CANNOT_LOAD
    vocab = lib.llama_model_get_vocab(model)
    tokens = tokenize(vocab)
    for size in BATCHES:
        step = f"decoding {size} tokens of {where}"
        print(step, flush=True)
        fault = decode(context, vocab, tokens, size)
        if fault:
            print(f"{step} {fault}", flush=True)
            return 1
    lib.llama_free(context)
    lib.llama_model_free(model)
    return 0


def make_context(model: Any, threads: int) -> Any:
    params = lib.llama_context_default_params()
    params.n_ctx = _CONTEXT
    params.n_batch = params.n_ubatch = max(BATCHES)
    params.n_threads = params.n_threads_batch = threads
    return lib.llama_init_from_model(model, params)


def tokenize(vocab: Any) -> Any:
    size = len(_TEXT)
    tokens = (lib.llama_token * size)()
    count = lib.llama_tokenize(vocab, _TEXT, size, tokens, size, True, False)
    if count < max(BATCHES):
        raise SystemExit(f"expected {max(BATCHES)} tokens at least, found {count}")
    return tokens


def decode(context: Any, vocab: Any, tokens: Any, size: int) -> str:
    """What is wrong with the result of one batch on an empty context; empty when nothing is."""
    lib.llama_memory_clear(lib.llama_get_memory(context), True)
    code = lib.llama_decode(context, lib.llama_batch_get_one(tokens, size))
    if code:
        return f"failed with code {code}"
    logits = lib.llama_get_logits_ith(context, -1)[: lib.llama_vocab_n_tokens(vocab)]
    if not all(map(math.isfinite, logits)):
        return "gave numbers that are not finite"
    if min(logits) == max(logits):
        return "gave the same number for every next token"
    return ""


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
