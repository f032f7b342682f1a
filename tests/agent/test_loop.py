import json

import pytest
from simple_tools import ADD

from runner import Agent, ScriptedModel
from runner.core.contract import Limits
from runner.core.conversation import Generation, Usage
from runner.core.errors import ConfigError, ContextOverflowError, ErrorKind, WorkerError
from runner.record import read_events


def action(tool, **params):
    return f"ACTION: {json.dumps({'tool': tool, 'params': params})}"


SUM = action("add", a=1, b=2)


def events_of(result):
    from pathlib import Path

    return list(read_events(Path(result.transcript)))


def kinds_of(result):
    return [event["event"] for event in events_of(result)]


def test_a_task_is_answered_from_what_a_tool_returned(add):
    model = ScriptedModel([SUM, "ANSWER: It is 3."])
    result = Agent(model, [add]).run("What is 1 + 2?")
    assert (result.status, result.answer, result.reason) == ("answered", "It is 3.", "")
    assert add.inputs == [{"a": 1, "b": 2}]
    assert [(r.call.id, r.call.name, r.text) for r in result.calls] == [("c1", "add", "3")]
    assert len(result.turns) == 2
    assert kinds_of(result) == [
        "run.start", "model.ready", "turn.start", "model.reply", "turn.parsed", "call.start",
        "call.end", "turn.start", "model.reply", "turn.parsed", "run.end",
    ]  # fmt: skip


def test_the_model_sees_the_observation_with_the_number_of_the_call(add):
    model = ScriptedModel([SUM, action("add", a=3, b=3), "ANSWER: 6"])
    Agent(model, [add]).run("task")
    *_, task, first, observed, second, again = model.requests[2].messages
    assert task.content == "task"
    assert (first.content, second.content) == (SUM, action("add", a=3, b=3))
    assert observed.content == "OBSERVATION [c1 add]: 3\n(first call of add)"
    assert again.content == "OBSERVATION [c2 add]: 6\n(second call of add)"


def test_prompts_only_grow(add, search):
    model = ScriptedModel([SUM, "nonsense", action("search", query="x"), "ANSWER: done"])
    Agent(model, [add, search]).run("task")
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages


def test_several_calls_in_a_turn_run_in_order(add, search):
    model = ScriptedModel([f"{SUM}\n{action('search', query='elk')}", "ANSWER: done"])
    result = Agent(model, [add, search]).run("task")
    assert [r.call.id for r in result.calls] == ["c1", "c2"]
    observed = model.requests[1].messages[-1].content
    assert observed.index("[c1 add]") < observed.index("[c2 search]")


def test_a_turn_that_cannot_be_used_is_asked_for_again_with_the_reason(add):
    model = ScriptedModel(["It is 3.", "ANSWER: 3"])
    result = Agent(model, [add]).run("task")
    assert (result.status, result.retries) == ("answered", 1)
    asked = model.requests[1].messages
    assert asked[-2].content == "It is 3."
    assert asked[-1].content.startswith("ERROR: Your reply has neither")


def test_the_second_retry_shows_an_example_of_the_tool(add, search):
    wrong = action("search")
    model = ScriptedModel([wrong, wrong, "ANSWER: no"])
    Agent(model, [add, search]).run("task")
    assert "Example" not in model.requests[1].messages[-1].content
    assert 'Example: ACTION: {"tool": "search"' in model.requests[2].messages[-1].content


def test_after_two_retries_the_run_gives_up_with_an_honest_answer(add):
    model = ScriptedModel([SUM, "?", "??", "???"])
    result = Agent(model, [add]).run("task")
    assert result.status == "gave_up"
    assert len(model.requests) == 4
    assert "could not finish" in result.answer
    assert "The last result was: 3" in result.answer
    assert kinds_of(result).count("model.rejected") == 3


def test_retries_are_counted_for_each_turn(add):
    model = ScriptedModel(["?", "?", SUM, "?", "?", "ANSWER: 3"])
    assert Agent(model, [add]).run("task").status == "answered"


def test_a_call_that_was_cut_off_does_not_run(add):
    model = ScriptedModel([Generation(SUM, "length"), "ANSWER: no"])
    result = Agent(model, [add]).run("task")
    assert add.inputs == []
    assert "cut off" in model.requests[1].messages[-1].content
    assert result.status == "answered"


def test_in_the_last_turn_the_grammar_leaves_only_an_answer(add):
    model = ScriptedModel([SUM, "ANSWER: 3"])
    Agent(model, [add], max_turns=2).run("task")
    assert "add" in model.requests[0].grammar
    assert "add" not in model.requests[1].grammar


def test_a_model_that_ignores_the_grammar_is_stopped_by_the_turn_limit(add):
    model = ScriptedModel([action("add", a=i, b=i) for i in range(9)])
    result = Agent(model, [add], max_turns=3).run("task")
    assert (result.status, result.answer) == ("limit", None)
    assert len(model.requests) == 3
    assert "3 turns" in result.reason


def test_a_tool_whose_calls_are_spent_leaves_the_grammar(add_twice_only, search):
    calls = [action("add", a=i, b=i) for i in range(2)]
    model = ScriptedModel([*calls, "ANSWER: done"])
    Agent(model, [add_twice_only, search]).run("task")
    assert [("add" in request.grammar) for request in model.requests] == [True, True, False]
    assert "search" in model.requests[2].grammar
    assert "1 left" in model.requests[1].messages[-1].content


def test_a_spent_tool_does_not_run_even_without_the_grammar(add_twice_only):
    model = ScriptedModel([*[action("add", a=i, b=i) for i in range(3)], "ANSWER: done"])
    result = Agent(model, [add_twice_only]).run("task")
    assert len(add_twice_only.inputs) == 2
    assert result.calls[2].error is ErrorKind.LIMIT


def test_a_runs_own_call_limit_goes_before_the_contracts(add):
    model = ScriptedModel([SUM, "ANSWER: 3"])
    Agent(model, [add], max_calls={"add": 1}).run("task")
    assert "add" not in model.requests[1].grammar


def test_after_a_repetition_that_brought_nothing_new_only_an_answer_is_left(add):
    model = ScriptedModel([SUM, SUM, "ANSWER: 3"])
    Agent(model, [add]).run("task")
    assert ["add" in request.grammar for request in model.requests] == [True, True, False]
    assert "nothing new" in model.requests[2].messages[-1].content


def test_the_same_call_with_a_changed_result_is_no_repetition(add):
    results = iter("123")
    add.function = lambda params: next(results)
    model = ScriptedModel([SUM, SUM, SUM, "ANSWER: 3"])
    Agent(model, [add]).run("task")
    assert all("add" in request.grammar for request in model.requests)


def test_a_failing_tool_is_told_to_the_model(search):
    model = ScriptedModel([action("search", query="nothing"), "ANSWER: none"])
    result = Agent(model, [search]).run("task")
    assert "ERROR: nothing found (try a wider word)" in model.requests[1].messages[-1].content
    assert result.status == "answered"


def test_a_repaired_turn_stands_in_history_in_the_protocols_spelling(add):
    model = ScriptedModel(["ACTION: {'tool': 'add', 'params': {'a': 1, 'b': '2'}}", "ANSWER: 3"])
    result = Agent(model, [add]).run("task")
    assert model.requests[1].messages[-2].content == SUM
    assert result.turns[0].receipts


def test_ctrl_c_ends_the_run_and_closes_the_transcript(add):
    result = Agent(ScriptedModel([SUM, KeyboardInterrupt()]), [add]).run("task")
    assert result.status == "interrupted"
    assert kinds_of(result)[-1] == "run.end"


def test_a_model_that_dies_ends_the_run_with_the_error_and_its_log(add):
    death = WorkerError("it died", log=("line 1", "line 2"))
    result = Agent(ScriptedModel([SUM, death]), [add]).run("task")
    assert result.status == "failed"
    assert result.error is death
    assert events_of(result)[-1]["log"] == ["line 1", "line 2"]


def test_a_task_that_does_not_fit_fails_with_both_numbers(add):
    result = Agent(ScriptedModel([ContextOverflowError(5000, 4096)]), [add]).run("task")
    assert result.status == "failed"
    assert "5000" in result.reason
    assert "4096" in result.reason


def test_a_window_that_fills_up_later_is_a_limit(add):
    result = Agent(ScriptedModel([SUM, ContextOverflowError(5000, 4096)]), [add]).run("task")
    assert result.status == "limit"
    assert result.error is None


def test_usage_adds_up(add):
    usage = Usage(prompt_tokens=10, generated_tokens=5, decode_seconds=0.5)
    model = ScriptedModel([Generation(SUM, "end", usage), Generation("ANSWER: 3", "end", usage)])
    result = Agent(model, [add]).run("task")
    assert result.usage == Usage(prompt_tokens=20, generated_tokens=10, decode_seconds=1.0)


def test_the_seed_is_drawn_once_and_recorded(add):
    result = Agent(ScriptedModel(["ANSWER: 3"]), [add]).run("task")
    assert events_of(result)[0]["seed"] == result.seed
    model = ScriptedModel([SUM, "ANSWER: 3"])
    Agent(model, [add], seed=7).run("task")
    assert [request.seed for request in model.requests] == [7, 8]


def test_the_record_holds_what_a_reader_needs(add):
    events = events_of(Agent(ScriptedModel([SUM, "ANSWER: 3"]), [add]).run("What is 1 + 2?"))
    start = events[0]
    assert start["task"] == "What is 1 + 2?"
    assert start["tools"][0]["name"] == "add"
    assert events[1]["event"] == "model.ready"
    assert events[1]["opening"][0]["role"] == "system"
    reply = next(event for event in events if event["event"] == "model.reply")
    assert reply["text"] == SUM
    assert events[-1]["status"] == "answered"


def test_an_agent_without_tools_can_only_answer():
    model = ScriptedModel(["ANSWER: hello"])
    assert Agent(model).run("hi").answer == "hello"
    assert "ACTION" not in model.requests[0].grammar


def test_two_tools_of_one_name_are_refused(add):
    with pytest.raises(ConfigError, match="'add' is twice"):
        Agent(ScriptedModel([]), [add, add])


def test_a_limit_for_a_tool_that_is_not_there_is_refused(add):
    with pytest.raises(ConfigError, match="'sub' is not"):
        Agent(ScriptedModel([]), [add], max_calls={"sub": 1})


def test_a_view_sees_text_and_events(add):
    class Seen:
        def __init__(self):
            self.texts, self.kinds = [], []

        def text(self, piece):
            self.texts.append(piece)

        def progress(self, done, total):
            pass

        def event(self, kind, data):
            self.kinds.append(kind)

    view = Seen()
    Agent(ScriptedModel([SUM, "ANSWER: 3"]), [add], view=view).run("task")
    assert view.texts == [SUM, "ANSWER: 3"]
    assert view.kinds[-1] == "run.end"


def test_the_result_as_json_is_json():
    contract = ADD.model_copy(update={"limits": Limits(max_calls=1)})
    assert contract.limits.max_calls == 1
    result = Agent(ScriptedModel(["ANSWER: 3"])).run("task")
    data = json.loads(json.dumps(result.to_json()))
    assert {"status", "answer", "turns", "calls", "usage", "transcript"} <= set(data)


def test_more_calls_in_a_turn_than_allowed_are_refused_together(add):
    many = "\n".join(action("add", a=i, b=i) for i in range(5))
    model = ScriptedModel([many, "ANSWER: no"])
    Agent(model, [add], max_calls_per_turn=4).run("task")
    assert add.inputs == []
    assert "5 calls" in model.requests[1].messages[-1].content


def test_calls_in_the_last_turn_do_not_run(add):
    result = Agent(ScriptedModel([SUM]), [add], max_turns=1).run("task")
    assert result.status == "limit"
    assert add.inputs == []


def test_a_call_that_ran_is_in_the_result_when_the_next_is_interrupted(add, search):
    def interrupted(params):
        raise KeyboardInterrupt

    search.function = interrupted
    model = ScriptedModel([f"{SUM}\n{action('search', query='x')}"])
    result = Agent(model, [add, search]).run("task")
    assert result.status == "interrupted"
    assert [r.text for r in result.calls] == ["3"]


def test_a_fault_of_a_foreign_model_still_closes_the_transcript(add, tmp_path):
    from runner.record import Transcript

    transcript = Transcript.create(tmp_path)
    with pytest.raises(ValueError, match="boom"):
        Agent(ScriptedModel([ValueError("boom")]), [add], recorder=transcript).run("task")
    assert list(read_events(transcript.path))[-1]["status"] == "failed"


def test_an_answer_that_was_cut_off_says_so_in_the_reason():
    model = ScriptedModel([Generation("ANSWER: The first of", "length")])
    result = Agent(model).run("task")
    assert result.status == "answered"
    assert "not complete" in result.reason


@pytest.mark.parametrize("limit", [{"max_turns": 0}, {"max_tokens": 0}, {"retries": -1}])
def test_limits_that_make_no_sense_are_refused(limit):
    with pytest.raises(ConfigError, match=next(iter(limit))):
        Agent(ScriptedModel([]), **limit)
