"""Decodes real tokens of one model in batches of several sizes; the caller sees whether this dies.

Run by scripts/setup.py in a child process, since a bad build ends the whole process: the code for
batches differs from the code for single tokens, and for AMX from that for AVX.

usage: check_llama.py THREADS [MODEL.gguf [measure]]

Without MODEL it only loads the library; with `measure` it prints how fast the model reads and
writes, which takes a few seconds, instead of checking anything.

Exit codes: 0 all good, 1 wrong numbers or a failed decode, 3 the model cannot be loaded here.
"""

from __future__ import annotations

import ctypes
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import llama_cpp as lib
from speed import PROMPT_TOKENS, WRITTEN_TOKENS, Speed

BATCHES = (1, 8, 64, 512)
_CONTEXT = 1024
_TEXT = b"The quick brown fox jumps over the lazy dog while 123 people watch from 45 windows. " * 64
_CANNOT_LOAD = 3
# The best of a few rounds, since other work on the machine only ever makes one slower.
_ROUNDS = 3
_ROUNDS_SECONDS = 5


def main(threads: int, path: Path | None = None, what: str = "check") -> int:
    # A core file of a process that holds a model is of no use to anybody, and large.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lib.llama_backend_init()
    if path is None:
        print("the library loads", flush=True)
        return 0
    quiet = lib.llama_log_callback(lambda level, text, data: None)
    lib.llama_log_set(quiet, ctypes.c_void_p(0))
    if what == "measure":
        return measure(path, threads)
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
    model = load(path, gpu_layers)
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


def measure(path: Path, threads: int) -> int:
    """Print the rates of a prompt in one batch and of tokens one at a time after it."""
    model = load(path, -1 if lib.llama_supports_gpu_offload() else 0)
    context = make_context(model, threads) if model else None
    if not context:
        return _CANNOT_LOAD
    tokens = tokenize(lib.llama_model_get_vocab(model))
    started = time.perf_counter()
    prompt, decode = time_round(context, tokens)
    for _ in range(_ROUNDS - 1):
        if time.perf_counter() - started > _ROUNDS_SECONDS:
            break
        again = time_round(context, tokens)
        prompt, decode = min(prompt, again[0]), min(decode, again[1])
    print(Speed(path.name, PROMPT_TOKENS / prompt, WRITTEN_TOKENS / decode, threads), flush=True)
    return 0


def time_round(context: Any, tokens: Any) -> tuple[float, float]:
    """Seconds for the prompt, and for the tokens after it."""
    lib.llama_memory_clear(lib.llama_get_memory(context), True)
    times = [time.perf_counter()]
    for size, count in ((PROMPT_TOKENS, 1), (1, WRITTEN_TOKENS)):
        for _ in range(count):
            code = lib.llama_decode(context, lib.llama_batch_get_one(tokens, size))
            if code:
                raise SystemExit(f"decoding {size} tokens failed with code {code}")
            lib.llama_synchronize(context)
        times.append(time.perf_counter())
    return times[1] - times[0], times[2] - times[1]


def load(path: Path, gpu_layers: int) -> Any:
    params = lib.llama_model_default_params()
    params.n_gpu_layers = gpu_layers
    return lib.llama_model_load_from_file(str(path).encode(), params)


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
    sys.exit(main(int(sys.argv[1]), *map(Path, sys.argv[2:3]), *sys.argv[3:4]))
