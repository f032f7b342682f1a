"""Writes small GGUF files that llama.cpp really loads and runs in milliseconds.

The weights are random and seeded, so what these models write makes no sense, but one seed always
writes the same. They share one vocabulary: all bytes, and merges for words of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

WIDTH = 64
WINDOW = 32
"""Tokens that a sliding layer of `write_gemma_swa` sees."""
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
USER_DEFINED = ("<tool_call>", "</tool_call>")
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WORDS = (
    "ACTION ANSWER THOUGHT OBSERVATION tool params name value result call add number query "
    "system user assistant the and of to in is it you that for with not are this have what one "
    "true false null"
)
_PIECES = ('{"', '":', '"}', '"}}', '","', ' {"', ' "', "\n\n", "  ")

Tensors = Callable[[GGUFWriter, "_Weights"], None]


def write_llama(
    path: Path, *, seed: int = 1, layers: int = 2, context: int = 2048, ends: bool = False
) -> Path:
    """A model of architecture ``llama``.

    Parameters
    ----------
    path
        File to write.
    seed
        Of the weights.
    layers
        How many; more of them make it slower.
    context
        Context window that it was "trained" with, in tokens.
    ends
        Whether it ends turns by itself; otherwise it writes until it is stopped, with any sampling
        that leaves out unlikely tokens.

    Returns
    -------
    Path
        ``path``.
    """

    def tensors(writer: GGUFWriter, weights: _Weights) -> None:
        _attention_keys(writer, layers, kv_heads=2)
        writer.add_rope_dimension_count(WIDTH // 4)
        for layer in range(layers):
            weights.attention(f"blk.{layer}", kv_heads=2)
            weights.feed_forward(f"blk.{layer}")

    return _write(path, "llama", seed, context, ends, tensors)


def write_gemma_swa(path: Path, *, seed: int = 1, context: int = 2048, ends: bool = False) -> Path:
    """A model of architecture ``gemma3``: five layers see the last 32 tokens, the sixth sees all.

    Parameters as for `write_llama`.
    """

    def tensors(writer: GGUFWriter, weights: _Weights) -> None:
        _attention_keys(writer, 6, kv_heads=1)
        writer.add_key_length(WIDTH // 4)
        writer.add_value_length(WIDTH // 4)
        writer.add_sliding_window(WINDOW)
        for layer in range(6):
            weights.attention(f"blk.{layer}", kv_heads=1)
            weights.feed_forward(f"blk.{layer}")
            weights.ones(f"blk.{layer}.attn_q_norm.weight", WIDTH // 4)
            weights.ones(f"blk.{layer}.attn_k_norm.weight", WIDTH // 4)
            weights.ones(f"blk.{layer}.post_attention_norm.weight", WIDTH)
            weights.ones(f"blk.{layer}.post_ffw_norm.weight", WIDTH)

    return _write(path, "gemma3", seed, context, ends, tensors)


def write_mamba(path: Path, *, seed: int = 1, context: int = 2048, ends: bool = False) -> Path:
    """A recurrent model of architecture ``mamba``, whose cache cannot drop a part.

    Parameters as for `write_llama`.
    """
    inner, state, rank, kernel = 2 * WIDTH, 16, WIDTH // 16, 4

    def tensors(writer: GGUFWriter, weights: _Weights) -> None:
        writer.add_block_count(2)
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(kernel)
        writer.add_ssm_inner_size(inner)
        writer.add_ssm_state_size(state)
        writer.add_ssm_time_step_rank(rank)
        for block in ("blk.0", "blk.1"):
            weights.ones(f"{block}.attn_norm.weight", WIDTH)
            weights.matrix(f"{block}.ssm_in.weight", 2 * inner, WIDTH)
            weights.matrix(f"{block}.ssm_conv1d.weight", inner, kernel)
            weights.zeros(f"{block}.ssm_conv1d.bias", inner)
            weights.matrix(f"{block}.ssm_x.weight", rank + 2 * state, inner)
            weights.matrix(f"{block}.ssm_dt.weight", inner, rank)
            weights.zeros(f"{block}.ssm_dt.bias", inner)
            decay = -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1))
            writer.add_tensor(f"{block}.ssm_a", decay)
            weights.ones(f"{block}.ssm_d", inner)
            weights.matrix(f"{block}.ssm_out.weight", WIDTH, inner)

    return _write(path, "mamba", seed, context, ends, tensors)


def _write(
    path: Path, architecture: str, seed: int, context: int, ends: bool, tensors: Tensors
) -> Path:
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    size = _add_vocabulary(writer)
    weights = _Weights(writer, seed)
    weights.matrix("token_embd.weight", size, WIDTH)
    weights.ones("output_norm.weight", WIDTH)
    # Rows of nothing: the logit of such a token is 0, and many others are always above that.
    weights.matrix("output.weight", size, WIDTH, empty=0 if ends else len(CONTROL))
    tensors(writer, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _attention_keys(writer: GGUFWriter, layers: int, *, kv_heads: int) -> None:
    writer.add_block_count(layers)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(4)
    writer.add_head_count_kv(kv_heads)


class _Weights:
    """Adds tensors with seeded values to a file."""

    def __init__(self, writer: GGUFWriter, seed: int) -> None:
        self._writer = writer
        self._random = np.random.default_rng(seed)

    def matrix(self, name: str, rows: int, columns: int, *, empty: int = 0) -> None:
        """Values that keep the size of what they are multiplied with; the first rows may be 0."""
        values = self._random.normal(0, columns**-0.5, (rows, columns))
        values[:empty] = 0
        self._writer.add_tensor(name, values.astype(np.float32))

    def ones(self, name: str, size: int) -> None:
        self._writer.add_tensor(name, np.ones(size, dtype=np.float32))

    def zeros(self, name: str, size: int) -> None:
        self._writer.add_tensor(name, np.zeros(size, dtype=np.float32))

    def attention(self, block: str, *, kv_heads: int) -> None:
        self.ones(f"{block}.attn_norm.weight", WIDTH)
        self.matrix(f"{block}.attn_q.weight", WIDTH, WIDTH)
        self.matrix(f"{block}.attn_k.weight", kv_heads * WIDTH // 4, WIDTH)
        self.matrix(f"{block}.attn_v.weight", kv_heads * WIDTH // 4, WIDTH)
        self.matrix(f"{block}.attn_output.weight", WIDTH, WIDTH)

    def feed_forward(self, block: str) -> None:
        self.ones(f"{block}.ffn_norm.weight", WIDTH)
        self.matrix(f"{block}.ffn_gate.weight", 2 * WIDTH, WIDTH)
        self.matrix(f"{block}.ffn_up.weight", 2 * WIDTH, WIDTH)
        self.matrix(f"{block}.ffn_down.weight", WIDTH, 2 * WIDTH)


def _add_vocabulary(writer: GGUFWriter) -> int:
    """A byte-level BPE vocabulary; returns its size. The control tokens come first."""
    letters = _byte_letters()
    merges, merged = _merges(letters)
    tokens = [*CONTROL, *USER_DEFINED, *letters, *merged]
    kinds = [TokenType.CONTROL] * len(CONTROL) + [TokenType.USER_DEFINED] * len(USER_DEFINED)
    kinds += [TokenType.NORMAL] * (len(tokens) - len(kinds))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(CONTROL.index("<|endoftext|>"))
    writer.add_eos_token_id(CONTROL.index("<|im_end|>"))
    writer.add_eot_token_id(CONTROL.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)
    return len(tokens)


def _byte_letters() -> list[str]:
    """The printable character that stands for each byte in vocabularies of this kind."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _merges(letters: list[str]) -> tuple[list[str], list[str]]:
    """Merges that build words from the left, and the tokens that come of them."""
    words = _WORDS.split()
    merges: dict[str, str] = {}
    for word in [*words, *(f" {word}" for word in words), *_PIECES]:
        spelled = "".join(letters[byte] for byte in word.encode())
        for end in range(1, len(spelled)):
            merges.setdefault(f"{spelled[:end]} {spelled[end]}", spelled[: end + 1])
    return list(merges), list(dict.fromkeys(merges.values()))
