"""Two engines hold turns to one GBNF text: what they allow, and what a grammar forces."""

import json
import random

import numpy as np
import pytest
from engines import engine_of, write
from simple_tools import ADD, SEARCH

from runner.core.conversation import Message
from runner.core.errors import ConfigError, GrammarError
from runner.protocol import tool_grammar

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: run ./scripts/setup")

TALK = [Message("user", "Add the number to the value.")]
GRAMMAR = tool_grammar([ADD, SEARCH], thought=False)


@pytest.fixture
def engine(tiny_llama, tmp_path):
    return engine_of(tiny_llama, tmp_path)


@pytest.fixture
def reference(tiny_llama, tmp_path):
    return engine_of(tiny_llama, tmp_path, grammar_engine="llama.cpp")


def test_llguidance_is_taken_where_it_is_installed(engine, reference):
    pytest.importorskip("llguidance")
    assert engine.describe()["grammar_engine"] == "llguidance"
    assert reference.describe()["grammar_engine"] == "llama.cpp"


def test_forced_text_is_written_in_the_models_own_tokens(engine):
    text = 'ACTION: {"tool": "add"}'
    grammar = "root ::= " + json.dumps(text)
    generation = write(engine, TALK, grammar=grammar, most=60)
    assert generation.text == text
    tokens, _ = engine.vocabulary.text_tokens(text)
    written = engine.prompts._written[text]
    assert written == tokens
    assert generation.usage.forced_tokens > len(tokens) // 2


def test_the_last_forced_token_is_left_to_the_model_where_text_may_merge_with_it(engine):
    constraint = engine.constraints.make('root ::= "the res" [a-z]+ "."')
    forced = constraint.forced()
    constraint.close()
    text = "".join(map(engine.vocabulary.text_of, forced))
    assert "the res".startswith(text)
    # "result" is one token: "res" at the end of what is forced would rule it out.
    assert text != "the res"


@pytest.mark.parametrize("seed", range(8))
def test_both_engines_take_the_same_tokens_at_every_choice(engine, reference, seed):
    rng = random.Random(seed)
    vocabulary = engine.vocabulary
    ours, theirs = engine.constraints.make(GRAMMAR), reference.constraints.make(GRAMMAR)
    # Whole characters: llama.cpp lets some bytes pass that are in no UTF-8 text.
    every = np.array([token for token in range(vocabulary.size) if _is_text(vocabulary, token)])
    choices = 0
    while choices < 60:
        forced = ours.forced()
        assert theirs.count_allowed(forced) == len(forced)
        for token in forced:
            theirs.accept(token)
        allowed = ours.allowed(every)
        assert (allowed == theirs.allowed(every)).all()
        token = int(rng.choice(list(every[allowed])))
        assert ours.allows(token)
        assert theirs.allows(token)
        choices += 1
        if vocabulary.is_end(token):
            break
        ours.accept(token)
        theirs.accept(token)
    ours.close()
    theirs.close()
    assert choices > 1


def _is_text(vocabulary, token):
    try:
        vocabulary.bytes_of(token).decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("which", ["engine", "reference"])
def test_a_row_of_tokens_is_counted_and_nothing_moves(which, request):
    engine = request.getfixturevalue(which)
    constraint = engine.constraints.make('root ::= [a-c]+ "."')
    good, _ = engine.vocabulary.text_tokens("abcab")
    bad, _ = engine.vocabulary.text_tokens("z")
    assert constraint.count_allowed(good + bad + good) == len(good)
    assert constraint.count_allowed(good) == len(good)
    assert constraint.count_allowed(bad) == 0
    constraint.accept(good[0])
    assert constraint.count_allowed(good) == len(good)
    constraint.close()


@pytest.mark.parametrize("which", ["engine", "reference"])
@pytest.mark.parametrize("grammar", ["root ::= under_score", 'root ::= "a', "nothing", ""])
def test_a_grammar_that_does_not_compile_is_an_error(which, grammar, request):
    engine = request.getfixturevalue(which)
    with pytest.raises(GrammarError):
        write(engine, TALK, grammar=grammar)
    assert write(engine, TALK, grammar='root ::= "ok"').text == "ok"


def test_a_grammar_that_is_not_portable_is_left_to_llama_cpp(engine):
    from runner.models.llama.llama_grammar import LlamaGrammar

    constraint = engine.constraints.make("root ::= .")
    portable = engine.constraints.make('root ::= "a"')
    assert isinstance(constraint, LlamaGrammar) != isinstance(portable, LlamaGrammar)
    constraint.close()
    portable.close()


def test_a_turn_is_as_long_as_it_may_be_also_where_text_is_forced(engine):
    generation = write(engine, TALK, grammar='root ::= "the result of the value" [a-z]+', most=3)
    assert (generation.usage.generated_tokens, generation.stop) == (3, "length")


def test_an_engine_that_is_asked_for_and_not_installed_is_named(engine, monkeypatch):
    from runner.models.llama import constraint

    monkeypatch.setattr(constraint.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="llguidance"):
        constraint.Constraints(engine.vocabulary, "llguidance")
    assert constraint.Constraints(engine.vocabulary, "auto").engine == "llama.cpp"
