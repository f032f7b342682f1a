"""Sampling under a grammar is exact: the same distribution as masking the vocabulary first."""

import numpy as np
import pytest
from engines import engine_of

from runner.models.settings import Sampling

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: run ./scripts/setup")

DRAWS = 6000
WHOLE = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


@pytest.fixture(params=["llama.cpp", "llguidance"])
def engine(request, tiny_llama, tmp_path):
    return engine_of(tiny_llama, tmp_path, grammar_engine=request.param)


def test_temperature_sampling_has_the_distribution_of_masking_first(engine):
    """A chi-square test of drawn against masked probabilities, with one draw for each seed."""
    from runner.models.llama.sampler import Sampler

    vocabulary = engine.vocabulary
    letters = {vocabulary.text_tokens(letter)[0][0]: letter for letter in "abcde"}
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.5, vocabulary.size).astype(np.float32)
    # About half of the first draws are refused, so that both ways of the sampler count.
    logits[list(letters)] = [4.0, 4.5, 5.0, 5.5, 3.0]
    temperature = 0.9
    weights = np.exp(logits[list(letters)] / temperature)
    expected = DRAWS * weights / weights.sum()
    counts = dict.fromkeys(letters, 0)
    refused = 0
    for seed in range(DRAWS):
        constraint = engine.constraints.make('root ::= [a-e] "?"')
        sampling = Sampling(temperature=temperature, **WHOLE)
        sampler = Sampler(vocabulary, sampling, constraint, seed)
        counts[sampler.sample(logits)] += 1
        refused += sampler.masked
        sampler.close()
        constraint.close()
    assert 0.2 * DRAWS < refused < 0.8 * DRAWS
    observed = np.array(list(counts.values()))
    chi_square = float(((observed - expected) ** 2 / expected).sum())
    # Four degrees of freedom: larger by chance once in 10,000 times.
    assert chi_square < 23.5, (observed, expected)


def test_a_refused_choice_where_the_turn_may_end_ends_it(engine):
    from runner.models.llama.sampler import Sampler

    vocabulary = engine.vocabulary
    (a,), (b,), (c,) = (vocabulary.text_tokens(letter)[0] for letter in "abc")
    logits = np.zeros(vocabulary.size, np.float32)
    constraint = engine.constraints.make('root ::= "a" "b"*')
    sampler = Sampler(vocabulary, Sampling(), constraint, 1)
    logits[c], logits[a], logits[b] = 9, 5, 3
    assert sampler.sample(logits) == a
    assert sampler.sample(logits) == vocabulary.end
    sampler.close()
    constraint.close()


def test_control_tokens_are_never_text_whatever_the_grammar(engine):
    from runner.models.llama.sampler import Sampler

    vocabulary = engine.vocabulary
    (start,) = vocabulary.markup_tokens("<|im_start|>")
    logits = np.zeros(vocabulary.size, np.float32)
    logits[start] = 9
    constraint = engine.constraints.make('root ::= [a-z<>|_]+ "."')
    sampler = Sampler(vocabulary, Sampling(), constraint, 1)
    assert not vocabulary.is_control(sampler.sample(logits))
    sampler.close()
    constraint.close()
