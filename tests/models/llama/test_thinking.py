import pytest

from runner.core.conversation import Message
from runner.models.llama.template import ChatTemplate
from runner.models.llama.thinking import forced_close, own_close, with_thinking
from runner.models.settings import Thinking

TURNS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{{ '<|assistant|>\n' }}"
)
# The model opens its thoughts itself; the template closes empty ones where they are unwanted.
SWITCH = TURNS + "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
# The same the other way round, under the other name that templates use for the switch.
OTHER_SWITCH = TURNS + "{% if thinking %}<think>{% else %}</think>{% endif %}"
# Opened whatever is wanted.
ALWAYS = TURNS + "{{ '<think>\n' }}"
OFF, ON = Thinking(budget=0), Thinking()


def ending(source, thinking, content="Hi"):
    template = ChatTemplate(source, "gguf", thinking=thinking.budget > 0)
    segments = with_thinking(template.render([Message("user", content)]), thinking)
    return "".join(text for text, _ in segments).partition("<|assistant|>\n")[2]


@pytest.mark.parametrize(
    ("source", "off", "on"),
    [
        (TURNS, "", "<think>\n"),
        (SWITCH, "<think>\n\n</think>\n\n", "<think>\n"),
        (OTHER_SWITCH, "</think>", "<think>"),
        (ALWAYS, "<think>\n\n</think>\n\n", "<think>\n"),
    ],
)
def test_a_prompt_ends_open_with_thinking_and_closed_without(source, off, on):
    assert ending(source, OFF) == off
    assert ending(source, ON) == on


def test_tags_are_those_of_the_model():
    thinking = Thinking(open="[THINK]", close="[/THINK]")
    assert ending(TURNS, thinking) == "[THINK]\n"
    off = thinking.model_copy(update={"budget": 0})
    assert ending(TURNS + "[THINK]", off) == "[THINK]\n[/THINK]\n\n"


def test_a_message_that_ends_in_a_tag_opens_nothing():
    template = ChatTemplate("{{ messages[0].content }}", "gguf")
    segments = template.render([Message("user", "<think>")])
    assert with_thinking(segments, OFF) == segments
    assert with_thinking(segments, ON) == [*segments, ("<think>\n", None)]


def test_a_forced_close_stands_on_a_line_of_its_own():
    assert forced_close("", ON) == "\n</think>\n\n"
    assert forced_close("hm", ON) == "\n</think>\n\n"
    assert forced_close("hm\n", ON) == "</think>\n\n"


@pytest.mark.parametrize(
    ("written", "rest"),
    [
        ("hm\n", "</think>\n\n"),
        ("hm\n</thi", "nk>\n\n"),
        ("hm", "\n</think>\n\n"),
    ],
)
def test_a_close_that_the_model_writes_is_completed(written, rest):
    assert own_close("hm\n", len(written), ON) == rest
