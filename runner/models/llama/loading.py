"""Loads a model file and makes its context: all choices about memory, batches and threads."""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp as lib

from runner.core.errors import ModelError, ModelFileError
from runner.models.llama.drafts import MOST
from runner.models.llama.threads import usable_cores
from runner.models.settings import ModelSettings

DEFAULT_CONTEXT = 4096
BATCH, BATCH_GPU = 128, 512
"""Prompt tokens a batch: on a CPU larger ones are no faster, take memory and hide the progress."""
_KV_TYPES = {"f16": lib.GGML_TYPE_F16, "q8_0": lib.GGML_TYPE_Q8_0}
_LOADING_STEP = 0.02


@dataclass(frozen=True)
class Loaded:
    """A loaded model.

    Attributes
    ----------
    model, context
        llama.cpp's pointers.
    batch
        Most tokens in one batch.
    forgets
        Whether a part of what was read can be dropped again.
    seconds
        How long the file took.
    """

    model: Any
    context: Any
    batch: int
    threads: int
    flash_attention: bool
    forgets: bool
    seconds: float


def load(
    settings: ModelSettings, architecture: str | None, on_loading: Callable[[float], None]
) -> Loaded:
    """Load the model of ``settings``, whose ``path`` is absolute here.

    Parameters
    ----------
    architecture
        What the head of the file says, for the message when llama.cpp does not know it.
    on_loading
        Is told now and then what share of the file is loaded, from 0 to 1.

    Raises
    ------
    ModelFileError
        llama.cpp does not load the file.
    ModelError
        There is no memory for the context.
    """
    lib.llama_backend_init()
    started = time.perf_counter()
    model = _load_file(settings, architecture, on_loading)
    loaded_at = time.perf_counter()
    gpu = lib.llama_supports_gpu_offload() and settings.gpu_layers != 0
    threads = settings.threads or usable_cores()
    flash = settings.flash_attention
    if flash == "auto":
        # On a CPU it reads prompts 10 % faster and writes 15 to 30 % slower (2,000 tokens in).
        flash = "on" if gpu or settings.kv_cache != "f16" else "off"
    params = lib.llama_context_default_params()
    trained = lib.llama_model_n_ctx_train(model)
    params.n_ctx = settings.context or min(DEFAULT_CONTEXT, trained)
    params.n_batch = params.n_ubatch = settings.batch or (BATCH_GPU if gpu else BATCH)
    params.n_outputs_max = 1 + MOST
    params.n_threads = threads
    params.n_threads_batch = settings.prompt_threads or threads
    params.type_k = params.type_v = _KV_TYPES[settings.kv_cache]
    params.flash_attn_type = int(flash == "on")
    # A full-size cache for sliding-window layers, so that a prefix can be kept between turns.
    params.swa_full = True
    params.no_perf = True
    context = lib.llama_init_from_model(model, params)
    if not context:
        raise ModelError(
            f"llama.cpp could not make a context window of {params.n_ctx} tokens "
            f"(kv_cache {settings.kv_cache}, flash_attention {flash})",
            hint="lower `context` for this model in models.toml, "
            "or leave out `kv_cache` and `flash_attention`",
        )
    _let_go_of_copied_pages(settings.path)
    return Loaded(
        model=model,
        context=context,
        batch=params.n_batch,
        threads=threads,
        flash_attention=flash == "on",
        seconds=loaded_at - started,
        forgets=not (lib.llama_model_is_recurrent(model) or lib.llama_model_is_hybrid(model)),
    )


def _load_file(
    settings: ModelSettings, architecture: str | None, on_loading: Callable[[float], None]
) -> Any:
    told = 0.0

    def progress(share: float, data: Any) -> bool:
        nonlocal told
        if share - told >= _LOADING_STEP:
            told = share
            on_loading(share)
        return True

    params = lib.llama_model_default_params()
    layers = settings.gpu_layers
    params.n_gpu_layers = -1 if layers == "auto" else layers
    callback = lib.llama_progress_callback(progress)
    params.progress_callback = callback
    model = lib.llama_model_load_from_file(str(settings.path).encode(), params)
    if not model:
        raise ModelFileError(
            f"llama.cpp could not load {settings.path} "
            f"(architecture {architecture!r}, llama-cpp-python {lib.__version__})",
            hint="the engine's own words are above; a newer model may need a newer engine",
        )
    return model


def _let_go_of_copied_pages(path: Path) -> None:
    """Unmap the pages of the file for now: llama.cpp has copies of some of its tensors.

    What is used comes back from the page cache when it is read next.
    """
    libc = ctypes.CDLL(None)
    try:
        maps = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    name = str(path.resolve())
    for line in maps:
        if line.endswith(name):
            first, last = (int(place, 16) for place in line.split()[0].split("-"))
            address, size = ctypes.c_void_p(first), ctypes.c_size_t(last - first)
            libc.madvise(address, size, mmap.MADV_DONTNEED)
