"""The worker process and its parent: deaths, hangs, interrupts, deadlines, and nothing left over.

Moments are set by what has been written so far, never by a clock: the model is small, but far
slower than the parent.
"""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import psutil
import pytest
from watchers import At, is_gone, workers

from runner.core.conversation import Message
from runner.core.errors import ContextOverflowError, ModelFileError, WorkerError
from runner.models.llama import process
from runner.models.llama.model import LlamaModel
from runner.models.settings import ModelSettings, Sampling

TASK = [Message("system", "Be brief."), Message("user", "number " * 150)]
DEADLY = ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGILL", "SIGTERM"]
PATIENCE = 100
"""Tenths of a second until something has to have happened."""


@pytest.fixture(scope="module")
def slow_file(tiny_llama, tmp_path_factory):
    from tiny_models import write_llama

    return write_llama(tmp_path_factory.mktemp("slow") / "slow.gguf", layers=8)


@pytest.fixture
def model(slow_file, tmp_path):
    with opened(slow_file, tmp_path) as model:
        yield model


def opened(path, folder, **settings):
    sampling = Sampling(temperature=0.8)
    values = {"threads": 1, "batch": 8, "sampling": sampling} | settings
    return LlamaModel("tiny", ModelSettings(path=path, **values), folder)


def write(model, view=None, *, messages=TASK, tokens=400, seed=7, **options):
    return model.generate(
        messages, grammar=None, max_tokens=tokens, seed=seed, view=view, **options
    )


@pytest.fixture(scope="module")
def undisturbed(slow_file, tmp_path_factory):
    """What `write` returns when nothing happens."""
    with opened(slow_file, tmp_path_factory.mktemp("folder")) as model:
        generation = write(model)
    assert (generation.stop, generation.notices) == ("length", ())
    return generation.text


def kill(model, name):
    return lambda: os.kill(model.pid, signal.Signals[name])


def wait_until(happened):
    for _ in range(PATIENCE):
        if happened():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen")


@pytest.mark.parametrize("name", DEADLY)
def test_a_death_while_writing_is_repaired_by_a_fresh_worker(model, undisturbed, name):
    model.describe()
    first = model.pid
    view = At("text", kill(model, name))
    generation = write(model, view)
    assert generation.text == undisturbed
    assert "".join(view.pieces[1]) == undisturbed
    assert model.pid != first
    assert is_gone(first)
    (restart,) = view.restarts
    assert name in restart["problem"]
    assert restart["log"]
    (notice,) = generation.notices
    assert "restarted" in notice
    assert name in notice


def test_a_death_while_the_prompt_is_read_is_repaired(model, undisturbed):
    view = At("progress", kill(model, "SIGKILL"))
    assert write(model, view).text == undisturbed
    assert len(view.restarts) == 1


def test_a_death_while_the_model_loads_is_an_error_and_not_tried_again(model):
    before = workers()
    seen = []

    def kill_the_first():
        while not seen:
            seen.extend(workers() - before)
        seen[0].kill()

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    with pytest.raises(WorkerError, match="SIGKILL"):
        write(model)
    killer.join()
    assert workers() == before
    assert model.pid is None
    assert write(model, tokens=3).text


def test_a_model_that_cannot_be_loaded_is_an_error_and_leaves_no_process(slow_file, tmp_path):
    data = bytearray(slow_file.read_bytes())
    at = data.index(b"blk.0.attn_q.weight")
    data[at : at + 3] = b"xxx"  # a whole file, but a tensor has another name
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(data)
    before = workers()
    with opened(broken, tmp_path) as model, pytest.raises(ModelFileError, match="could not load"):
        write(model)
    assert workers() == before


def test_two_deaths_in_a_turn_are_an_error_with_the_last_words(model):
    view = At("text", kill(model, "SIGSEGV"), again=True)
    with pytest.raises(WorkerError, match="SIGSEGV") as caught:
        write(model, view)
    assert len(view.restarts) == 1
    assert str(caught.value).count("SIGSEGV") == 2
    assert "Fatal Python error: Segmentation fault" in caught.value.log
    assert "doctor" in caught.value.hint
    assert model.pid is None
    assert write(model, tokens=3).text


def test_a_kill_for_want_of_memory_is_named(model, monkeypatch):
    count = itertools.count()
    monkeypatch.setattr(process, "memory_kills", lambda: next(count))
    view = At("text", kill(model, "SIGKILL"), again=True)
    with pytest.raises(WorkerError, match="SIGKILL, out of memory") as caught:
        write(model, view)
    assert "lower `context`" in caught.value.hint


def test_a_stopped_worker_is_replaced(model, undisturbed, monkeypatch):
    monkeypatch.setattr(process, "SILENCE_SECONDS", 5.0)
    model.describe()
    first = model.pid
    view = At("text", kill(model, "SIGSTOP"))
    assert write(model, view).text == undisturbed
    assert "silent for 5 seconds" in view.restarts[0]["problem"]
    assert is_gone(first)


def test_a_stopped_worker_holds_nobody_up_who_sends_more_than_a_pipe_holds(model, monkeypatch):
    monkeypatch.setattr(process, "SILENCE_SECONDS", 5.0)
    model.describe()
    os.kill(model.pid, signal.SIGSTOP)
    with pytest.raises(ContextOverflowError):  # said by the fresh worker
        write(model, messages=[Message("user", "number " * 100_000)])


def test_a_worker_that_lives_but_makes_no_progress_is_replaced_once(tmp_path, monkeypatch):
    from tiny_models import write_llama

    monkeypatch.setattr(process, "HANG_SECONDS", 2.0)
    path = write_llama(tmp_path / "deep.gguf", layers=48, context=8192)
    view = At("text", lambda: None)
    with opened(path, tmp_path, batch=8192, context=8192) as model:
        model.describe()
        with pytest.raises(WorkerError, match="no progress for 2 seconds"):
            write(model, view, messages=[Message("user", "number " * 3900)], tokens=20)
    assert len(view.restarts) == 1


def test_a_pause_of_the_parent_is_not_held_against_the_worker(slow_file, tmp_path):
    done = run_parent(
        slow_file,
        tmp_path,
        """
        process.SILENCE_SECONDS = process.HANG_SECONDS = 4.0
        m.describe()
        code = "import os, sys, time; parent, worker = map(int, sys.argv[1:]);"
        # Both stop, as with Ctrl-Z; the parent wakes up first and finds nothing new.
        for pid, number, pause in (
            ("worker", "STOP", 0), ("parent", "STOP", 6), ("parent", "CONT", 0.5),
            ("worker", "CONT", 0),
        ):
            code += f"os.kill({pid}, {int(signal.Signals['SIG' + number])}); time.sleep({pause});"
        subprocess.Popen([sys.executable, "-c", code, str(os.getpid()), str(m.pid)])
        for seed in range(2):
            g = m.generate(TASK, grammar=None, max_tokens=1400, seed=seed)
            assert g.notices == () and g.stop == "length", g
        print("done")
        """,
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("moment", ["text", "progress"])
def test_a_turn_is_cancelled_from_another_thread_and_the_worker_goes_on(model, undisturbed, moment):
    model.describe()
    pid = model.pid
    cancel = threading.Thread(target=model.cancel)
    generation = write(model, At(moment, cancel.start), tokens=1400)
    cancel.join()
    assert generation.stop == "cancelled"
    assert len(generation.text) < len(undisturbed)
    assert undisturbed.startswith(generation.text)
    assert bool(generation.text) == (moment == "text")
    assert write(model).text == undisturbed
    assert model.pid == pid


def test_a_cancel_while_the_model_loads_is_kept(model):
    before = workers()
    result = []
    writing = threading.Thread(target=lambda: result.append(write(model, tokens=1400)))
    writing.start()
    wait_until(lambda: workers() - before)
    model.cancel()
    writing.join()
    assert (result[0].stop, result[0].text) == ("cancelled", "")


def test_a_cancel_with_nothing_to_end_is_without_effect(model, undisturbed):
    model.cancel()
    model.describe()
    model.cancel()
    assert write(model).text == undisturbed


def test_a_turn_ends_with_its_seconds_in_the_prompt_and_in_the_text(model, undisturbed):
    model.describe()
    pid = model.pid
    at_once = write(model, seconds=0)
    assert (at_once.stop, at_once.text) == ("cancelled", "")
    write(model, tokens=1)  # the prompt is in the cache
    soon = write(model, seconds=0.5, tokens=1500)
    assert soon.stop == "cancelled"
    assert soon.text
    plenty = write(model, seconds=1000)
    assert (plenty.stop, plenty.text) == ("length", undisturbed)
    assert model.pid == pid


def test_a_restarted_turn_has_only_the_seconds_that_are_left(model):
    model.describe()
    view = At("text", kill(model, "SIGKILL"))
    told = view.event

    def wait(kind, data):
        told(kind, data)
        time.sleep(0.5)

    view.event = wait
    generation = write(model, view, seconds=0.5)
    assert len(view.restarts) == 1
    assert (generation.stop, generation.text) == ("cancelled", "")


def test_ctrl_c_ends_the_turn_and_not_the_worker(model, undisturbed):
    model.describe()
    pid = model.pid
    # From another thread, so that it finds the main one waiting for the worker.
    press = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        write(model, At("text", press.start), tokens=1500)
    assert write(model).text == undisturbed
    assert model.pid == pid


def test_ctrl_c_ends_a_worker_that_does_not_listen(model, undisturbed):
    def stop_and_interrupt():
        os.kill(model.pid, signal.SIGSTOP)
        signal.raise_signal(signal.SIGINT)

    model.describe()
    pid = model.pid
    with pytest.raises(KeyboardInterrupt):
        write(model, At("text", stop_and_interrupt))
    assert is_gone(pid)
    assert write(model).text == undisturbed


def test_a_view_that_fails_ends_the_turn_and_not_the_worker(model, undisturbed):
    def fail():
        raise ZeroDivisionError

    model.describe()
    pid = model.pid
    with pytest.raises(ZeroDivisionError):
        write(model, At("text", fail), tokens=1500)
    assert write(model).text == undisturbed
    assert model.pid == pid


def test_closing_in_the_middle_of_a_turn_ends_it_for_good(model):
    before = workers()
    closing = threading.Thread(target=model.close)
    view = At("text", closing.start)
    with pytest.raises(WorkerError, match="closed"):
        write(model, view, tokens=1500)
    closing.join()
    assert view.restarts == []
    assert workers() == before


def test_two_threads_start_one_worker(model):
    before = workers()
    threads = [threading.Thread(target=model.describe) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(workers() - before) == 1


def test_a_closed_worker_and_one_that_died_idle_leave_nothing(model):
    before = workers()
    model.describe()
    os.kill(model.pid, signal.SIGKILL)
    wait_until(lambda: workers() == before)
    generation = write(model, tokens=3)
    assert generation.notices == ()
    model.close()
    assert workers() == before


def test_a_worker_outlives_the_thread_that_started_it(model):
    starting = threading.Thread(target=model.describe)
    starting.start()
    starting.join()
    pid = model.pid
    assert write(model, tokens=3).text
    assert model.pid == pid


@pytest.mark.parametrize("state", ["idle", "stopped"])
def test_no_worker_outlives_a_parent_that_is_killed(slow_file, tmp_path, state):
    done = run_parent(
        slow_file,
        tmp_path,
        f"""
        m.describe()
        print(m.pid, flush=True)
        if {state == "stopped"}:
            os.kill(m.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    wait_until(lambda: is_gone(int(done.stdout)))


def test_five_hundred_turns_take_no_more_memory_than_fifty(tiny_llama, tmp_path):
    with opened(tiny_llama, tmp_path, batch=None) as model:
        model.describe()
        memory = psutil.Process(model.pid).memory_info
        sizes = []
        for number in range(1, 501):
            words = "number " * (1 + number % 40)
            grammar = f'root ::= "ANSWER: " [a-z]{{{1 + number % 7}}}'
            model.generate(
                [Message("user", f"{number} {words}")], grammar=grammar, max_tokens=12, seed=number
            )
            if number in (50, 500):
                sizes.append(memory().rss)
    assert sizes[1] <= sizes[0] * 1.02


def run_parent(path, folder, code):
    """Run code in a Python of its own, with a model ``m``."""
    head = f"""
        import os, signal, subprocess, sys
        from pathlib import Path
        from runner.core.conversation import Message
        from runner.models.llama import process
        from runner.models.llama.model import LlamaModel
        from runner.models.settings import ModelSettings, Sampling
        settings = ModelSettings(
            path=Path({str(path)!r}), threads=1, batch=8, sampling=Sampling(temperature=0.8)
        )
        m = LlamaModel("tiny", settings, Path({str(folder)!r}))
        TASK = [Message("user", "number " * 150)]
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )
