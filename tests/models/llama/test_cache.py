"""What is kept of a conversation, for architectures that can forget a part and that cannot."""

import threading

import pytest
from engines import engine_of, write

from runner.core.conversation import Message

OPENING = [Message("system", "Be brief. " * 30), Message("user", "one"), Message("assistant", "1")]
TALK = [*OPENING, Message("user", "What is the name of the one with this number?")]
OTHER = [*OPENING, Message("user", "And the result of that?")]


@pytest.fixture(params=["tiny_llama", "tiny_mamba", "tiny_swa"])
def make(request, tmp_path):
    path = request.getfixturevalue(request.param)
    return lambda **changes: engine_of(path, tmp_path, **changes)


def answered(messages, generation, more="the next"):
    return [*messages, Message("assistant", generation.text), Message("user", more)]


def test_a_warm_cache_writes_what_a_cold_one_writes(make):
    cold = write(make(), OTHER)
    engine = make()
    write(engine, TALK)
    warm = write(engine, OTHER)
    assert warm.usage.reused_tokens >= len(engine.prompts.tokens(OTHER, ()).tokens) * 2 // 3
    assert warm.text == cold.text


def test_a_warm_cache_has_the_very_numbers_of_a_cold_one(make):
    def first_logits(before):
        engine = make()
        for messages in before:
            write(engine, messages)
        write(engine, OTHER, most=1)
        return list(engine.cache.logits(0))

    assert first_logits([TALK]) == first_logits([])
    assert first_logits([TALK, answered(TALK, write(make(), TALK)), OTHER]) == first_logits([])


def test_a_conversation_that_only_grows_evaluates_only_what_is_new(make):
    engine = make()
    first = write(engine, TALK)
    second = write(engine, answered(TALK, first))
    usage = first.usage
    assert second.usage.reused_tokens >= usage.prompt_tokens + usage.generated_tokens - 1
    assert second.cut == ""


def test_what_broke_the_reuse_is_told(make):
    engine = make()
    write(engine, TALK)
    changed = write(engine, [Message("system", "Be long."), *TALK[1:]])
    assert "cached tokens were kept" in changed.cut


def test_an_answer_that_is_changed_afterwards_is_never_silently_wrong(make):
    engine = make()
    first = write(engine, TALK)
    changed = [*TALK, Message("assistant", first.text[:5] + "!"), Message("user", "the next")]
    again = write(engine, changed)
    fresh = make()
    write(fresh, TALK)
    assert again.usage.reused_tokens < first.usage.prompt_tokens + 5
    # As after any other way to the same place.
    assert write(fresh, changed).text == again.text


def test_nothing_is_guessed_where_a_guess_cannot_be_taken_back(tiny_mamba, tmp_path):
    engine = engine_of(tiny_mamba, tmp_path)
    generation = write(engine, [Message("user", "result value number " * 5)], most=60)
    assert generation.usage.draft_tokens == 0


def test_a_state_stands_for_its_tokens_only(make):
    engine = make()
    write(engine, TALK)
    tokens, state = list(engine.cache.tokens), engine.cache.state()
    assert engine.cache.restore(tokens, state)
    assert engine.cache.tokens == tokens
    assert not engine.cache.restore(tokens[:-1], state)
    assert engine.cache.tokens == []
    assert not engine.cache.restore(tokens, state[: len(state) // 2])
    assert write(engine, TALK).text == write(make(), TALK).text


def test_a_cancel_in_the_middle_of_a_prompt_keeps_what_was_read(make):
    engine = make(batch=32)
    steps = []

    def cancel_soon(done, total):
        steps.append((done, total))
        if len(steps) == 2:
            engine.cancel()

    stopped = write(engine, TALK, on_progress=cancel_soon)
    assert (stopped.stop, stopped.text) == ("cancelled", "")
    assert len(steps) == 2
    assert len(engine.cache.tokens) == steps[-1][0]
    engine.uncancel()
    assert write(engine, TALK).text == write(make(batch=32), TALK).text


def test_a_cancel_from_another_thread_ends_a_single_long_batch(tiny_llama, tmp_path):
    engine = engine_of(tiny_llama, tmp_path, batch=2048)
    timer = threading.Timer(0.01, engine.cancel)
    timer.start()
    try:
        stopped = write(engine, [Message("user", "the number " * 450)], most=200)
    finally:
        timer.cancel()
    assert stopped.stop == "cancelled"
    engine.uncancel()
    assert write(engine, TALK).text == write(engine_of(tiny_llama, tmp_path, batch=2048), TALK).text
