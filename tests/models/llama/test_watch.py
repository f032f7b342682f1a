from hypothesis import given
from hypothesis import strategies as st

from runner.models.llama.watch import TextWatch


def feed(pieces, stops=()):
    watch, shown = TextWatch(stops), ""
    for piece in pieces:
        shown += watch.add(piece)
        if watch.stop:
            break
    else:
        shown += watch.flush()
    return watch, shown


def test_a_stop_string_is_cut_off_wherever_it_is_split():
    for cut in range(1, 8):
        text = "done\n### User"
        watch, shown = feed([text[:cut], text[cut:]], ["\n### "])
        assert (watch.text, shown, watch.stop) == ("done", "done", "stop")


def test_what_only_begins_like_a_stop_string_is_shown_in_the_end():
    watch, shown = feed(["a\n", "#", "# b", "\n##"], ["\n### "])
    assert watch.stop is None
    assert shown == watch.text == "a\n## b\n##"


@given(st.lists(st.text("ab#\n ", max_size=4), max_size=30))
def test_what_is_shown_is_the_text_and_never_holds_a_stop_string(pieces):
    watch, shown = feed(pieces, ["##", "a#b"])
    assert shown == watch.text
    assert "##" not in shown
    assert "a#b" not in shown


def test_text_that_only_repeats_itself_is_noticed():
    assert feed(["the same words again and again. "] * 12)[0].stop == "degenerate"
    assert feed([" "] * 40)[0].stop == "degenerate"
    watch = TextWatch()
    for _ in range(32):
        watch.add("G", token=5)
    assert watch.stop == "degenerate"


def test_ordinary_repetition_is_no_fault():
    rows = [f"line {i}: value\n" for i in range(50)]
    assert feed(rows)[0].stop is None
    assert feed(["-" * 10, " ", "=" * 12, "\n"] * 2)[0].stop is None


def test_the_stop_string_that_came_first_is_named():
    watch, _ = feed(["thoughts</thi", "nk>\n### "], ["\n### ", "</think>"])
    assert (watch.text, watch.found) == ("thoughts", "</think>")
    assert feed(["thoughts"], ["</think>"])[0].found is None
