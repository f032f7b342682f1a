"""Text that holds a call but does not make it: talk, quotation, another speaker, a changed mind."""

from __future__ import annotations

import pytest

from runner.core.contract import ToolContract
from runner.core.errors import ProtocolError
from runner.protocol import parse_turn


def tool(name, required=(), **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolContract.from_schema(name, "It does something.", schema)


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS = [
    tool("search", ["query"], query=STRING, limit=INTEGER),
    tool("delete_file", ["path"], path=STRING),
    tool("list_files", path=STRING, recursive={"type": "boolean"}),
    tool("now"),
]
SEARCH = 'ACTION: {"tool": "search", "params": {"query": "elk"}}'
DELETE = 'ACTION: {"tool": "delete_file", "params": {"path": "x"}}'
DELETE_JSON = DELETE.removeprefix("ACTION: ")


def names(text, stop="end"):
    """The tools that run; the kind of the error where none does."""
    try:
        turn = parse_turn(text, TOOLS, stop)
    except ProtocolError as error:
        return error.kind
    return [call.name for call in turn.calls] if turn.answer is None else turn.answer


@pytest.mark.parametrize(
    "text",
    [
        # In the middle of a sentence.
        f"I could write {DELETE}",
        f"The line would be: {DELETE}",
        f"Never do this. {DELETE}",
        f"That is the form. {DELETE} That one removes a file.",
        f"It works like this; {DELETE}",
        # The words before or behind the JSON take it back.
        f"ACTION: not {DELETE_JSON}",
        f"ACTION: I will not use {DELETE_JSON}",
        f"ACTION: For example {DELETE_JSON}",
        f"ACTION: None. (An example: {DELETE_JSON})",
        f"ACTION: kein Aufruf, zum Beispiel {DELETE_JSON}",
        f"{DELETE}\nActually no, forget it.",
        f"{DELETE} is not what I want",
        f"{DELETE}? No.",
        f"{DELETE}\nWait, that's wrong.",
        f"{DELETE} 不要执行",
        f"{DELETE} ANSWER: done",
        # Quoted.
        f"> {DELETE}",
        f"The form is:\n```\n{DELETE}\n```",
        f"The form is:\n~~~\n{DELETE}\n~~~",
        f"THOUGHT: the format, for example\n~~~\n{DELETE}\n~~~",
        f"```\n{DELETE}\n```\nThis is only the format.",
        f"An example:\n```\n{DELETE}",
        # Thought, not said.
        f"<think>{DELETE}",
        f"Hmm <think>\n{DELETE}",
        f"Let me see. <think>{DELETE}</think> Well.",
        f"<!--\n{DELETE}\n-->",
        f"<plan>\n{DELETE}\n</plan>",
        f"<scratchpad>\n{DELETE}\n</scratchpad>",
        f"<|channel|>analysis<|message|>\n{DELETE}",
        # Data that is no call.
        '{"name": "now", "age": 3}',
        '{"name": "now", "id": 3}',
        '{"tool": "now", "result": "12:00"}',
        '[{"name": "now", "description": "The time.", "parameters": {}}]',
    ],
)
def test_a_call_that_is_not_meant_does_not_run(text):
    assert isinstance(names(text), str)
    assert "delete" not in names(text)


@pytest.mark.parametrize(
    "speaker",
    [
        "<|im_start|>user\n",
        "<|im_end|>\n",
        "<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n",
        "<|endoftext|>Human: go on\n",
        "\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        "<end_of_turn>\n<start_of_turn>model\n",
        "\n<|observation|>\nfound\n",
        "</s>[INST] more [/INST]",
        "\nUser: go on\n",
        "\nHuman: go on\n",
        "\nTOOL: ok\n",
        "\nResult: 3 elks\n",
        "\nOBSERVATION: 3 elks\n",
        " OBSERVATION: 3 elks\n",
        "\nObservation [1]: 3 elks\nThought: more\n",
        "\n**Observation:** 3 elks\n",
        "\n观察：没有\n",
    ],
)
def test_what_another_speaker_would_say_is_dropped_and_all_behind_it(speaker):
    assert names(f"{SEARCH}{speaker}{DELETE}") == ["search"]
    assert names(f"{SEARCH}{speaker}{DELETE}", stop="length") == ["search"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"> {DELETE}\n{SEARCH}", ["search"]),
        (f"```\n{DELETE}\n```\n{SEARCH}", ["search"]),
        (f"~~~\n{DELETE}\n~~~\nSo:\n{SEARCH}", ["search"]),
        (f"<think>{DELETE}</think>\n{SEARCH}", ["search"]),
        (f"Let me see. <think>\n{DELETE}\n</think>\n{SEARCH}", ["search"]),
        (f"<plan>\n{DELETE}\n</plan>\n{SEARCH}", ["search"]),
        (f"<!-- {DELETE} -->\n{SEARCH}", ["search"]),
        (f"{DELETE}\n</think>\n{SEARCH}", ["search"]),
        (
            f"<|channel|>analysis<|message|>\n{DELETE}<|end|><|start|>assistant"
            f"<|channel|>final<|message|>{SEARCH}<|return|>",
            ["search"],
        ),
        (f"I need to look. {SEARCH}", ["search"]),
        (f"THOUGHT: look it up\n```\n{SEARCH}\n```", ["search"]),
        (f"```\n{SEARCH}\n```", ["search"]),
        (f"{SEARCH} {SEARCH}", ["search", "search"]),
        (f"{SEARCH}\nObserv", ["search"]),
        (f"{SEARCH}\nTHOUGHT: that is all", ["search"]),
        (f"User: elks?\n{SEARCH}", ["search"]),
    ],
)
def test_what_is_meant_runs_and_nothing_else(text, expected):
    assert names(text) == expected


def test_a_closing_tag_in_a_value_that_is_spelled_badly_ends_no_reasoning():
    text = "ACTION: {'tool': 'search', 'params': {'query': 'a</think>\n" + DELETE + "'}}"
    assert names(text) != ["delete_file"]


@pytest.mark.parametrize(
    "call",
    [
        DELETE,
        DELETE.replace("ACTION:", "**ACTION:**"),
        DELETE.replace("ACTION:", "Action:"),
        DELETE.replace("ACTION:", "行动："),
        'ACTION: delete_file({"path": "x"})',
        'ACTION: delete_file(path="x")',
        'ACTION: delete_file {"path": "x"}',
        "ACTION:\n```json\n" + DELETE_JSON + "\n```",
        "[TOOL_CALLS] [" + DELETE_JSON + "]",
        "<tool_call>" + DELETE_JSON + "</tool_call>",
    ],
)
def test_a_call_in_an_answer_is_an_error_in_every_spelling(call):
    assert names(f"ANSWER: It is done.\n{call}") == "mixed"
    assert names(f"{call}\nANSWER: It is done.") == "mixed"


@pytest.mark.parametrize(
    "answer",
    [
        "The tag </s>",
        "The token is <|im_end|>",
        "Write `<|im_end|>`",
        "A <think> tag opens reasoning.",
        "Steps:\nAction: buy milk\nResult: you have milk",
        f"Write:\n```\n{DELETE}\n```",
        f"Write `{DELETE}`",
        "User: you\nHuman: me",
        "<!-- a comment -->",
    ],
)
def test_an_answer_keeps_its_text(answer):
    assert names(f"ANSWER: {answer}") == answer


@pytest.mark.parametrize("piece", ["<note>a</note>", "</think>", "<!-- a -->", "<example>"])
def test_an_answer_may_have_any_number_of_tags(piece):
    assert names(f"ANSWER: x{piece * 2000}") == f"x{piece * 2000}"


@pytest.mark.parametrize(
    "end", ["<|im_end|>", "</s>", "<|eot_id|>", "\n<|im_end|>\n", " <|im_end|>"]
)
def test_the_end_of_turn_that_leaked_is_no_part_of_an_answer(end):
    assert names(f"ANSWER: It is nine.{end}") == "It is nine."


@pytest.mark.parametrize(
    "text",
    [
        "Hm. ANSWER: is the marker for the reply.",
        "The form has ANSWER: and then text",
        "Two lines: ANSWER: yes",
        "I write ACTION: first. ANSWER: later",
    ],
)
def test_talk_about_the_marker_is_no_answer(text):
    assert names(text) == "no_marker"
