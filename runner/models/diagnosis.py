"""Looks at this machine: will models run here, and how?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from runner.core.conversation import Message
from runner.core.errors import RunnerError
from runner.models.catalog import Catalog, load_catalog
from runner.models.llama.gguf import check_complete, read_header
from runner.models.llama.model import LlamaModel
from runner.models.llama.threads import usable_cores
from runner.models.settings import Thinking

_SPEED_FLAGS = ("avx", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: ``ok``, ``warn`` (works, but) or ``fail``."""

    check: str
    state: Literal["ok", "warn", "fail"]
    found: str


def examine(
    model: str | None = None, *, config: Path | None = None, test: bool = True
) -> list[Finding]:
    """Findings about Python, processor, memory, engine and models, in that order.

    Parameters
    ----------
    model
        Model for the self-test; None for the default one.
    test
        Whether to load that model and let it write one word under a grammar.
    """
    findings = [
        Finding("python", "ok", f"{platform.python_version()} at {sys.executable}"),
        _processor(),
        _memory(),
        _engine(),
    ]
    try:
        catalog = load_catalog(config)
        name = catalog.name_of(model)
    except RunnerError as error:
        return [*findings, Finding("models.toml", "fail", f"{error}. {error.hint}")]
    findings.append(Finding("models.toml", "ok", str(catalog.file)))
    findings += _files(catalog, name)
    if test:
        findings.append(_self_test(name, catalog))
    return findings


def _processor() -> Finding:
    flags = _cpu_flags()
    known = " ".join(flag for flag in _SPEED_FLAGS if flag in flags) or platform.machine()
    cores, host = usable_cores(), os.cpu_count()
    return Finding("processor", "ok", f"{known}; {cores} of {host} CPUs for decoding")


def _cpu_flags() -> set[str]:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return set(value.split())
    return set()


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    free = memory.available / 1e9
    text = f"{free:.1f} of {memory.total / 1e9:.1f} GB free"
    return Finding("memory", "ok" if free > 1 else "warn", text)


def _engine() -> Finding:
    if importlib.util.find_spec("llama_cpp") is None:
        return Finding(
            "engine", "fail", "llama-cpp-python is not installed: run ./scripts/quickstart"
        )
    version = importlib.metadata.version("llama-cpp-python")
    build = Path(sys.prefix) / "llama-build.json"
    if not build.is_file():
        text = f"llama-cpp-python {version}, not built by scripts/setup.py: flags unknown"
        return Finding("engine", "warn", text)
    record = json.loads(build.read_text())
    text = f"llama-cpp-python {version}, build profile {record.get('profile')}"
    if record.get("why"):
        text += f": {record['why']}"
    speed = record.get("speed")
    if speed:
        text += (
            f"; at set-up, {speed['model']} with {speed['threads']} threads: "
            f"prompt {speed['prompt']:.0f} tokens/s, writing {speed['decode']:.0f} tokens/s"
        )
    return Finding("engine", "ok", text)


def _files(catalog: Catalog, default: str) -> list[Finding]:
    findings = []
    for name, settings in catalog.models.items():
        if settings.kind != "gguf":
            continue
        try:
            header = read_header(settings.path)
            check_complete(settings.path, header)
        except RunnerError as error:
            state: Literal["fail", "warn"] = "fail" if name == default else "warn"
            findings.append(Finding(f"model {name}", state, f"{error}. {error.hint}"))
        else:
            text = f"{header.architecture}, {header.size / 1e6:,.0f} MB, complete"
            findings.append(Finding(f"model {name}", "ok", text))
    return findings


def _self_test(name: str, catalog: Catalog) -> Finding:
    check = f"self-test {name}"
    if catalog.models[name].kind != "gguf":
        return Finding(check, "ok", "no engine needed")
    # A thousand tokens of thoughts would prove nothing more.
    settings = catalog.models[name].model_copy(update={"thinking": Thinking(budget=0)})
    try:
        with LlamaModel(name, settings, catalog.file.parent) as model:
            facts = model.describe()
            prompt = [Message("user", "Say something about rivers. " * 30)]
            bound = model.generate(prompt, grammar='root ::= "Test"', max_tokens=8, seed=1)
            free = model.generate(prompt, grammar=None, max_tokens=24, seed=1)
    except RunnerError as error:
        return Finding(check, "fail", f"{error}. {error.hint}")
    if bound.text != "Test":
        return Finding(check, "fail", f"a grammar allowed only 'Test', written was {bound.text!r}")
    usage = bound.usage
    prefill = (usage.prompt_tokens - usage.reused_tokens) / max(usage.prompt_seconds, 1e-9)
    decode = free.usage.generated_tokens / max(free.usage.decode_seconds, 1e-9)
    return Finding(
        check,
        "ok",
        f"grammar holds; prompt {prefill:.0f} tokens/s, writing {decode:.0f} tokens/s, "
        f"{facts['threads']} threads, window {facts['context']}",
    )
