"""Guesses come from the prompt, and what is written is the same with and without them."""

import random

import pytest
from engines import engine_of, write

from runner.core.conversation import Message
from runner.models.settings import Sampling

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: run ./scripts/setup")

SOURCE = 'Read /srv/data/report-2024.csv for me.\nSay "yes" when done.'


def drafts(row_cost=0.1):
    from runner.models.llama.drafts import Drafts

    return Drafts(SOURCE, lambda text: list(text.encode()), row_cost=row_cost)


def guess(written, limit=40, **arguments):
    maker = drafts(**arguments)
    maker._size, maker._right = 40, 1.0
    return bytes(maker.propose(written, limit)).decode()


def test_a_guess_goes_on_where_the_prompt_does_to_the_end_of_the_line_or_string():
    assert guess("path is /srv") == "/data/report-2024.csv for me."
    assert guess("Say") == " "
    assert guess("no such thing") == ""
    assert guess("/s") == ""


def test_a_guess_is_no_longer_than_there_is_room():
    assert guess("/srv", limit=4) == "/dat"
    assert guess("/srv", limit=0) == ""


def test_nothing_is_guessed_where_a_row_costs_as_much_as_a_batch():
    assert guess("/srv", row_cost=1.0) == ""


def test_wrong_guesses_make_it_stop_and_right_ones_make_them_longer():
    maker = drafts(row_cost=0.4)
    first = len(maker.propose("/srv", 40))
    maker.judge(first, first)
    assert len(maker.propose("/srv", 40)) > first
    for _ in range(3):
        maker.judge(8, 0)
    assert maker.propose("/srv", 40) == []
    assert (maker.proposed, maker.accepted) == (first + 24, first)


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

        def propose(self, written, limit, tokens=tokens):
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
