"""The conversation of a run in the dialect of its model."""

from pathlib import Path

import pytest
from simple_tools import ADD, SEARCH

from runner import Agent, ScriptedModel
from runner.agent.context import Context
from runner.core.conversation import ModelTurn, Receipt, ToolCall, ToolResult
from runner.core.errors import ConfigError, ProtocolError
from runner.record import read_events

CALL = ToolCall("c1", "add", {"a": 1, "b": 2})
SPELLED = {
    "action": 'ACTION: {"tool": "add", "params": {"a": 1, "b": 2}}',
    "hermes": '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>',
}
OBSERVED = {
    "action": "OBSERVATION [c1 add]: 3\n(first call of add, 1 left)",
    "hermes": "<tool_response>\n3\n(first call of add, c1, 1 left)\n</tool_response>",
}
ANSWER = {"action": "ANSWER: It is 3.", "hermes": "It is 3."}

each_dialect = pytest.mark.parametrize("dialect", list(SPELLED))


def context(dialect, tools=(ADD, SEARCH), *, in_template=False):
    return Context(tools, dialect, in_template=in_template)


def last(conversation):
    message = conversation.messages[-1]
    return message.role, message.content


@each_dialect
def test_a_turn_that_needed_no_repair_stays_as_it_was_written(dialect):
    conversation = context(dialect)
    conversation.turn(ModelTurn(calls=(CALL,)), "as   written")
    assert last(conversation) == ("assistant", "as   written")


@each_dialect
def test_a_repaired_turn_stands_in_the_dialects_own_spelling(dialect):
    conversation = context(dialect)
    conversation.turn(ModelTurn(calls=(CALL,), receipts=(Receipt("call", "x"),)), "faulty")
    assert last(conversation) == ("assistant", SPELLED[dialect])


@each_dialect
def test_results_come_in_the_dialects_own_form(dialect):
    conversation = context(dialect)
    conversation.observation([ToolResult(CALL, "3", 1)], {"add": 1}, [])
    assert last(conversation) == ("user", OBSERVED[dialect])


@each_dialect
def test_a_refusal_shows_what_was_written_and_an_example_of_the_tool_in_question(dialect):
    conversation = context(dialect)
    error = ProtocolError("no such query", kind="bad_params", tool="search")
    problem = conversation.rejection(error, "faulty", with_example=True)
    assert conversation.messages[-2].content == "faulty"
    assert last(conversation) == ("user", f"ERROR: {problem}")
    example = problem.partition("Example: ")[2]
    assert example == conversation.dialect.spelled_call("search", {"query": "text"})


@each_dialect
def test_an_empty_reply_leaves_no_empty_message(dialect):
    conversation = context(dialect)
    before = len(conversation.messages)
    conversation.rejection(ProtocolError("empty", kind="empty"), " \n", with_example=False)
    assert len(conversation.messages) == before + 1


@pytest.mark.parametrize(
    ("dialect", "in_template", "presented"),
    [("action", True, False), ("hermes", True, True), ("hermes", False, False)],
)
def test_the_template_presents_tools_where_it_can_and_the_dialect_wants_it(
    dialect, in_template, presented
):
    conversation = context(dialect, in_template=in_template)
    assert conversation.template_tools == ((ADD, SEARCH) if presented else ())
    assert (ADD.description in conversation.messages[0].content) != presented


def test_an_unknown_dialect_is_refused():
    with pytest.raises(ConfigError, match="no dialect 'hermse'"):
        context("hermse")


@each_dialect
def test_a_whole_run_speaks_one_dialect(dialect, add, search):
    broken = SPELLED[dialect].replace('"', "'")
    other = SPELLED[dialect].replace("add", "sub")
    model = ScriptedModel([broken, other, SPELLED[dialect], ANSWER[dialect]], dialect=dialect)
    result = Agent(model, [add, search], max_calls={"add": 2}).run("task")
    assert (result.status, result.answer, result.retries) == ("answered", "It is 3.", 1)
    assert [r.call.id for r in result.calls] == ["c1", "c2"]
    said = [message.content for message in model.requests[-1].messages]
    task = said.index("task")
    assert said[task + 1] == SPELLED[dialect]
    assert said[task + 2] == OBSERVED[dialect]
    assert said[task + 3] == other
    assert 'there is no tool "sub"' in said[task + 4]
    assert said[task + 5] == SPELLED[dialect]
    words = {"action": "tool_call", "hermes": "ACTION"}
    assert words[dialect] not in "".join(said)


def test_in_a_model_whose_template_shows_tools_they_go_to_the_template(add):
    class WithTemplate(ScriptedModel):
        def describe(self):
            return {**super().describe(), "template_tools": True}

    for dialect, presented in (("hermes", (ADD,)), ("action", ())):
        model = WithTemplate([SPELLED[dialect], ANSWER[dialect]], dialect=dialect)
        assert Agent(model, [add]).run("task").answer == "It is 3."
        # The same tools each time, also when the grammar has fewer: the prompt must not change.
        assert [request.tools for request in model.requests] == [presented, presented]


def test_the_transcript_says_which_dialect_was_spoken(add):
    model = ScriptedModel([SPELLED["hermes"], "3"], dialect="hermes")
    result = Agent(model, [add]).run("task")
    ready = list(read_events(Path(result.transcript)))[1]
    assert ready["settings"]["dialect"] == "hermes"
