import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.protocol.relaxed import read_relaxed
from runner.protocol.relaxed_tokens import RelaxedError

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["it's", 'say "yes" now', "a, b", '", "b": "c', "http://x // y", "# no", "C:\\dir", "{[", "\n"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("key"), inner, max_size=3)
    ),
    max_leaves=6,
)
GAPS = ["", " ", "\n", "\u3000", "\u200b", " // it is so\n", " /* this */ ", " # that\n"]


def written(value, draw):
    """The value as a model may write it, with nothing lost."""

    def gap():
        return draw(st.sampled_from(GAPS))

    def text(content):
        if draw(st.booleans()):
            return json.dumps(content, ensure_ascii=draw(st.booleans()))
        body = json.dumps(content)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return f"'{body}'"

    if isinstance(value, str):
        return text(value)
    comma = draw(st.sampled_from([",", "，"]))
    end = gap() + comma if value and draw(st.booleans()) else ""
    if isinstance(value, list):
        items = comma.join(gap() + written(item, draw) + gap() for item in value)
        return draw(st.sampled_from(["[{}]", "［{}］"])).format(items + end)
    if isinstance(value, dict):
        colon = draw(st.sampled_from([":", "："]))
        items = comma.join(
            gap() + ("key" if key == "key" else text(key)) + colon + gap() + written(item, draw)
            for key, item in value.items()
        )
        left, right = draw(st.sampled_from(["{}", "｛｝"]))
        return left + items + end + gap() + right
    return str(value) if draw(st.booleans()) else json.dumps(value)


@given(VALUES, st.data())
def test_what_is_only_spelled_otherwise_is_read_as_it_is_meant(value, data):
    found, receipts = read_relaxed(written([value], data.draw))
    assert json.dumps(found) == json.dumps([value])
    assert sum(receipt.cost for receipt in receipts) == 0


def test_a_key_of_escapes_is_as_long_as_its_characters():
    key = "\N{GRINNING FACE}" * 90
    found, _ = read_relaxed(f"{{'{json.dumps(key)[1:-1]}': 1, \"b\": 2,}}")
    assert found == {key: 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["say "yes" now"]', 'say "yes" now'),
        ('["press "save", then go"]', 'press "save", then go'),
        ('["12" wide and 3" high"]', '12" wide and 3" high'),
        ('["he said „so" and left"]', 'he said „so" and left'),
        ("[“he said “so” to me”]", "he said “so” to me"),
        ("['rock 'n' roll']", "rock 'n' roll"),
        ('["{"a": 1, "b": "c"}"]', '{"a": 1, "b": "c"}'),
        ('["\\\\\\\\NAS-1\\share\\docs"]'.replace("\\\\\\\\", "\\\\"), "\\\\NAS-1\\share\\docs"),
        ('["see C:\\Docs\\My File"]', "see C:\\Docs\\My File"),
        ('["(\\w+)-\\d{3}"]', "(\\w+)-\\d{3}"),
        ('["$\\alpha + \\gamma$"]', "$\\alpha + \\gamma$"),
        ("[5.]", 5.0),
        ("[red panda]", "red panda"),
        ("[src/main.py]", "src/main.py"),
        ("[red panda // the animal\n]", "red panda"),
    ],
)
def test_the_likely_reading_costs_something(text, value):
    found, receipts = read_relaxed(text)
    assert found == [value]
    assert any(receipt.cost for receipt in receipts)


@pytest.mark.parametrize(
    "text",
    [
        # a quote that is missing or too many
        '["a", b", "c"]', '["a, "b"]', '["a"", "b"]', '[""a", "b"]', '["a" "b"]', '["a" + "b"]',
        '["el"k"]', '["12", wide"]', '["12""]', '["1"000"]', '["say \\"yes" now"]', '["x"}"]',
        '{"a": "x, "b": y"}', '{"a": "x>", ""b": "}', '["5" + "6"]', "['the dogs' bowl']",
        # the same with quotes that have a left and a right one
        "[“a” ; “b”]", "[“a” “b”]", "[“a” and “b”]", "[「a」 ; 「b」]", "[«a»、«b»]", "[‘a’ / ‘b’]",
        "[„a“ ; „b“]", "[“a“ ; “b“]",
        # escapes that are half there, or not everywhere
        '["\\u00e"]', '["\\xe9"]', '["\\U0001F600"]', '["el\\k"]', '["big \\dog"]', '["\\alpha"]',
        '["\\\\d+\\s"]', '["\\\\alpha\\gamma"]', '["say \\"ye\\s\\""]', '["a\\\'\\b"]',
        # several texts with three quotes
        '["""a""" + """b"""]', '["""a""" """b"""]', '["""a""" + "b"]', "['''a''' 'b']",
        # comments that may be content
        '{"a": "x" // y", "b": 1\n}', "[#cats, #dogs\n]", "[C# lessons\n]", "[a//b]", "[nu#ll]",
        # numbers
        "[12 12]", "[1,.5]", "[-2.,0]", "[3\n0]", "[007]", "[1_000]", "[1`2]",
        "[0x" + "f" * 4000 + "]",
        "[" + "1" * 5000 + "]",
        # brackets
        '["a"}', '{"a": 1]', '["a"', '{"a": "b"', '{"tool": "t", "params": {}',
    ],
)  # fmt: skip
def test_what_could_be_meant_otherwise_is_refused(text):
    with pytest.raises(RelaxedError):
        read_relaxed(text)


@pytest.mark.parametrize(
    "word",
    [
        "nul", "rue", "ture", "flase", "Nul", "fals", "nulll", "tr", "lse", "undefined", "nil",
        "none of these", "null and void", "TODO", "TBD", "N/A", "unknown", "placeholder", "...",
        "result.path", "output.items", "response.text", "observation.id", "step1.output", "$PATH",
        "<path>", "/a/b or /c/d", "result of step 1", "the previous result", "a+b", "x" * 300,
    ],
)  # fmt: skip
def test_a_word_without_quotes_that_is_no_text_is_refused(word):
    with pytest.raises(RelaxedError):
        read_relaxed(f'{{"a": {word}}}')


@pytest.mark.parametrize(
    ("spelled", "value"),
    [("+49301234", 49301234), ("0xff0000", 0xFF0000), ("-0x10", -16), ("-0", 0), ("+0", 0)],
)
def test_a_number_keeps_its_spelling(spelled, value):
    (number,), _ = read_relaxed(f"[{spelled}]")
    assert (number, number.text) == (value, spelled)
    assert isinstance(number, int)
    assert json.dumps(number) == str(number) == f"{number}" == str(value)
    assert copy.deepcopy(number).text == spelled


def test_a_plain_number_is_a_plain_number():
    (number,), _ = read_relaxed("[12,]")
    assert type(number) is int


def test_json_in_a_comment_costs_something():
    _, receipts = read_relaxed('{"a": 1, // "a": 2,\n "b": 3}')
    assert sum(receipt.cost for receipt in receipts) == 1
