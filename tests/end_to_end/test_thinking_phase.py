"""Thinking with a model that was not trained for it: what counts is where it ends."""

from dataclasses import asdict

import pytest
from real_models import fresh, settings_of

from runner import Agent, ScriptedModel
from runner.core.conversation import Message
from runner.core.errors import ContextOverflowError
from runner.models.settings import Thinking
from runner.record import Transcript, read_events

HELLO = [Message("system", "You are brief."), Message("user", "Name three rivers.")]
GRAMMAR = 'root ::= "ANSWER: " [a-z]{3}'
BUDGET = 24
END_OF_TURN = 2  # <|im_end|> in the vocabulary of SmolLM2
OPENING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n<think>\n' }}"
)


class Pieces:
    def __init__(self):
        self.said, self.thought = "", ""

    def text(self, piece):
        self.said += piece

    def thinking(self, piece):
        self.thought += piece

    def progress(self, done, total):
        pass

    def event(self, kind, data):
        pass


@pytest.fixture(scope="module")
def model():
    with fresh("smollm2-135m", thinking=Thinking(budget=BUDGET)) as loaded:
        yield loaded


@pytest.fixture
def engine_with():
    """Makes engines in this process: what is in their cache can be looked at."""
    engines = []

    def make(**changes):
        from runner.models.llama.engine import Engine

        changes = {"context": 1024, "threads": 1, **changes}
        settings = settings_of("smollm2-135m").model_copy(update=changes)
        engines.append(Engine(settings, settings.path.parent))
        return engines[-1]

    yield make
    for engine in engines:
        import llama_cpp as lib

        lib.llama_free(engine.cache._context)
        lib.llama_model_free(engine.loaded.model)


def write(engine, messages=HELLO, grammar=GRAMMAR, most=20):
    return engine.generate(
        messages,
        grammar=grammar,
        max_tokens=most,
        seed=1,
    )


def cached_text(engine):
    return b"".join(map(engine.vocabulary.bytes_of, engine.cache.tokens)).decode("utf-8", "replace")


def test_thoughts_are_free_and_bounded_and_the_turn_follows_the_grammar(model):
    view = Pieces()
    generation = model.generate(HELLO, grammar=GRAMMAR, max_tokens=20, seed=1, view=view)
    assert generation.text.startswith("ANSWER: ")
    assert len(generation.text) == len("ANSWER: abc")
    assert generation.thinking.strip()
    assert not generation.thinking.startswith("ANSWER")
    assert 0 < generation.usage.thinking_tokens <= BUDGET
    assert generation.usage.generated_tokens > generation.usage.thinking_tokens
    assert (view.said, view.thought) == (generation.text, generation.thinking)


def test_the_room_of_the_turn_is_not_eaten_by_thoughts(model):
    generation = model.generate(HELLO, grammar="root ::= [a-z ]+", max_tokens=2, seed=1)
    usage = generation.usage
    assert usage.generated_tokens - usage.thinking_tokens <= 2
    assert usage.thinking_tokens > 2


def test_the_next_turn_reuses_all_but_the_thoughts(engine_with):

    engine = engine_with(thinking=Thinking(budget=BUDGET))
    first = write(engine)
    longer = [*HELLO, Message("assistant", first.text), Message("user", "Two more.")]
    prompt = engine.prompt(longer)
    warm = write(engine, longer)
    opened = len(engine.vocabulary.markup_tokens("<think>\n"))
    assert warm.usage.reused_tokens == first.usage.prompt_tokens - opened
    assert engine.cache.tokens[: len(prompt)] == prompt
    engine.cache.clear()
    cold = write(engine, longer)
    assert cold.usage.reused_tokens == 0
    # A batch of another size may round differently, in the long run.
    assert cold.thinking.split()[:2] == warm.thinking.split()[:2]


@pytest.mark.parametrize("template", [None, "opening.j2"])
def test_the_cache_holds_open_tag_thoughts_close_tag_and_turn(engine_with, tmp_path, template):
    if template:
        (tmp_path / template).write_text(OPENING)
        template = str(tmp_path / template)
    engine = engine_with(thinking=Thinking(budget=BUDGET), template=template)
    generation = write(engine)
    turn = cached_text(engine).rpartition("assistant\n")[2]
    # The last token of a turn is never evaluated.
    said = f"<think>\n{generation.thinking}\n</think>\n\n{generation.text}"
    assert said.startswith(turn)
    assert turn.partition("</think>\n\n")[2].startswith("ANSWER: ")


def test_a_template_that_opens_thoughts_is_closed_where_thinking_is_off(engine_with, tmp_path):
    (tmp_path / "opening.j2").write_text(OPENING)
    engine = engine_with(template=str(tmp_path / "opening.j2"))
    generation = write(engine)
    assert (generation.thinking, generation.usage.thinking_tokens) == ("", 0)
    turn = cached_text(engine).rpartition("assistant\n")[2]
    assert turn.startswith("<think>\n\n</think>\n\nANSWER: ")


def _sample_with(draw):
    from runner.models.llama.sampler import Sampler

    sample = Sampler.sample

    def sample_freely(self, context):
        self.draw = lambda context: draw(self, context)
        return sample(self, context)

    return sample_freely


@pytest.mark.parametrize(
    ("writes", "end", "thinking", "cached"),
    [
        ("Easy.\n</think>\n\n", False, "Easy.\n", "Easy.\n</think>\n\n"),
        ("Easy.</think>So", False, "Easy.", "Easy.</think>\n\n"),
        ("Easy.", True, "Easy.", "Easy.\n</think>\n\n"),
        ("", True, "", "\n</think>\n\n"),
        ("Easy.\n", True, "Easy.\n", "Easy.\n</think>\n\n"),
        (" a" * 40, False, " a" * 32, " a" * 32 + "\n</think>\n\n"),
    ],
)
def test_however_thoughts_end_the_turn_begins_behind_the_tag(
    engine_with, monkeypatch, writes, end, thinking, cached
):
    from runner.models.llama.sampler import Sampler

    engine = engine_with(thinking=Thinking(budget=900))
    told = iter([*engine.vocabulary.text_tokens(writes)[0], *([END_OF_TURN] if end else [])])
    draw = Sampler.draw
    # What the model would think is told here; the turn is its own.
    monkeypatch.setattr(Sampler, "draw", lambda self, context: next(told))
    monkeypatch.setattr(Sampler, "sample", _sample_with(draw))
    generation = write(engine)
    turn = cached_text(engine).rpartition("assistant\n<think>\n")[2]
    assert turn.startswith(cached)
    assert turn.partition("</think>\n\n")[2].startswith("ANSWER: ")
    assert generation.text.startswith("ANSWER: ")
    assert generation.thinking == thinking


def test_a_small_window_shortens_thoughts_before_the_turn(engine_with):
    engine = engine_with(thinking=Thinking(budget=900), context=256)
    before = len(engine.prompt(HELLO))
    most = 256 - before - engine.closing_tokens - 10
    generation = write(engine, grammar='root ::= "ok"', most=most)
    assert generation.text == "ok"
    assert generation.usage.thinking_tokens <= 10
    none = write(engine, grammar='root ::= "ok"', most=4000)
    assert (none.text, none.thinking) == ("ok", "")
    with pytest.raises(ContextOverflowError):
        write(engine, [Message("user", "word " * 220)])


def test_thoughts_are_in_the_transcript_and_never_shown_to_the_model(model, tmp_path):
    generation = model.generate(HELLO, grammar=GRAMMAR, max_tokens=20, seed=1)
    script = ScriptedModel([generation, "ANSWER: done"])
    with Transcript.create(tmp_path) as record:
        Agent(script, [], recorder=record).run("task")
        events = list(read_events(record.path))
    (reply,) = [event for event in events if event["event"] == "model.reply"]
    assert reply["thinking"] == generation.thinking
    assert reply["usage"] == asdict(generation.usage)
