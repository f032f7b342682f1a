import io

import pytest

from runner.cli.terminal import TerminalView


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screens():
    return Terminal(), Terminal()


def write(view, text, size=3):
    for start in range(0, len(text), size):
        view.text(text[start : start + size])
    view.event("model.reply", {})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_an_answer_is_written_once_while_it_comes(screens, size):
    out, err = screens
    view = TerminalView(*screens)
    write(view, "THOUGHT: easy\nANSWER: It is 42.\nReally.", size)
    view.finish("It is 42.\nReally.")
    assert out.getvalue() == "It is 42.\nReally.\n"
    assert err.getvalue() == "THOUGHT: easy\n"


def test_an_answer_that_was_refused_is_followed_by_the_right_one(screens):
    out, _ = screens
    view = TerminalView(*screens)
    write(view, "ANSWER: wrong")
    write(view, "ANSWER: right")
    view.finish("right")
    assert out.getvalue().endswith("right\n")
    assert out.getvalue().count("right") == 1


def test_actions_go_to_stderr(screens):
    out, err = screens
    write(TerminalView(*screens), 'ACTION: {"tool": "add"}')
    assert (out.getvalue(), err.getvalue()) == ("", 'ACTION: {"tool": "add"}\n')


def test_long_results_are_shortened_on_the_screen(screens):
    view = TerminalView(*screens)
    data = {"id": "c1", "name": "t", "error": None, "result": "line\n" * 500}
    view.event("call.end", data)
    text = screens[1].getvalue()
    assert text.count("line") < 20
    assert "2,500 characters in all" in text


def test_thoughts_are_dimmed_on_stderr_and_the_turn_begins_a_new_line(screens):
    out, err = screens
    view = TerminalView(*screens)
    for piece in ("", "\nIs it", " 3?", ""):
        view.thinking(piece)
    write(view, "ANSWER: 3")
    assert out.getvalue() == "3\n"
    assert err.getvalue() == "\x1b[2m(thinking) Is it\x1b[0m\x1b[2m 3?\x1b[0m\n"


def test_thoughts_have_no_escapes_where_stderr_is_a_file():
    err = io.StringIO()
    view = TerminalView(io.StringIO(), err)
    view.thinking("hm\n")
    view.text("ANSWER: 3")
    view.event("model.reply", {})
    assert err.getvalue() == "(thinking) hm\nANSWER: 3\n"


def test_a_restart_ends_the_half_written_line_and_the_turn_begins_anew(screens):
    out, err = screens
    view = TerminalView(*screens)
    view.text("THOUGHT: half a sen")
    view.event("model.restarted", {"problem": "it was killed", "log": []})
    write(view, "THOUGHT: whole\nANSWER: yes")
    view.finish("yes")
    assert out.getvalue() == "yes\n"
    first, note, second = err.getvalue().splitlines()
    assert (first, second) == ("THOUGHT: half a sen", "THOUGHT: whole")
    assert "restarted" in note
    assert "it was killed" in note
