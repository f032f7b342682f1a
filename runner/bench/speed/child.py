"""Measures one model in a process of its own: this one loads native code.

Called by `runner.bench.speed.report` as ``python -m runner.bench.speed.child`` with a request in
JSON on standard input; prints one JSON document a line: progress and, last, the figures.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import llama_cpp
import numpy as np
import numpy.typing as npt

from runner.bench.speed import cases
from runner.core.conversation import Generation, Message
from runner.models.llama.constraint import Constraint, Constraints
from runner.models.llama.engine import Engine
from runner.models.llama.sampler import Sampler
from runner.models.settings import ModelSettings

FREE_TOKENS = 32
ANSWER_TOKENS = 64
_RUN_TURNS = 10


class Rate:
    """Tokens and the seconds they took."""

    def __init__(self) -> None:
        self.tokens = 0
        self.seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        self.tokens += tokens
        self.seconds += seconds

    @property
    def per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0


class Bench:
    """An engine whose ways of decoding can be switched, beside llama-cpp-python's own way."""

    def __init__(self, settings: ModelSettings, folder: Path, say: Callable[[str], None]) -> None:
        self.say = say
        self.settings = settings
        self.engine = Engine(settings, folder)
        self.ours = self.engine.constraints
        self.reference = Constraints(self.engine.vocabulary, "llama.cpp")
        self._plain: Any = None

    @contextmanager
    def way(self, constraints: Constraints, *, guess: bool) -> Iterator[None]:
        before = self.engine.constraints, self.engine.settings
        self.engine.constraints = constraints
        self.engine.settings = self.settings.model_copy(update={"guess_ahead": guess})
        yield
        self.engine.constraints, self.engine.settings = before

    def write(self, messages: Sequence[Message], grammar: str | None, most: int) -> Generation:
        return self.engine.generate(
            messages,
            grammar=grammar,
            max_tokens=most,
            seed=1,
        )

    def rate(self, rate: Rate, messages: Sequence[Message], grammar: str | None, most: int) -> str:
        """Write, and count what was written behind the prompt and what it forces at once."""
        generation = self.write(messages, grammar, most)
        usage = generation.usage
        at_once = len(self._forced_at_once(grammar)) if grammar else 0
        # The last token is evaluated only where the end of the turn is asked for behind it.
        count = usage.generated_tokens - at_once - (generation.stop == "length")
        rate.add(count, usage.decode_seconds)
        return generation.text

    def _forced_at_once(self, grammar: str) -> list[int]:
        constraint = self.engine.constraints.make(grammar)
        try:
            return constraint.forced()
        finally:
            constraint.close()

    def plain(self, rate: Rate, messages: Sequence[Message], grammar: str) -> str:
        """llama-cpp-python's own way: `Llama.generate` with a `LlamaGrammar`, greedy."""
        if self._plain is None:
            self._plain = llama_cpp.Llama(
                str(self.settings.path),
                n_ctx=self.engine.window,
                n_threads=self.engine.loaded.threads,
                n_threads_batch=self.engine.loaded.threads,
                n_gpu_layers=0 if self.settings.gpu_layers == 0 else -1,
                verbose=False,
            )
        rules = llama_cpp.LlamaGrammar.from_string(grammar, verbose=False)
        written: list[int] = []
        started = 0.0
        for token in self._plain.generate(self.engine.prompt(messages), temp=0.0, grammar=rules):
            now = time.perf_counter()
            if not started:
                started = now
            else:
                rate.add(1, 0.0)
            if self.engine.vocabulary.is_end(token) or len(written) >= 120:
                break
            written.append(token)
        rate.seconds += time.perf_counter() - started
        pieces = map(self.engine.vocabulary.bytes_of, written)
        return b"".join(pieces).decode("utf-8", "replace")

    def calls(self, tasks: Sequence[str]) -> dict[str, Any]:
        """Calls under the grammar, every way in turn for each task."""
        grammar = cases.one_call()
        names = ("free", "runner", "no guess", "reference", "llama-cpp-python")
        rates = {name: Rate() for name in names}
        same = 0
        for number, task in enumerate(tasks, 1):
            self.say(f"calls: task {number} of {len(tasks)}")
            messages = cases.messages(task)
            if number == 1:  # everything is loaded and compiled once before it counts
                self.rate(Rate(), messages, grammar, 120)
                self.plain(Rate(), messages, grammar)
            with self.way(self.ours, guess=False):
                self.rate(rates["free"], messages, None, FREE_TOKENS)
                self.rate(rates["no guess"], messages, grammar, 120)
            with self.way(self.ours, guess=True):
                text = self.rate(rates["runner"], messages, grammar, 120)
            with self.way(self.reference, guess=False):
                same += text == self.rate(rates["reference"], messages, grammar, 120)
            self.plain(rates["llama-cpp-python"], messages, grammar)
        figures = {name: rate.per_second for name, rate in rates.items()}
        return {"tokens_per_second": figures, "same_as_reference": same, "tasks": len(tasks)}

    def answers(self) -> dict[str, Any]:
        """Free text, with the grammar of an answer and without one."""
        free, held, guessed = Rate(), Rate(), Rate()
        for number, task in enumerate(cases.QUESTIONS * 2, 1):
            self.say(f"answers: task {number} of {2 * len(cases.QUESTIONS)}")
            messages = [Message("user", task)]
            with self.way(self.ours, guess=False):
                self.rate(free, messages, None, ANSWER_TOKENS)
                self.rate(held, messages, cases.answer(), ANSWER_TOKENS)
            with self.way(self.ours, guess=True):
                self.rate(guessed, messages, cases.answer(), ANSWER_TOKENS)
        figures = {"free": free, "runner": guessed, "no guess": held}
        return {"tokens_per_second": {name: rate.per_second for name, rate in figures.items()}}

    def run(self) -> dict[str, Any]:
        """A run of ten turns against what its tokens would take at the measured rates."""
        prompt, write = self._ideal_rates()
        self.engine.cache.clear()
        grammar = cases.one_call()
        messages = cases.messages("Read the ten files part-0.txt to part-9.txt, one by one.")
        new = written = unexpected = length = 0
        started = time.perf_counter()
        for number in range(_RUN_TURNS):
            self.say(f"run: turn {number + 1} of {_RUN_TURNS}")
            generation = self.write(messages, grammar, 120)
            usage = generation.usage
            evaluated = usage.prompt_tokens - usage.reused_tokens
            if number:
                # All but the last token of the last turn was evaluated while it was written.
                unexpected += max(0, evaluated - (usage.prompt_tokens - length))
            length = usage.prompt_tokens + usage.generated_tokens - 1
            new += evaluated
            written += usage.generated_tokens
            text = f"OBSERVATION [c{number + 1} read_file]: part-{number}.txt: " + (
                f"the total of section {number} is {number * 37 % 101}, see the next part. " * 3
            )
            messages += [Message("assistant", generation.text), Message("user", text)]
        seconds = time.perf_counter() - started
        ideal = new / prompt + written / write
        return {
            "seconds": seconds,
            "ideal_seconds": ideal,
            "new_prompt_tokens": new,
            "evaluated_again": unexpected,
            "written_tokens": written,
            "prompt_tokens_per_second": prompt,
            "free_tokens_per_second": write,
        }

    def _ideal_rates(self) -> tuple[float, float]:
        """Prompt tokens a second in whole batches, and free tokens a second."""
        prompt, free = Rate(), Rate()
        with self.way(self.ours, guess=False):
            for task in cases.CALLS[:3]:
                self.engine.cache.clear()
                usage = self.write(cases.messages(task), None, FREE_TOKENS).usage
                prompt.add(usage.prompt_tokens, usage.prompt_seconds)
                free.add(usage.generated_tokens - 1, usage.decode_seconds)
        return prompt.per_second, free.per_second

    def same_text(self, count: int) -> dict[str, Any]:
        """Greedy calls with forced and guessed text against token by token.

        A difference is explained where the two likeliest allowed tokens were closer to each other
        than the rounding of batches of different sizes.
        """
        noise = self._noise()
        differences: list[dict[str, Any]] = []
        other_tokens = by_reference = 0
        grammar = cases.one_call()
        for number, task in enumerate(cases.many_tasks(count), 1):
            if number % 10 == 0:
                self.say(f"same text: task {number} of {count}, {len(differences)} differ")
            messages = cases.messages(task)
            gaps: list[float] = []
            with self.way(_Stepwise(self.ours), guess=False), _gaps(gaps):
                stepwise = self.write(messages, grammar, 120)
                tokens = self.engine.prompts._written.get(stepwise.text)
                self.engine.prompts._written.clear()
            with self.way(self.ours, guess=True):
                ours = self.write(messages, grammar, 120)
                other_tokens += tokens != self.engine.prompts._written.get(ours.text)
                self.engine.prompts._written.clear()
            with self.way(self.reference, guess=False):
                by_reference += self.write(messages, grammar, 120).text != stepwise.text
            if ours.text != stepwise.text:
                gap = self._gap(tokens or [], gaps, ours.text)
                differences.append({"task": task, "gap": gap, "ours": ours.text,
                                    "token_by_token": stepwise.text})  # fmt: skip
        return {
            "tasks": count,
            "different": len(differences),
            "explained": sum(entry["gap"] <= noise for entry in differences),
            "rounding": noise,
            "other_tokens": other_tokens,
            "reference_different": by_reference,
            "differences": differences,
        }

    def _gap(self, tokens: Sequence[int], gaps: Sequence[float], other: str) -> float:
        """How close the choice was at the token where the texts part."""
        text = b""
        for token, gap in zip(tokens, gaps, strict=False):
            text += self.engine.vocabulary.bytes_of(token)
            if not other.encode().startswith(text):
                return gap
        return gaps[-1] if gaps else 0.0

    def _noise(self) -> float:
        """Largest difference in a logit between reading a text at once and token by token."""
        cache = self.engine.cache
        largest = 0.0
        for task in cases.CALLS[:4]:
            tokens = self.engine.prompt(cases.messages(task))
            cache.clear()
            cache.evaluate(tokens)
            at_once = cache.logits(0).copy()
            cache.clear()
            cache.evaluate(tokens[:-24])
            for token in tokens[-24:]:
                cache.evaluate([token])
            largest = max(largest, float(np.abs(cache.logits(0) - at_once).max()))
        cache.clear()
        return largest


class _Stepwise(Constraints):
    """The same constraints, telling nothing of what they force."""

    def __init__(self, inner: Constraints) -> None:
        self._inner = inner

    def make(self, grammar: str) -> Constraint:
        constraint = self._inner.make(grammar)
        constraint.forced = list  # type: ignore[method-assign]
        return constraint


@contextmanager
def _gaps(into: list[float]) -> Iterator[None]:
    sample = Sampler.sample

    def measured(self: Sampler, logits: npt.NDArray[np.float32]) -> int:
        constraint = self._constraint
        assert constraint is not None
        every = np.arange(len(logits))
        allowed = logits[every[constraint.allowed(every)]]
        best = np.sort(allowed)[-2:]
        into.append(float(best[-1] - best[0]) if len(best) > 1 else float("inf"))
        return sample(self, logits)

    Sampler.sample = measured  # type: ignore[method-assign]
    try:
        yield
    finally:
        Sampler.sample = sample  # type: ignore[method-assign]


def main(request: dict[str, Any], out: TextIO) -> None:
    def say(text: str) -> None:
        print(json.dumps({"progress": text}), file=out, flush=True)

    settings = ModelSettings.model_validate(request["settings"])
    say("loading the model")
    bench = Bench(settings, Path(request["folder"]), say)
    figures: dict[str, Any] = {"model": bench.engine.describe()}
    for part in request["parts"]:
        match part:
            case "calls":
                figures[part] = bench.calls(cases.CALLS)
            case "copies":
                figures[part] = bench.calls(cases.COPIES)
            case "answers":
                figures[part] = bench.answers()
            case "run":
                figures[part] = bench.run()
            case "same":
                figures[part] = bench.same_text(request["tasks"])
    print(json.dumps({"figures": figures}), file=out, flush=True)


if __name__ == "__main__":
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what native code prints is no result
    main(json.load(sys.stdin), results)
