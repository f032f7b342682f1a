"""Runs of an agent go on, or end with a typed status, while its worker is killed again and again.

``RUNNER_KILLS=200`` sets how many kills there are.
"""

import importlib.util
import json
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from simple_tools import ADD, SimpleTool

from runner import Agent
from runner.core.errors import WorkerError
from runner.models.llama.model import LlamaModel
from runner.models.settings import ModelSettings, Sampling

KILLS = int(os.environ.get("RUNNER_KILLS", "40"))
SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
TASKS = 4
"""Different tasks, each with a seed of its own; they take turns."""


@pytest.fixture
def settings(tmp_path):
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: run ./scripts/setup")
    tiny_models = pytest.importorskip("tiny_models", reason="the gguf package is not installed")
    path = tiny_models.write_llama(tmp_path / "tiny.gguf", layers=8, ends=True, seed=5)
    # Calls, answers and refused turns all come up, with this seed of the weights.
    return ModelSettings(path=path, threads=1, sampling=Sampling(temperature=0.8))


class Killer(threading.Thread):
    """Kills whatever child there is, at random moments, until it has killed enough.

    Parameters
    ----------
    spared
        Children to leave alone.
    pause
        Most seconds between two kills.
    """

    def __init__(self, spared, pause):
        super().__init__(daemon=True)
        self.kills = {number.name: 0 for number in SIGNALS}
        self.stop = threading.Event()
        self._spared = spared
        self._pause = pause
        self._random = random.Random(1)

    def run(self):
        while sum(self.kills.values()) < KILLS and not self.stop.is_set():
            self.stop.wait(self._random.uniform(0, self._pause))
            number = self._random.choice(SIGNALS)
            for child in children() - self._spared:
                try:
                    child.send_signal(number)
                except psutil.NoSuchProcess:
                    continue
                self.kills[number.name] += 1


def children():
    return set(psutil.Process().children(recursive=True))


def open_files():
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208


def run(model, number):
    add = SimpleTool(ADD, lambda params: str(params["a"] + params["b"]))
    agent = Agent(model, tools=[add], seed=number, max_turns=3, max_tokens=60, retries=1)
    return agent.run(f"Add {number} and 2, and say what comes of it.")


def events(result):
    return [json.loads(line) for line in Path(result.transcript).read_text().splitlines()]


def replies(result):
    return [event for event in events(result) if event["event"] == "model.reply"]


def test_runs_survive_kills_at_any_moment(settings, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with LlamaModel("tiny", settings, tmp_path) as model:
        started = time.monotonic()
        undisturbed = [run(model, number) for number in range(TASKS)]
        seconds = time.monotonic() - started
    assert any(result.calls for result in undisturbed)
    files, processes = open_files(), children()

    # Every phase is hit: the start of a worker, the prompt, the text, and the time between.
    killer = Killer(processes, pause=seconds)
    results = []
    with LlamaModel("tiny", settings, tmp_path) as model:
        killer.start()
        try:
            while killer.is_alive():
                results.append(run(model, len(results) % TASKS))
        finally:
            killer.stop.set()
            killer.join()
        results.append(run(model, len(results) % TASKS))

    assert sum(killer.kills.values()) >= KILLS
    assert all(killer.kills.values())
    failed = restarted = 0
    for number, result in enumerate(results):
        assert events(result)[-1]["event"] == "run.end"
        failed += result.status == "failed"
        if result.status == "failed":
            assert isinstance(result.error, WorkerError)
            assert "SIG" in result.reason
        else:
            assert result.status in ("answered", "gave_up", "limit")
        # Later replies may differ: a fresh worker does not know in which tokens the earlier ones
        # were written, and these random models spell words in ways of their own.
        for reply in replies(result)[:1]:
            assert reply["text"] == replies(undisturbed[number % TASKS])[0]["text"]
        restarted += sum("restarted" in str(reply["notices"]) for reply in replies(result))
    assert restarted
    assert results[-1].status != "failed"
    assert children() == processes
    assert open_files() == files
    assert list(temporary.iterdir()) == []
    print(f"{killer.kills} in {len(results)} runs: {restarted} turns restarted, {failed} failed")  # noqa: T201
