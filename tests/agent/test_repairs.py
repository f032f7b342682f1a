"""Calls that change something run as they were written, or after somebody agreed."""

import json
from pathlib import Path

import pytest
from simple_tools import SimpleTool

from runner import Agent, ScriptedModel, ToolContract
from runner.core.contract import Effect
from runner.record import read_events


def note_tool(effect=Effect.WRITE):
    contract = ToolContract.from_schema(
        "write_note",
        "Write a note.",
        {
            "properties": {"text": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["text"],
        },
        effect=effect,
    )
    return SimpleTool(contract, lambda params: "written")


@pytest.fixture
def note():
    return note_tool()


def action(tool, **params):
    return f"ACTION: {json.dumps({'tool': tool, 'params': params})}"


CLEAN = action("write_note", text="buy milk")
WITH_A_COST = {
    "missing brace": CLEAN[:-1],
    "other name": CLEAN.replace("write_note", "WriteNote"),
    "no quotes": CLEAN.replace('"buy milk"', "buy milk"),
    "no marker": CLEAN.removeprefix("ACTION: "),
    "params beside the name": 'ACTION: {"tool": "write_note", "text": "buy milk"}',
}
WITHOUT_COST = {
    "clean": CLEAN,
    "single quotes": CLEAN.replace('"', "'"),
    "comma": CLEAN.replace("}}", ",}}"),
    "fence": f"ACTION:\n```json\n{CLEAN.removeprefix('ACTION: ')}\n```",
    "number in quotes": action("write_note", text="buy milk", line="3"),
}


def events_of(result, kind):
    return [event for event in read_events(Path(result.transcript)) if event["event"] == kind]


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.EXEC])
@pytest.mark.parametrize("name", WITH_A_COST)
def test_a_call_that_had_to_be_guessed_is_told_and_its_clean_second_try_runs(name, effect):
    note = note_tool(effect)
    seen = []
    model = ScriptedModel(
        [WITH_A_COST[name], lambda request: seen.append([*note.inputs]) or CLEAN, "ANSWER: done"]
    )
    result = Agent(model, [note]).run("task")
    assert seen == [[]]
    assert note.inputs == [{"text": "buy milk"}]
    assert (result.status, result.retries) == ("answered", 1)
    told = model.requests[1].messages[-1].content
    assert told.startswith("ERROR: ACTION 1 (write_note)")
    assert "Nothing was run" in told
    assert 'ACTION: {"tool": ..., "params": {...}}' in told
    (rejected,) = events_of(result, "model.rejected")
    assert rejected["kind"] == "repaired"
    assert events_of(result, "call.confirmed") == []


def test_the_model_is_told_what_had_to_be_guessed(note):
    model = ScriptedModel([WITH_A_COST["other name"], "ANSWER: no"])
    Agent(model, [note]).run("task")
    assert "'WriteNote' as 'write_note'" in model.requests[1].messages[-1].content


def test_the_second_refusal_shows_the_filled_example_of_that_tool(note, add):
    model = ScriptedModel([WITH_A_COST["missing brace"]] * 3)
    result = Agent(model, [add, note]).run("task")
    assert "Example" not in model.requests[1].messages[-1].content
    assert 'Example: ACTION: {"tool": "write_note"' in model.requests[2].messages[-1].content
    assert (result.status, note.inputs) == ("gave_up", [])


@pytest.mark.parametrize("name", WITHOUT_COST)
def test_what_is_only_spelled_otherwise_runs(name, note):
    def never(call, receipts):
        raise AssertionError("nobody needs to be asked")

    model = ScriptedModel([WITHOUT_COST[name], "ANSWER: done"])
    result = Agent(model, [note], confirm=never).run("task")
    assert note.inputs[0]["text"] == "buy milk"
    assert (result.status, result.retries) == ("answered", 0)


@pytest.mark.parametrize("effect", [Effect.READ, Effect.NETWORK])
@pytest.mark.parametrize("name", WITH_A_COST)
def test_a_tool_that_changes_nothing_runs_after_any_repair(name, effect):
    note = note_tool(effect)
    model = ScriptedModel([WITH_A_COST[name], "ANSWER: done"])
    assert Agent(model, [note]).run("task").retries == 0
    assert note.inputs == [{"text": "buy milk"}]


@pytest.mark.parametrize("clean_first", [True, False])
def test_a_turn_runs_as_a_whole_or_not_at_all(clean_first, note, add):
    calls = [action("add", a=1, b=2), WITH_A_COST["missing brace"]]
    text = "\n".join(calls if clean_first else calls[::-1])
    model = ScriptedModel([text, "ANSWER: no"])
    result = Agent(model, [add, note]).run("task")
    assert (add.inputs, note.inputs) == ([], [])
    assert result.calls == ()
    number = 2 if clean_first else 1
    assert f"ACTION {number} (write_note)" in model.requests[1].messages[-1].content


def test_a_repaired_read_does_not_hold_up_a_clean_write(note, add):
    text = f"{action('add', a=1, b=2)[:-1]}\n{CLEAN}"
    Agent(ScriptedModel([text, "ANSWER: done"]), [add, note]).run("task")
    assert (len(add.inputs), len(note.inputs)) == (1, 1)


def test_a_guess_about_the_whole_turn_touches_every_call(note, add):
    both = [
        {"tool": "add", "params": {"a": 1, "b": 2}},
        {"tool": "write_note", "params": {"text": "x"}},
    ]
    Agent(ScriptedModel([json.dumps(both), "ANSWER: no"]), [add, note]).run("task")
    assert (add.inputs, note.inputs) == ([], [])


def test_a_guess_in_a_list_of_calls_touches_each_of_them(note, add):
    text = f"ACTION: [{action('add', a=1, b=2)[8:]}, {WITH_A_COST['no quotes'][8:]}]"
    Agent(ScriptedModel([text, "ANSWER: no"]), [add, note]).run("task")
    assert (add.inputs, note.inputs) == ([], [])


def confirmed(answers, model, tools):
    asked = []

    def confirm(call, receipts):
        asked.append((call, receipts))
        return answers[len(asked) - 1]

    return Agent(model, tools, confirm=confirm).run("task"), asked


def test_with_a_yes_it_runs_as_it_was_read_and_the_question_is_on_record(note):
    model = ScriptedModel([WITH_A_COST["missing brace"], "ANSWER: done"])
    result, ((call, receipts),) = confirmed([True], model, [note])
    assert note.inputs == [{"text": "buy milk"}]
    assert result.retries == 0
    assert (call.name, call.input) == ("write_note", {"text": "buy milk"})
    assert [receipt.cost for receipt in receipts] == [1]
    (event,) = events_of(result, "call.confirmed")
    assert {key: event[key] for key in ("id", "name", "input", "what", "granted")} == {
        "id": "c1",
        "name": "write_note",
        "input": {"text": "buy milk"},
        "what": [receipts[0].what],
        "granted": True,
    }
    kinds = [event["event"] for event in read_events(Path(result.transcript))]
    assert kinds.index("call.confirmed") < kinds.index("turn.parsed") < kinds.index("call.start")


def test_with_a_no_it_does_not_run_and_the_question_is_on_record(note):
    model = ScriptedModel([WITH_A_COST["missing brace"], "ANSWER: no"])
    result, _ = confirmed([False], model, [note])
    assert note.inputs == []
    assert result.retries == 1
    assert [event["granted"] for event in events_of(result, "call.confirmed")] == [False]


def test_each_guessed_call_is_asked_about_until_the_first_no(note, add):
    text = "\n".join(
        [WITH_A_COST["other name"], action("add", a=1, b=2), *[WITH_A_COST["missing brace"]] * 2]
    )
    model = ScriptedModel([text, "ANSWER: no"])
    result, asked = confirmed([True, False], model, [add, note])
    assert [call.id for call, _ in asked] == ["c1", "c3"]
    assert (add.inputs, note.inputs) == ([], [])
    assert [event["granted"] for event in events_of(result, "call.confirmed")] == [True, False]


def test_whoever_is_asked_cannot_change_the_call(note):
    def meddle(call, receipts):
        call.input["text"] = "other"
        return True

    model = ScriptedModel([WITH_A_COST["missing brace"], "ANSWER: done"])
    Agent(model, [note], confirm=meddle).run("task")
    assert note.inputs == [{"text": "buy milk"}]


def test_ctrl_c_at_the_question_ends_the_run(note):
    def interrupted(call, receipts):
        raise KeyboardInterrupt

    model = ScriptedModel([WITH_A_COST["missing brace"]])
    result = Agent(model, [note], confirm=interrupted).run("task")
    assert (result.status, note.inputs) == ("interrupted", [])


def test_nobody_is_asked_about_a_call_that_will_not_run_anyway(note):
    model = ScriptedModel([WITH_A_COST["missing brace"]])
    agent = Agent(model, [note], max_turns=1, confirm=lambda call, receipts: 1 / 0)
    assert agent.run("task").status == "limit"
    assert note.inputs == []


def test_in_hermes_the_message_speaks_of_tool_calls(note):
    body = '{"name": "write_note", "arguments": {"text": "x"}'
    text = f"<tool_call>\n{body}\n</tool_call>"
    model = ScriptedModel([text, "no"], dialect="hermes")
    Agent(model, [note]).run("task")
    told = model.requests[1].messages[-1].content
    assert told.startswith("ERROR: tool call 1 (write_note)")
    assert "ACTION" not in told
    assert note.inputs == []
