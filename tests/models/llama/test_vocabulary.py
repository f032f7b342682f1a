"""Text stays text: no spelling of the model's own words in it becomes one of them."""

import random

import pytest
from engines import engine_of
from hypothesis import given
from hypothesis import strategies as st

from runner.core.conversation import Message

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: run ./scripts/setup")

WORDS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>"]


@pytest.fixture(scope="module")
def engine(tiny_llama, tmp_path_factory):
    return engine_of(tiny_llama, tmp_path_factory.mktemp("folder"))


def text_of(vocabulary, tokens):
    return b"".join(map(vocabulary.bytes_of, tokens)).decode()


@given(
    st.lists(st.sampled_from([*WORDS, "<", "tool_", "call>", "a", " ", "|>", "\n"])).map("".join)
)
def test_text_is_the_same_text_and_none_of_it_is_markup(engine, text):
    vocabulary = engine.vocabulary
    tokens, broken = vocabulary.text_tokens(text)
    assert not any(map(vocabulary.is_markup, tokens))
    assert text_of(vocabulary, tokens) == text
    assert bool(broken) == ("<tool_call>" in text or "</tool_call>" in text)


def test_what_had_to_be_broken_is_a_notice(engine):
    from engines import write

    assert "<tool_call>" in write(engine, [Message("user", "a <tool_call> b")]).notices[0]
    assert write(engine, [Message("user", "a <|im_end|> b")]).notices == ()


def test_what_the_model_said_may_be_spelled_in_its_own_words(engine):
    (call,) = engine.vocabulary.markup_tokens("<tool_call>")
    said = [Message("user", "x"), Message("assistant", "<tool_call>"), Message("user", "y")]
    assert call in engine.prompt(said)
    heard = [Message("user", "x"), Message("assistant", "y"), Message("user", "<tool_call>")]
    assert call not in engine.prompt(heard)


def test_trusted_and_untrusted_text_cannot_make_a_word_together(engine):
    tokens, broken = engine.vocabulary.joined_tokens([("a <tool_", True), ("call> b", False)])
    assert not any(map(engine.vocabulary.is_markup, tokens))
    assert text_of(engine.vocabulary, tokens) == "a <tool_call> b"
    assert broken == []


def test_control_tokens_end_a_turn_in_free_text(engine, monkeypatch):
    from engines import write

    from runner.models.llama.sampler import Sampler

    (start,) = engine.vocabulary.markup_tokens("<|im_start|>")
    told = iter([*engine.vocabulary.text_tokens("yes")[0], start])
    monkeypatch.setattr(Sampler, "draw", lambda self, logits: next(told))
    generation = write(engine, [Message("user", "x")])
    assert (generation.text, generation.stop) == ("yes", "end")


def test_every_piece_of_a_character_is_streamed_as_whole_characters(engine, monkeypatch):
    from runner.models.llama.sampler import Sampler

    text = "größe 河 🐸!"
    singles = [token for byte in text.encode() for token in _byte(engine, byte)]
    told = iter([*singles, engine.vocabulary.end])
    monkeypatch.setattr(Sampler, "draw", lambda self, logits: next(told))
    pieces = []
    engine.generate(
        [Message("user", "x")],
        grammar=None,
        max_tokens=60,
        seed=1,
        on_text=pieces.append,
        on_progress=lambda done, total: None,
    )
    assert "".join(pieces) == text
    assert "\ufffd" not in "".join(pieces)


def _byte(engine, byte):
    vocabulary = engine.vocabulary
    found = [token for token in range(256 + 8) if vocabulary.bytes_of(token) == bytes([byte])]
    return found[:1]


def test_random_pieces_of_markup_in_any_message_leave_the_control_tokens_of_the_template(engine):
    rng = random.Random(3)
    vocabulary = engine.vocabulary

    def controls(content):
        talk = [Message("system", content), Message("user", content)]
        return sum(map(vocabulary.is_control, engine.prompt(talk)))

    plain = controls("plain")
    for _ in range(500):
        pieces = [rng.choice(WORDS) for _ in range(6)]
        content = "".join(
            piece[rng.randrange(3) : len(piece) - rng.randrange(3)] for piece in pieces
        )
        assert controls(content) == plain
