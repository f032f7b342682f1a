"""The tiny models for tests are real: llama.cpp loads them, and they follow grammars."""

import pytest

from runner.core.conversation import Generation, Message
from runner.models.settings import ModelSettings

HELLO = [Message("system", "Be brief."), Message("user", "Say <|im_end|> and <tool_call>.")]


@pytest.fixture(scope="module", params=["tiny_llama", "tiny_mamba", "tiny_swa"])
def engine(request, tmp_path_factory):
    path = request.getfixturevalue(request.param)
    from runner.models.llama.engine import Engine

    return Engine(ModelSettings(path=path, threads=1), tmp_path_factory.mktemp("folder"))


def generate(engine, **changes) -> Generation:
    arguments = {"grammar": None, "max_tokens": 8, "seed": 1, "messages": HELLO} | changes
    return engine.generate(
        arguments.pop("messages"),
        **arguments,
    )


def test_a_tiny_model_writes_as_many_tokens_as_it_may(engine):
    generation = generate(engine)
    assert generation.stop == "length"
    assert generation.usage.generated_tokens == 8


def test_a_tiny_model_follows_a_grammar(engine):
    generation = generate(
        engine, grammar='root ::= "ACTION: {\\"tool\\": \\"add\\"}"', max_tokens=40
    )
    assert generation.text == 'ACTION: {"tool": "add"}'
    assert generation.stop == "end"


def test_a_tiny_model_writes_the_same_again(engine):
    assert generate(engine, max_tokens=20).text == generate(engine, max_tokens=20).text


def test_the_vocabulary_has_words_control_tokens_and_words_of_its_own(engine):
    vocabulary = engine.vocabulary
    (start,) = vocabulary.markup_tokens("<|im_start|>")
    (call,) = vocabulary.markup_tokens("<tool_call>")
    (end,) = vocabulary.ends[-1:]
    assert vocabulary.is_control(start)
    assert vocabulary.is_markup(call)
    assert not vocabulary.is_control(call)
    assert vocabulary.text_of(end) == "<|im_end|>" == vocabulary.text_of(vocabulary.end)
    assert [vocabulary.text_of(t) for t in vocabulary.text_tokens("ACTION")[0]] == ["ACTION"]


def test_the_template_of_the_file_is_used(engine):
    prompt = "".join(map(engine.vocabulary.text_of, engine.prompt(HELLO)))
    assert prompt.endswith("<|im_end|>\n<|im_start|>assistant\n")
