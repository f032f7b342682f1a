import warnings

import pytest

from runner.protocol.named_call import named_call


def call(text):
    return named_call(text, lambda name: name == "find")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("elk", "elk"),
        ('"elk"', "elk"),
        ("'elk'", "elk"),
        ('"the \\"old\\" elk\\n"', 'the "old" elk\n'),
        ("the dogs'", "the dogs'"),
        ('say "yes"', 'say "yes"'),
        ("results of tests", "results of tests"),
    ],
)
def test_only_quotes_around_the_whole_input_are_taken_away(written, text):
    assert call(f"find\nAction Input: {written}").value == text


@pytest.mark.parametrize(
    "written",
    [
        '"elk', '"a" or "b"', "'it's'", "none", "None.", "N/A", "<path>", "the file from step 1",
        "the previous result", "$PATH", "result.path", "...", "TODO", "no input needed",
    ],
)  # fmt: skip
def test_an_input_that_is_unclear_or_says_nothing_is_refused(written):
    with pytest.raises(ValueError, match="input"):
        call(f"find\nAction Input: {written}")


@pytest.mark.parametrize("written", ['{"a": "b"', '{"name": "x", "input": {"a": 1}', "{"])
def test_an_object_behind_a_name_must_be_whole(written):
    with pytest.raises(ValueError, match="brackets"):
        call(f"find {written}")


@pytest.mark.parametrize(
    "written",
    [
        r'"C:\Docs\new"', r'"C:\new"', r'"\d\b"', r'"\bword"', r'"\x41"', r'"\101"', r'"\N{DASH}"',
        '"a" "b"', '"a"\n"b"', '"a" + "b"', "1_0.5", "1j", "f'{x}'", "b'x'", "0x" + "f" * 4000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("action", ["ignore", "error", "always"])
def test_python_literals_that_say_two_things_are_refused(written, action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        with pytest.raises(ValueError):
            call(f"find(x={written})")
    assert caught == []


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"a\nb"', "a\nb"),
        (r'r"\d+\b"', "\\d+\\b"),
        (r'"C:\\Docs"', "C:\\Docs"),
        ('["a", "b"]', ["a", "b"]),
        ("-7", -7),
    ],
)
def test_plain_python_literals_are_read(written, value):
    assert call(f"find(x={written})").value == {"x": value}


@pytest.mark.parametrize("spelled", ["9007199254740993.0", "1.10", "-2.50", "0x10", "1_000"])
def test_numbers_of_python_code_keep_their_spelling(spelled):
    assert call(f"find(ä=[1], x={spelled})").value["x"].text == spelled
