"""The grammar narrows with the run: it holds exactly what may still be done, in each dialect."""

from pathlib import Path

import pytest
from recognizer import Grammar

from runner import Agent, ScriptedModel
from runner.core.conversation import ModelTurn, ToolCall
from runner.protocol.dialects import find_dialect
from runner.record import read_events

each_dialect = pytest.mark.parametrize("dialect", ["action", "hermes"])


def call(dialect, name, **params):
    return find_dialect(dialect).spelled(ModelTurn(calls=(ToolCall("c1", name, params),)))


def answer(dialect, text="done"):
    return find_dialect(dialect).spelled(ModelTurn(answer=text))


def allowed(dialect, request):
    """What the grammar of a request lets the model write: tools by name, and ``answer``."""
    texts = {
        "add": call(dialect, "add", a=1, b=2),
        "search": call(dialect, "search", query="x"),
        "answer": answer(dialect),
    }
    grammar = Grammar(request.grammar)
    return {name for name, text in texts.items() if grammar.accepts(text)}


def play(dialect, turns, tools, **options):
    """What was allowed in each turn of a run."""
    model = ScriptedModel(turns, dialect=dialect)
    result = Agent(model, tools, **options).run("task")
    return result, [allowed(dialect, request) for request in model.requests]


ALL = {"add", "search", "answer"}


@each_dialect
def test_a_tool_leaves_the_grammar_with_its_last_call(dialect, add_twice_only, search):
    calls = [call(dialect, "add", a=i, b=i) for i in range(2)]
    turns = [*calls, call(dialect, "search", query="x"), answer(dialect)]
    result, seen = play(dialect, turns, [add_twice_only, search])
    assert seen == [ALL, ALL, {"search", "answer"}, {"search", "answer"}]
    assert result.status == "answered"


@each_dialect
def test_two_calls_in_one_turn_count_twice(dialect, add_twice_only, search):
    two = "\n".join(call(dialect, "add", a=i, b=i) for i in range(2))
    _, seen = play(dialect, [two, answer(dialect)], [add_twice_only, search])
    assert seen == [ALL, {"search", "answer"}]


@each_dialect
def test_a_runs_own_limit_narrows_as_well(dialect, add, search):
    turns = [call(dialect, "add", a=1, b=2), answer(dialect)]
    _, seen = play(dialect, turns, [add, search], max_calls={"add": 1, "search": 0})
    assert seen == [{"add", "answer"}, {"answer"}]


@each_dialect
def test_with_all_calls_spent_only_the_answer_is_left(dialect, add, search):
    turns = [
        call(dialect, "add", a=1, b=2) + "\n" + call(dialect, "search", query="x"),
        answer(dialect),
    ]
    _, seen = play(dialect, turns, [add, search], max_calls={"add": 1, "search": 1})
    assert seen == [ALL, {"answer"}]


@each_dialect
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_in_the_last_turn_only_the_answer_is_left(dialect, turns, add, search):
    calls = [call(dialect, "add", a=i, b=i) for i in range(turns - 1)]
    result, seen = play(dialect, [*calls, answer(dialect)], [add, search], max_turns=turns)
    assert seen == [ALL] * (turns - 1) + [{"answer"}]
    assert result.status == "answered"


@each_dialect
def test_after_a_repetition_only_the_answer_is_left(dialect, add, search):
    one = call(dialect, "add", a=1, b=2)
    _, seen = play(dialect, [one, one, answer(dialect)], [add, search])
    assert seen == [ALL, ALL, {"answer"}]


@each_dialect
def test_a_turn_that_was_refused_narrows_nothing(dialect, add_twice_only, search):
    wrong = call(dialect, "add", a="x", b=2)
    turns = [wrong, call(dialect, "add", a=1, b=2), answer(dialect)]
    result, seen = play(dialect, turns, [add_twice_only, search])
    assert seen == [ALL, ALL, ALL]
    assert result.retries == 1


@each_dialect
def test_the_digest_on_record_changes_with_the_grammar_only(dialect, add, search):
    turns = [call(dialect, "search", query="x"), call(dialect, "add", a=1, b=2), answer(dialect)]
    result, seen = play(dialect, turns, [add, search], max_calls={"add": 1})
    assert seen == [ALL, ALL, {"search", "answer"}]
    events = read_events(Path(result.transcript))
    digests = [event["grammar"] for event in events if event["event"] == "turn.start"]
    assert digests[0] == digests[1] != digests[2]
