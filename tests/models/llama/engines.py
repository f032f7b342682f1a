"""Engines of the tiny models, in this process."""

from runner.models.settings import ModelSettings


def engine_of(path, folder, **changes):
    from runner.models.llama.engine import Engine

    return Engine(ModelSettings(path=path, threads=1, **changes), folder)


def write(engine, messages, *, grammar=None, most=24, seed=1, on_progress=lambda done, total: None):
    return engine.generate(
        messages,
        grammar=grammar,
        max_tokens=most,
        seed=seed,
        on_progress=on_progress,
    )
