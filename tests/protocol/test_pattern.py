import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recognizer import Grammar

from runner import ToolContract
from runner.protocol import build_grammar

HELD = {
    r"^a*$": (["", "aaa"], ["b", "ab"]),
    r"^[a-zA-Z0-9_-]+$": (["He_llo-12"], ["", "Hello World", "!"]),
    r"^a\^\$\.\[\]\(\)\|\{\}\*\+\?b$": (["a^$.[]()|{}*+?b"], ["ab"]),
    r"^\d{4}-\d{2}-\d{2}$": (["2026-12-01"], ["2026-12-1", "٢٠٢٦-12-01"]),
    r"^(foo|bar)?baz$": (["baz", "foobaz"], ["foo", "foofoobaz"]),
    r"^(?:(?:ab)+c)?d$": (["d", "ababcd"], ["abd", "cd"]),
    r'^[^"\\]+$': (["é\t\n"], ['"', "\\", ""]),
    r'^["\\a]{2}$': (['"\\', "a\\"], ["a", "bb"]),
    r"^[a-z]+(\.[a-z]+){0,3}$": (["a", "a.b.c"], ["a.", "a.b.c.d.e", ".a"]),
    r"^a{2,}$": (["aa", "a" * 50], ["a"]),
    r"^.*$": (["", 'any "thing"\t'], ["a\nb"]),
    r"^\s\S$": (["\tx", "\u00a0y"], ["xx", "  "]),
    r"^[\w.+-]+@\w+$": (["a.b@c"], ["a@", "@c", "a b@c"]),
    r"^[]-a\]]$".replace("[]", r"[\]"): (["]", "^", "a"], ["b", "-"]),
    r"^é+[ä-ü]$": (["éö"], ["e"]),
    r"^\x41\u0042\n$": (["AB\n"], ["AB"]),
    r"^https?://": (["http://", "https://x/y"], ["ftp://", " http://"]),
    r"\.py$": ([".py", "a.py.py"], ["a.pyc", "py"]),
    r"a+": (["a", "xax", "aa"], ["", "xx"]),
    r"\S": (["  x "], ["  ", ""]),
    r"^a|b$": (["ab", "axx", "xxb"], ["xx", "ba"]),
    r"^(a|)b$": (["b", "ab"], ["a"]),
    r"^$": ([""], ["a"]),
    r"": (["", "a"], []),
    r"^[A-Z]{2}(-?[0-9]{1,3}){2}$": (["AB-1-2", "AB1234"], ["AB-1", "A-1-2"]),
}
NOT_HELD = [
    r"(?=a)b", r"(?<!a)b", r"(a)\1", r"\bfoo", r"\Bx", "foo", "a{3}", r"^([a-z]+)*$", r"^(a*)+$",
    r"(?i)a", r"^a+?$", r"x^y", r"(^a)$", r"^[a-z]+x", r"^((a{99}){99}){99}$",
]  # fmt: skip


def built(pattern, **keywords):
    schema = {"type": "string", "pattern": pattern, **keywords}
    tool = ToolContract.from_schema("t", "d", {"properties": {"v": schema}, "required": ["v"]})
    return build_grammar([tool], thought=False)


def taken(grammar, text):
    value = json.dumps(text, ensure_ascii=False)
    return Grammar(grammar.text).accepts('ACTION: {"tool": "t", "params": {"v": ' + value + "}}")


@pytest.mark.parametrize("pattern", HELD)
def test_patterns_of_the_safe_subset_are_held(pattern):
    grammar = built(pattern)
    good, bad = HELD[pattern]
    assert grammar.notes == ()
    assert [text for text in good if not taken(grammar, text)] == []
    assert [text for text in bad if taken(grammar, text)] == []


@pytest.mark.parametrize("pattern", NOT_HELD)
def test_other_patterns_are_left_to_the_check_and_noted(pattern):
    grammar = built(pattern)
    assert grammar.notes == (
        "tool 't', parameter 'v': 'pattern' is not enforced by the grammar, it is checked after",
    )
    assert taken(grammar, "anything")


def test_a_pattern_and_lengths_hold_together_where_one_part_varies():
    grammar = built("^ab[a-z]*c$", minLength=4, maxLength=6)
    assert grammar.notes == ()
    texts = ["abc", "abxc", "abxyzc", "abwxyzc"]
    assert [text for text in texts if taken(grammar, text)] == ["abxc", "abxyzc"]


def test_lengths_that_do_not_hold_with_a_pattern_are_noted():
    (note,) = built("^a*b*$", minLength=2).notes
    assert "'minLength' is not enforced" in note
    assert built("^[a-z]{2,5}$", minLength=2, maxLength=5).notes == ()


def test_a_pattern_that_no_length_fits_leaves_the_tool_out():
    assert built("^a+$", minLength=5, maxLength=3).left_out == ("t",)


def test_the_pattern_of_a_second_branch_is_noted():
    schema = {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}
    (note,) = build_grammar(
        [ToolContract.from_schema("t", "d", {"properties": {"v": schema}})]
    ).notes
    assert "'pattern'" in note


@given(st.sampled_from(sorted(HELD)), st.integers(0, 2**32))
@settings(max_examples=100)
def test_what_the_grammar_writes_matches_the_pattern(pattern, seed):
    call = json.loads(Grammar(built(pattern).text).sample(random.Random(seed), "call"))
    assert re.search(pattern, call["params"]["v"])
