"""llama.cpp behind a small face: load, tokenise, evaluate, generate. Runs in the worker only."""

from __future__ import annotations

import codecs
import ctypes
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import llama_cpp as lib

from runner.core.conversation import Generation, Message, StopReason, Usage
from runner.core.errors import ContextOverflowError, ModelError, ModelFileError, WorkerError
from runner.models.llama.gguf import check_complete, read_header
from runner.models.llama.sampler import Sampler
from runner.models.llama.template import load_template
from runner.models.llama.thinking import forced_close, own_close, with_thinking
from runner.models.llama.threads import usable_cores
from runner.models.llama.tool_text import join_around_tools
from runner.models.llama.watch import TextWatch
from runner.models.settings import ModelSettings

DEFAULT_CONTEXT = 4096
_BATCH = 128
"""Prompt tokens a batch: small, so that progress shows and a stop request is not kept waiting."""
_SMALLEST_REPLY = 16
_REMEMBERED_TURNS = 256


class Engine:
    """A loaded model with one conversation in its KV cache.

    Parameters
    ----------
    settings
        Its ``path`` is absolute here.
    folder
        Folder of `models.toml`, for a template file.

    Raises
    ------
    ModelFileError
        The file cannot be a model.
    ModelError
        llama.cpp does not load it, or its template does not compile.
    """

    def __init__(self, settings: ModelSettings, folder: Path) -> None:
        self.settings = settings
        self.header = read_header(settings.path)
        check_complete(settings.path, self.header)
        lib.llama_backend_init()
        self.threads = settings.threads or usable_cores()
        self.model = self._load()
        self.context = self._make_context()
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.window: int = lib.llama_n_ctx(self.context)
        self.memory = lib.llama_get_memory(self.context)
        self.batch = lib.llama_batch_init(_BATCH, 0, 1)
        self.template = load_template(
            settings.template,
            self.header.chat_template,
            folder,
            bos=self._piece_of(lib.llama_vocab_bos(self.vocab)),
            eos=self._piece_of(lib.llama_vocab_eos(self.vocab)),
            thinking=settings.thinking.budget > 0,
        )
        self.closing_tokens = 0
        if settings.thinking.budget:
            closing = forced_close("", settings.thinking)
            self.closing_tokens = len(self.tokenize(closing, special=True))
        self.cached: list[int] = []
        # Text of a generated turn -> its tokens, so that history is not tokenised differently
        # from how it was written and the prompt of the next turn begins with this one's.
        self.written: OrderedDict[str, list[int]] = OrderedDict()

    def _load(self) -> Any:
        params = lib.llama_model_default_params()
        layers = self.settings.gpu_layers
        params.n_gpu_layers = -1 if layers == "auto" else layers
        model = lib.llama_model_load_from_file(str(self.settings.path).encode(), params)
        if not model:
            raise ModelFileError(
                f"llama.cpp could not load {self.settings.path} "
                f"(architecture {self.header.architecture!r}, llama-cpp-python {lib.__version__})",
                hint="the engine's own words are above; a newer model may need a newer engine",
            )
        return model

    def _make_context(self) -> Any:
        trained = lib.llama_model_n_ctx_train(self.model)
        params = lib.llama_context_default_params()
        params.n_ctx = self.settings.context or min(DEFAULT_CONTEXT, trained)
        params.n_batch = _BATCH
        params.n_ubatch = _BATCH
        params.n_outputs_max = 1
        params.n_threads = self.threads
        params.n_threads_batch = self.threads
        # A full-size cache for sliding-window layers, so that a prefix can be kept between turns.
        params.swa_full = True
        params.no_perf = True
        context = lib.llama_init_from_model(self.model, params)
        if not context:
            raise ModelError(
                f"no memory for a context window of {params.n_ctx} tokens",
                hint="lower `context` for this model in models.toml",
            )
        return context

    def describe(self) -> dict[str, Any]:
        """Facts for the transcript and for `runner doctor`."""
        return {
            "architecture": self.header.architecture,
            "file_bytes": self.header.size,
            "context": self.window,
            "context_trained": lib.llama_model_n_ctx_train(self.model),
            "vocabulary": lib.llama_vocab_n_tokens(self.vocab),
            "template": self.template.origin,
            "template_tools": self.template.shows_tools,
            "threads": self.threads,
            "gpu": bool(lib.llama_supports_gpu_offload()),
            "llama_cpp_python": lib.__version__,
            "system": lib.llama_print_system_info().decode().strip(),
        }

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Tokens of ``text``; with ``special`` off, markup such as ``<|im_end|>`` stays text."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 16
        tokens = (lib.llama_token * size)()
        count = lib.llama_tokenize(self.vocab, data, len(data), tokens, size, False, special)
        if count < 0:
            raise WorkerError(f"llama.cpp could not tokenise a text of {len(data)} bytes")
        return list(tokens[:count])

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        """Tokens of the whole conversation, up to where the model writes."""
        tokens: list[int] = []
        segments = self.template.render(messages, tools)
        segments = with_thinking(segments, self.settings.thinking)
        for text, source in join_around_tools(segments, self._control_tokens):
            if source is None:
                tokens += self.tokenize(text, special=True)
            elif source != "tools" and source.role == "assistant" and text in self.written:
                tokens += self.written[text]
            else:
                tokens += self.tokenize(text, special=False)
        bos = lib.llama_vocab_bos(self.vocab)
        if lib.llama_vocab_get_add_bos(self.vocab) and tokens[:1] != [bos]:
            tokens.insert(0, bos)
        return tokens

    def _control_tokens(self, markup: str) -> tuple[int, int] | None:
        """Where the first control token in ``markup`` begins, and where the last one ends."""
        start, end = -1, 0
        for token in self.tokenize(markup, special=True):
            if lib.llama_vocab_is_control(self.vocab, token):
                piece = self._piece_of(token)
                at = markup.find(piece, end)
                if at < 0:  # spelled otherwise in the vocabulary
                    return 0, len(markup)
                start, end = at if start < 0 else start, at + len(piece)
        return None if start < 0 else (start, end)

    def generate(
        self,
        messages: Sequence[Message],
        *,
        grammar: str | None,
        max_tokens: int,
        seed: int,
        tools: Sequence[Mapping[str, Any]] = (),
        on_text: Callable[[str], None],
        on_progress: Callable[[int, int], None],
        on_thinking: Callable[[str], None] = lambda piece: None,
    ) -> Generation:
        """Continue the conversation by one turn. Errors as in `runner.core.ports.Model`."""
        tokens = self.prompt(messages, tools)
        needed = len(tokens) + self.closing_tokens + _SMALLEST_REPLY
        if needed > self.window:
            raise ContextOverflowError(needed, self.window)
        sampler = Sampler(self.model, self.settings.sampling, grammar, seed)
        try:
            started = time.perf_counter()
            reused = self._keep_common_prefix(tokens)
            self._evaluate(tokens[reused:], on_progress)
            evaluated = time.perf_counter()
            thinking, thought_tokens = "", 0
            if self.settings.thinking.budget:
                # In a small window the turn goes before the thoughts.
                room = self.window - needed - max(max_tokens - _SMALLEST_REPLY, 0)
                thinking, thought_tokens = self._think(sampler, room, on_thinking)
            room = min(max_tokens, self.window - len(self.cached))
            text, stop, count = self._decode(sampler, room, on_text)
            usage = Usage(
                prompt_tokens=len(tokens),
                reused_tokens=reused,
                generated_tokens=thought_tokens + count,
                masked_tokens=sampler.masked,
                prompt_seconds=evaluated - started,
                decode_seconds=time.perf_counter() - evaluated,
                thinking_tokens=thought_tokens,
            )
        finally:
            sampler.close()
        return Generation(text, stop, usage, thinking)

    def _think(
        self, sampler: Sampler, room: int, on_text: Callable[[str], None]
    ) -> tuple[str, int]:
        """Let the model write freely, and leave the cache right behind the closing tag.

        The tag comes from the model, or is forced: at the end of the budget, where the model would
        end its turn or play the other side, and where it only repeats itself.
        """
        settings = self.settings.thinking
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        watch = TextWatch((settings.close, *self.template.stops))
        count = seen = 0
        while count < min(settings.budget, room) and watch.stop is None:
            token = sampler.draw(self.context)
            if lib.llama_vocab_is_eog(self.vocab, token):
                break
            count += 1
            seen = len(watch.text)
            on_text(watch.add(decoder.decode(self._bytes_of(token)), token))
            if watch.stop != "stop":
                self._evaluate([token])
        if watch.stop is None:
            on_text(watch.add(decoder.decode(b"", True)) + watch.flush())
        if watch.found == settings.close:
            closing = own_close(watch.text, seen, settings)
        else:
            closing = forced_close(watch.text, settings)
        self._evaluate(self.tokenize(closing, special=True))
        return watch.text, count

    def _decode(
        self, sampler: Sampler, room: int, on_text: Callable[[str], None]
    ) -> tuple[str, StopReason, int]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        watch = TextWatch(self.template.stops)
        written: list[int] = []
        stop: StopReason = "length"
        while len(written) < room:
            token = sampler.sample(self.context)
            if lib.llama_vocab_is_eog(self.vocab, token):
                stop = "end"
                break
            written.append(token)
            piece = decoder.decode(self._bytes_of(token))
            on_text(watch.add(piece, token))
            if watch.stop is not None:
                stop = watch.stop
                break
            if len(written) < room:
                self._evaluate([token])
        if watch.stop is None:
            on_text(watch.add(decoder.decode(b"", True)) + watch.flush())
            self._remember(watch.text, written)
        return watch.text, stop, len(written)

    def _remember(self, text: str, tokens: list[int]) -> None:
        # The first spelling of a text stays: more of the cache hangs on it than on a later one.
        self.written.setdefault(text, tokens)
        while len(self.written) > _REMEMBERED_TURNS:
            self.written.popitem(last=False)

    def _keep_common_prefix(self, tokens: list[int]) -> int:
        """Drop from the KV cache what differs from ``tokens``; return how many are kept.

        At least the last token is evaluated again, since its logits are needed.
        """
        common = 0
        for old, new in zip(self.cached, tokens[:-1], strict=False):
            if old != new:
                break
            common += 1
        if not lib.llama_memory_seq_rm(self.memory, 0, common, -1):
            # Recurrent and hybrid models cannot forget a part: start afresh.
            lib.llama_memory_clear(self.memory, True)
            common = 0
        self.cached = tokens[:common]
        return common

    def _evaluate(
        self, tokens: Sequence[int], on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        for start in range(0, len(tokens), _BATCH):
            chunk = tokens[start : start + _BATCH]
            self.batch.n_tokens = len(chunk)
            for i, token in enumerate(chunk):
                self.batch.token[i] = token
                self.batch.pos[i] = len(self.cached) + i
                self.batch.n_seq_id[i] = 1
                self.batch.seq_id[i][0] = 0
                self.batch.logits[i] = start + i == len(tokens) - 1
            status = lib.llama_decode(self.context, self.batch)
            if status != 0:
                lib.llama_memory_clear(self.memory, True)
                self.cached = []
                raise WorkerError(
                    f"llama.cpp could not evaluate {len(chunk)} tokens at position "
                    f"{len(self.cached)} of {self.window} (llama_decode returned {status})"
                )
            self.cached.extend(chunk)
            if on_progress is not None:
                on_progress(start + len(chunk), len(tokens))

    def _bytes_of(self, token: int) -> bytes:
        size = 256
        buffer = ctypes.create_string_buffer(size)
        count = lib.llama_token_to_piece(self.vocab, token, buffer, size, 0, True)
        if count < 0:
            size = -count
            buffer = ctypes.create_string_buffer(size)
            count = lib.llama_token_to_piece(self.vocab, token, buffer, size, 0, True)
        return buffer.raw[:count]

    def _piece_of(self, token: int) -> str:
        return self._bytes_of(token).decode("utf-8", "replace") if token >= 0 else ""
