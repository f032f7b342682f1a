import pytest

from runner.protocol.unwrap import respelled


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ('{\\"p\\": \\"C:\\\\\\\\new\\"}', '{"p": "C:\\\\new"}'),
        ('{{"a": {{"b": "{{c}}"}}}}', '{"a": {"b": "{{c}}"}}'),
    ],
)
def test_a_text_that_was_escaped_as_a_whole_is_spelled_anew(text, spelled):
    assert [other for other, _ in respelled(text)] == [spelled]


@pytest.mark.parametrize(
    "text",
    ['{\\"p\\": \\"C:\\new\\"}', "{{'a': {{'b': '{{c}}'}}}}", '{{"a": {"b": 1}}}'],
)
def test_a_text_that_was_escaped_in_part_has_no_other_spelling(text):
    assert respelled(text) == []
