"""llama.cpp behind a small face: load, read a conversation, write a turn. In the worker only."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import llama_cpp as lib

from runner.core.conversation import Generation, Message, StopReason, Usage
from runner.core.errors import ContextOverflowError
from runner.models.llama.cache import Cache, CancelledError
from runner.models.llama.constraint import Constraints
from runner.models.llama.drafts import Drafts
from runner.models.llama.gguf import check_complete, read_header
from runner.models.llama.loading import Loaded, load
from runner.models.llama.openings import Openings
from runner.models.llama.pace import Pace
from runner.models.llama.prompt import Prompt, PromptWriter
from runner.models.llama.sampler import Sampler
from runner.models.llama.state_cache import StateCache, StateKey, model_identity
from runner.models.llama.template import load_template
from runner.models.llama.thinking import forced_close, own_close
from runner.models.llama.vocabulary import Vocabulary
from runner.models.llama.watch import TextWatch
from runner.models.llama.writer import Writer
from runner.models.settings import ModelSettings

_SMALLEST_REPLY = 16
_ROW_COST = 0.5
"""What one more row of a guess costs, as a share of a batch of one: with AVX2 0.45 to 0.6."""


class Engine:
    """A loaded model with one conversation in its KV cache.

    Parameters
    ----------
    settings
        Its ``path`` is absolute here.
    folder
        Folder of `models.toml`, for a template file.
    on_loading
        Is told now and then what share of the file is loaded, from 0 to 1.
    name
        The model's name in `models.toml`, for the states on disk.
    states
        Where the state behind an opening is kept for the next start, or None.

    Raises
    ------
    ModelFileError
        The file cannot be a model.
    ModelError
        llama.cpp does not load it, or its template does not compile.
    """

    def __init__(
        self,
        settings: ModelSettings,
        folder: Path,
        on_loading: Callable[[float], None] = lambda share: None,
        *,
        name: str = "",
        states: StateCache | None = None,
    ) -> None:
        self.settings = settings
        self.header = read_header(settings.path)
        check_complete(settings.path, self.header)
        self.loaded = loaded = load(settings, self.header.architecture, on_loading)
        self.vocabulary = Vocabulary(loaded.model)
        self.constraints = Constraints(self.vocabulary, settings.grammar_engine)
        # A number that somebody chose is kept.
        self.pace = Pace(loaded.threads if settings.threads is None else 1, self._set_threads)
        self.cache = Cache(
            loaded.context,
            self.pace,
            batch=loaded.batch,
            vocabulary=self.vocabulary.size,
            forgets=loaded.forgets,
        )
        self.openings = Openings(self.cache, states, partial(_state_key, settings, loaded, name))
        self.window = self.cache.window
        self.template = load_template(
            settings.template,
            self.header.chat_template,
            folder,
            bos=self.vocabulary.text_of(self.vocabulary.bos),
            eos=self.vocabulary.text_of(lib.llama_vocab_eos(self.vocabulary.pointer)),
            thinking=settings.thinking.budget > 0,
        )
        self.prompts = PromptWriter(self.vocabulary, self.template, settings.thinking)
        self.opening_tokens = self.closing_tokens = 0
        if settings.thinking.budget:
            opening, closing = f"{settings.thinking.open}\n", forced_close("", settings.thinking)
            self.opening_tokens = len(self.vocabulary.markup_tokens(opening))
            self.closing_tokens = len(self.vocabulary.markup_tokens(closing))

    def _set_threads(self, threads: int) -> None:
        prompt = min(threads, self.settings.prompt_threads or threads)
        lib.llama_set_n_threads(self.loaded.context, threads, prompt)

    def describe(self) -> dict[str, Any]:
        """Facts for the transcript and for `runner doctor`."""
        return {
            "architecture": self.header.architecture,
            "file_bytes": self.header.size,
            "context": self.window,
            "context_trained": lib.llama_model_n_ctx_train(self.loaded.model),
            "vocabulary": self.vocabulary.size,
            "template": self.template.origin,
            "template_tools": self.template.shows_tools,
            "threads": self.loaded.threads,
            "batch": self.loaded.batch,
            "flash_attention": self.loaded.flash_attention,
            "load_seconds": round(self.loaded.seconds, 3),
            "gpu": bool(lib.llama_supports_gpu_offload()),
            "grammar_engine": self.constraints.engine,
            "llama_cpp_python": lib.__version__,
            "system": lib.llama_print_system_info().decode().strip(),
        }

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        """Tokens of the whole conversation, up to where the model writes."""
        return self.prompts.tokens(messages, tools).tokens

    def cancel(self) -> None:
        """End the generation in progress, within a fraction of a second. From any thread."""
        self.cache.cancel()

    def uncancel(self) -> None:
        """Forget about `cancel`; called before each generation."""
        self.cache.uncancel()

    def generate(
        self,
        messages: Sequence[Message],
        *,
        grammar: str | None,
        max_tokens: int,
        seed: int,
        tools: Sequence[Mapping[str, Any]] = (),
        on_text: Callable[[str], None] = lambda piece: None,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
        on_thinking: Callable[[str], None] = lambda piece: None,
    ) -> Generation:
        """Continue the conversation by one turn. Errors as in `runner.core.ports.Model`."""
        prompt = self.prompts.tokens(messages, tools)
        needed = len(prompt.tokens) + self.closing_tokens + _SMALLEST_REPLY
        if needed > self.window:
            raise ContextOverflowError(needed, self.window)
        constraint = self.constraints.make(grammar) if grammar is not None else None
        sampler = Sampler(self.vocabulary, self.settings.sampling, constraint, seed)
        drafts = self._drafts(prompt)
        watch = TextWatch(self.template.stops)
        writer = Writer(self.vocabulary, self.cache, sampler, constraint, drafts, watch, on_text)
        started = evaluated = time.perf_counter()
        thinking, thought_tokens = "", 0
        cached = len(self.cache.tokens)
        reused = kept = self.cache.keep(prompt.tokens)
        try:
            reused = self.openings.read(prompt, on_progress)
            rest = prompt.tokens[len(self.cache.tokens) :]
            on_progress = _from(len(self.cache.tokens) - reused, on_progress)
            if self.settings.thinking.budget:
                # The next prompt has no thoughts: the cache will be cut before their opening tag.
                before = max(len(rest) - self.opening_tokens, 0)
                if before:
                    self.cache.evaluate(rest[:before], outputs=0, on_progress=on_progress)
                self.cache.evaluate(rest[before:])
                evaluated = time.perf_counter()
                # In a small window the turn goes before the thoughts.
                room = self.window - needed - max(max_tokens - _SMALLEST_REPLY, 0)
                thinking, thought_tokens, rest = self._think(sampler, room, on_thinking)
            room = min(max_tokens, self.window - len(self.cache.tokens) - len(rest))
            writer.begin(rest, room, on_progress)
            if not thinking:
                evaluated = time.perf_counter()
            writer.write()
        except CancelledError:
            writer.stop = "cancelled"
        finally:
            sampler.close()
            if constraint is not None:
                constraint.close()
        if watch.stop is None:
            self.prompts.remember(watch.text, writer.tokens)
        usage = Usage(
            prompt_tokens=len(prompt.tokens),
            reused_tokens=reused,
            generated_tokens=thought_tokens + len(writer.tokens),
            masked_tokens=sampler.masked,
            prompt_seconds=evaluated - started,
            decode_seconds=time.perf_counter() - evaluated,
            thinking_tokens=thought_tokens,
            forced_tokens=writer.forced,
            draft_tokens=drafts.proposed if drafts else 0,
            accepted_tokens=drafts.accepted if drafts else 0,
        )
        stop: StopReason = writer.stop or "length"
        cut = self._cut(cached, kept, prompt.tokens)
        return Generation(watch.text, stop, usage, thinking, self._notices(prompt), cut)

    def _cut(self, cached: int, kept: int, tokens: Sequence[int]) -> str:
        if kept == cached:
            return ""
        words = "".join(map(self.vocabulary.text_of, tokens[kept : kept + 12]))
        return f"{kept} of {cached} cached tokens were kept: behind them comes {words!r}"

    def _notices(self, prompt: Prompt) -> tuple[str, ...]:
        notices = self.pace.notices()
        if prompt.broken:
            words = ", ".join(sorted(set(prompt.broken)))
            notices += (
                f"texts in the prompt spell what this model reads as markup: {words}. "
                "They were taken apart, so that they stay text",
            )
        return notices

    def _drafts(self, prompt: Prompt) -> Drafts | None:
        if not self.settings.guess_ahead or not self.cache.forgets:
            return None
        return Drafts(
            prompt.text,
            prompt.last,
            lambda text: self.vocabulary.text_tokens(text)[0],
            row_cost=_ROW_COST,
        )

    def _think(
        self, sampler: Sampler, room: int, on_text: Callable[[str], None]
    ) -> tuple[str, int, list[int]]:
        """Let the model write freely; returns the thoughts, their tokens, and what closes them.

        The tag comes from the model, or is forced: at the end of the budget, where the model would
        end its turn or play the other side, and where it only repeats itself.
        """
        settings = self.settings.thinking
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        watch = TextWatch((settings.close, *self.template.stops))
        count = seen = 0
        while count < min(settings.budget, room) and watch.stop is None:
            token = sampler.draw(self.cache.logits(0))
            if self.vocabulary.is_end(token):
                break
            count += 1
            seen = len(watch.text)
            on_text(watch.add(decoder.decode(self.vocabulary.bytes_of(token)), token))
            if watch.stop != "stop":
                self.cache.evaluate([token])
        if watch.stop is None:
            on_text(watch.add(decoder.decode(b"", True)) + watch.flush())
        if watch.found == settings.close:
            closing = own_close(watch.text, seen, settings)
        else:
            closing = forced_close(watch.text, settings)
        return watch.text, count, self.vocabulary.markup_tokens(closing)


def _from(before: int, on_progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Progress of a second part, with the first one counted."""
    return lambda done, total: on_progress(before + done, before + total)


def _state_key(
    settings: ModelSettings, loaded: Loaded, name: str, tokens: Sequence[int]
) -> StateKey:
    return StateKey(
        name=name,
        model=model_identity(settings.path),
        build=f"{lib.__version__} {lib.llama_print_system_info().decode().strip()}",
        parameters={
            "window": lib.llama_n_ctx(loaded.context),
            "batch": loaded.batch,
            "kv_cache": settings.kv_cache,
            "flash_attention": loaded.flash_attention,
            "gpu_layers": settings.gpu_layers,
        },
        tokens=tokens,
    )
