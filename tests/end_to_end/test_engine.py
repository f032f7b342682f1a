"""The engine with real models: grammar, cache, seeds, special tokens, faults."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from real_models import fresh, settings_of

from runner.core.conversation import Message
from runner.core.errors import ContextOverflowError, GrammarError, WorkerError

HELLO = [Message("system", "You are brief."), Message("user", "Name three rivers.")]


def test_a_grammar_leaves_exactly_what_it_allows(each_model):
    generation = each_model.generate(HELLO, grammar='root ::= "Test"', max_tokens=20, seed=1)
    assert (generation.text, generation.stop) == ("Test", "end")


def test_a_grammar_with_other_scripts_is_held(each_model):
    grammar = 'root ::= "答案：" ( "河" | "湖" ) "🐸"'
    text = each_model.generate(HELLO, grammar=grammar, max_tokens=30, seed=1).text
    assert text in ("答案：河🐸", "答案：湖🐸")


def test_a_grammar_keeps_no_state_between_generations(each_model):
    texts = [
        each_model.generate(HELLO, grammar="root ::= [a-c]{3}", max_tokens=9, seed=1).text
        for _ in range(3)
    ]
    assert len(set(texts)) == 1
    assert len(texts[0]) == 3


def test_a_grammar_that_does_not_compile_is_an_error_and_the_worker_lives(small_model):
    small_model.describe()
    pid = small_model.pid
    with pytest.raises(GrammarError):
        small_model.generate(HELLO, grammar="root ::= under_score", max_tokens=5, seed=1)
    assert small_model.generate(HELLO, grammar='root ::= "ok"', max_tokens=5, seed=1).text == "ok"
    assert small_model.pid == pid


def test_the_next_turn_evaluates_only_what_is_new(each_model):
    first = each_model.generate(HELLO, grammar=None, max_tokens=30, seed=1)
    longer = [*HELLO, Message("assistant", first.text), Message("user", "Two more.")]
    second = each_model.generate(longer, grammar=None, max_tokens=5, seed=1)
    evaluated = second.usage.prompt_tokens - second.usage.reused_tokens
    # All of the first turn is kept but its last token, which was never evaluated.
    assert (
        second.usage.reused_tokens >= first.usage.prompt_tokens + first.usage.generated_tokens - 2
    )
    assert evaluated < 25


def test_a_warm_cache_writes_what_a_cold_one_writes(each_model):
    other = [HELLO[0], Message("user", "Name three mountains and say where they are.")]
    each_model.generate(other, grammar=None, max_tokens=10, seed=1)
    warm = each_model.generate(HELLO, grammar=None, max_tokens=12, seed=1)
    assert warm.usage.reused_tokens > 0
    with fresh(each_model.name) as cold_model:
        cold = cold_model.generate(HELLO, grammar=None, max_tokens=12, seed=1)
    assert cold.usage.reused_tokens == 0
    assert warm.text.split()[:2] == cold.text.split()[:2]


def test_seeds_decide_what_is_drawn(small_model):
    sampling = settings_of("smollm2-135m").sampling.model_copy(update={"temperature": 1.2})
    with fresh("smollm2-135m", sampling=sampling) as model:

        def draw(seed):
            return model.generate(HELLO, grammar=None, max_tokens=20, seed=seed).text

        assert draw(1) == draw(1)
        assert len({draw(seed) for seed in range(5)}) > 1


def test_no_more_tokens_than_asked_for(small_model):
    generation = small_model.generate(HELLO, grammar=None, max_tokens=7, seed=1)
    assert (generation.usage.generated_tokens, generation.stop) == (7, "length")


def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers():
    with fresh("smollm2-135m", context=256) as model:
        with pytest.raises(ContextOverflowError) as caught:
            model.generate([Message("user", "word " * 400)], grammar=None, max_tokens=9, seed=1)
        assert caught.value.window == 256
        assert caught.value.needed > 400
        assert model.generate(HELLO, grammar=None, max_tokens=3, seed=1).text


def test_streamed_pieces_add_up_to_the_text(each_model):
    class Pieces:
        text_pieces: list[str]

        def __init__(self):
            self.text_pieces, self.steps = [], []

        def text(self, piece):
            self.text_pieces.append(piece)

        def progress(self, done, total):
            self.steps.append((done, total))

        def event(self, kind, data):
            pass

    view = Pieces()
    messages = [Message("user", "Repeat this: 🐸 안녕 größe " + "and so on " * 60)]
    generation = each_model.generate(messages, grammar=None, max_tokens=40, seed=1, view=view)
    assert "".join(view.text_pieces) == generation.text
    assert view.steps[-1][0] == view.steps[-1][1]


def test_a_worker_that_is_killed_twice_is_a_typed_error_and_the_next_call_works():
    class Killer:
        def text(self, piece):
            os.kill(model.pid, signal.SIGKILL)

        def progress(self, done, total):
            pass

        def event(self, kind, data):
            pass

    with fresh("smollm2-135m") as model:
        with pytest.raises(WorkerError, match="SIGKILL") as caught:
            model.generate(HELLO, grammar=None, max_tokens=200, seed=1, view=Killer())
        assert caught.value.log
        again = model.generate(HELLO, grammar='root ::= "ok"', max_tokens=5, seed=1)
        assert again.text == "ok"


def test_closing_ends_the_worker():
    model = fresh("smollm2-135m")
    model.describe()
    pid = model.pid
    model.close()
    model.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_worker_ends_with_its_parent():
    settings_of("smollm2-135m")
    code = (
        "from runner import load_model\nimport os\nm = load_model('smollm2-135m')\n"
        "m.describe()\nprint(m.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"worker {pid} outlived its parent")


def test_the_parent_never_loads_native_code():
    settings_of("smollm2-135m")
    code = (
        "import sys\nfrom runner import Agent, load_model\n"
        "with load_model('smollm2-135m') as m:\n    Agent(m).run('hi')\n"
        "print('llama_cpp' in sys.modules, 'numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_view_that_fails_does_not_leave_its_reply_to_the_next_caller(small_model):
    class Broken:
        def text(self, piece):
            raise BrokenPipeError

        def progress(self, done, total):
            pass

        def event(self, kind, data):
            pass

    with pytest.raises(BrokenPipeError):
        small_model.generate(HELLO, grammar=None, max_tokens=30, seed=1, view=Broken())
    for word in ("one", "two"):
        generation = small_model.generate(HELLO, grammar=f'root ::= "{word}"', max_tokens=5, seed=1)
        assert generation.text == word


def test_a_worker_that_died_while_idle_is_replaced():
    with fresh("smollm2-135m") as model:
        model.describe()
        os.kill(model.pid, signal.SIGKILL)
        time.sleep(0.3)
        assert model.generate(HELLO, grammar='root ::= "ok"', max_tokens=5, seed=1).text == "ok"


def test_threads_take_turns(small_model):
    texts = {}

    def ask(word):
        grammar = f'root ::= "{word}"'
        texts[word] = small_model.generate(HELLO, grammar=grammar, max_tokens=5, seed=1).text

    threads = [threading.Thread(target=ask, args=(word,)) for word in ("aa", "bb", "cc")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {"aa": "aa", "bb": "bb", "cc": "cc"}


def test_a_cache_of_eight_bits_begins_as_one_of_sixteen_does(small_model):
    first = small_model.generate(HELLO, grammar=None, max_tokens=1, seed=1)
    with fresh("smollm2-135m", kv_cache="q8_0") as model:
        assert model.describe()["flash_attention"] is True
        assert model.generate(HELLO, grammar=None, max_tokens=1, seed=1).text == first.text
