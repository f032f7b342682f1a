"""Guesses come from the prompt, and what is written is the same with and without them."""

import random

import pytest
from engines import engine_of, write

from runner.core.conversation import Message
from runner.models.settings import Sampling

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: run ./scripts/setup")

SOURCE = 'Read /srv/data/report-2024.csv for me.\nSay "yes" when done.'


def drafts(row_cost=0.0, task=""):
    from runner.models.llama.drafts import Drafts

    return Drafts(SOURCE, task, lambda text: list(text.encode()), row_cost=row_cost)


def guess(turn, *, free=0, limit=40, **arguments):
    return bytes(drafts(**arguments).propose(turn, free, limit)).decode()


def test_a_guess_goes_on_where_the_prompt_does_to_the_end_of_the_line_or_string():
    assert guess("path is report-2024") == ".csv for me."
    assert guess("me for data/report-2024") == ".csv for me."
    assert guess("done: Read /srv/data") == "/report-2024.cs", "no guess is longer than 15 tokens"
    assert guess("no such thing") == ""
    assert guess("report-2") == "", "too short to mean much"


def test_text_that_the_grammar_forced_is_not_looked_up():
    assert guess("Read /srv/data", free=0).startswith("/report")
    assert guess("Read /srv/data", free=6) == ""


def test_a_value_is_guessed_as_a_whole_from_what_the_task_spells():
    task = "Move /srv/a-1.csv to /mnt/b-2.csv, 17 times."
    assert guess('ACTION: {"source": "/s', task=task) == "rv/a-1.csv"
    assert guess('ACTION: {"source": "/srv/a-1.csv", "target": "/', task=task) == "mnt/b-2.csv"
    assert guess('ACTION: {"target": "/mn', task=task) == "t/b-2.csv"
    assert guess('ACTION: {"count": 1', task=task) == "7"
    assert guess('ACTION: {"source": "x', task=task) == ""


def test_a_value_is_guessed_when_it_has_begun_and_few_begin_so():
    task = " ".join(f"/srv/{name}.csv" for name in "abcdefg")
    assert guess('{"path": "', task="Read /srv/a.csv") == ""
    assert guess('{"path": "/s', task=task) == ""
    assert guess('{"path": "/srv/c', task=task) == ".csv"


def test_a_guess_is_no_longer_than_there_is_room():
    assert guess("is /srv/data/report", limit=4) == "-202"
    assert guess("is /srv/data/report", limit=0) == ""


def test_nothing_is_guessed_where_a_row_costs_as_much_as_a_batch():
    assert guess("is /srv/data/report", row_cost=1.0) == ""


def test_wrong_guesses_make_it_stop_and_it_tries_again_later():
    maker = drafts(row_cost=0.4)
    assert maker.propose("is /srv/data/report", 0, 40)
    for _ in range(3):
        maker.judge(8, 0)
    tries = [bool(maker.propose("is /srv/data/report", 0, 40)) for _ in range(20)]
    assert not any(tries[:5])
    assert tries[-1]
    assert (maker.proposed, maker.accepted) == (24, 0)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("grammar", [None, 'root ::= "ANSWER: " [a-zA-Z0-9 ]+ "."'])
def test_what_is_written_is_the_same_whatever_is_guessed(
    tiny_llama, tmp_path, monkeypatch, temperature, grammar
):
    from runner.models.llama.drafts import Drafts

    sampling = Sampling(temperature=temperature, top_k=8)
    talk = [Message("user", "value number result " * 30)]
    plain = engine_of(tiny_llama, tmp_path, guess_ahead=False, sampling=sampling)
    guessing = engine_of(tiny_llama, tmp_path, sampling=sampling)
    rng = random.Random(1)
    right = wrong = 0
    for seed in range(6):
        expected = write(plain, talk, grammar=grammar, most=80, seed=seed)
        tokens = plain.prompts._written[expected.text]

        def propose(self, turn, free, limit, tokens=tokens):
            """What comes, up to a random place, and then something else."""
            place = len(guessing.cache.tokens) - len(guessing.prompt(talk)) + 1
            good = tokens[max(place, 0) :][: rng.randrange(6)]
            return [*good, *(rng.randrange(300) for _ in range(rng.randrange(3)))][:limit]

        monkeypatch.setattr(Drafts, "propose", propose)
        found = write(guessing, talk, grammar=grammar, most=80, seed=seed)
        assert (found.text, found.stop) == (expected.text, expected.stop)
        assert guessing.cache.tokens == plain.cache.tokens
        right += found.usage.accepted_tokens
        wrong += found.usage.draft_tokens - found.usage.accepted_tokens
    assert right > 20
    assert wrong > 20
