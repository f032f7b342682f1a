"""A second start takes the state behind the opening from disk, and writes the same text."""

import stat

import pytest
from real_models import NAMES, fresh
from simple_tools import ADD, SEARCH

from runner.core.conversation import Message
from runner.protocol import tool_grammar
from runner.protocol.prompt import opening_messages

TOOLS = [ADD, SEARCH]
TALK = [*opening_messages(TOOLS), Message("user", "Find books about rivers in Europe.")]


@pytest.fixture(autouse=True)
def states(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNNER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RUNNER_STATE_CACHE_MB", "500")
    return tmp_path / "states"


def start_and_write(name, **changes):
    with fresh(name, **changes) as model:
        grammar = tool_grammar(TOOLS, thought=False)
        return model.generate(TALK, grammar=grammar, max_tokens=40, seed=1)


@pytest.mark.parametrize("name", NAMES)
def test_the_second_start_reads_only_the_task_and_writes_the_same(name, states):
    cold = start_and_write(name)
    (file,) = states.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    warm = start_and_write(name)
    assert cold.usage.reused_tokens == 0
    assert warm.usage.prompt_tokens - warm.usage.reused_tokens < 40
    assert warm.text == cold.text


def test_a_relative_cache_folder_is_beside_the_caller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNNER_CACHE_DIR", "here")
    start_and_write("smollm2-135m")
    assert len(list((tmp_path / "here/states").iterdir())) == 1


def test_a_damaged_state_is_read_anew(states):
    cold = start_and_write("smollm2-135m")
    (file,) = states.iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    again = start_and_write("smollm2-135m")
    assert (again.usage.reused_tokens, again.text) == (0, cold.text)


def test_another_window_is_another_state(states):
    start_and_write("smollm2-135m", context=1024)
    other = start_and_write("smollm2-135m", context=2048)
    assert other.usage.reused_tokens == 0
    assert len(list(states.iterdir())) == 2


def test_the_same_text_twenty_times_cold_and_warm():
    settings = {"temperature": 0.9, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
    from runner.models.settings import Sampling

    texts = set()
    for _ in range(2):
        with fresh("smollm2-135m", sampling=Sampling(**settings)) as model:
            for number in range(10):
                if number % 3 == 2:  # something else in between
                    model.generate(TALK[:-1], grammar=None, max_tokens=5, seed=number)
                texts.add(model.generate(TALK, grammar=None, max_tokens=40, seed=7).text)
    assert len(texts) == 1
