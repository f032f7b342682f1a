"""The command line as a user calls it: in a process of its own, with a scripted model."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONFIG = """
default = "script"
[models.script]
kind = "scripted"
path = "turns.txt"
[models.lost]
path = "lost.gguf"
[models.text]
path = "text.gguf"
"""
SUM = 'ACTION: {"tool": "calculator", "params": {"expression": "6 * 7"}}'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a models.toml whose default model says 6 * 7 = 42."""
    (tmp_path / "models.toml").write_text(CONFIG)
    (tmp_path / "text.gguf").write_text("not a model\n")
    (tmp_path / "turns.txt").write_text(f"{SUM}\n---\nANSWER: It is 42.\n")
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runner(*arguments, stdin=""):
    return subprocess.run(
        [sys.executable, "-m", "runner", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def json_of(done):
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def test_the_answer_alone_is_on_stdout_and_the_steps_are_on_stderr(home):
    done = runner("run", "What is 6 * 7?")
    assert (done.returncode, done.stdout) == (0, "It is 42.\n")
    assert "OBSERVATION [c1 calculator]: 42" in done.stderr
    assert SUM in done.stderr
    assert "transcript: " in done.stderr


def test_quiet_shows_the_answer_only(home):
    done = runner("run", "What is 6 * 7?", "--quiet")
    assert (done.stdout, done.stderr) == ("It is 42.\n", "")


def test_a_run_as_json_is_one_document(home):
    data = json_of(runner("run", "What is 6 * 7?", "--json"))
    assert (data["status"], data["answer"]) == ("answered", "It is 42.")
    assert data["calls"][0] == {
        "id": "c1",
        "name": "calculator",
        "input": {"expression": "6 * 7"},
        "result": "42",
        "error": None,
    }
    assert Path(data["transcript"]).is_file()


def test_the_task_can_come_from_stdin(home):
    assert runner("run", "-", stdin="What is 6 * 7?").stdout == "It is 42.\n"


def test_tools_work_in_the_workspace(home):
    (home / "turns.txt").write_text(
        'ACTION: {"tool": "read_file", "params": {"path": "notes.txt"}}\n---\nANSWER: two lines'
    )
    data = json_of(runner("run", "read", "--toolset", "files", "--json"))
    assert "2 lines" in data["calls"][0]["result"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "x", "--model", "scirpt"], 2, ["unknown model 'scirpt'", "'script'"]),
        (["run", "x", "--tools", "calculater"], 2, ["'calculater'", "'calculator'"]),
        (["run", "x", "--toolset", "fiels"], 2, ["'fiels'", "'files'"]),
        (["run", "x", "--tools", "calculator", "--toolset", "files"], 2, ["both"]),
        (["run", "x", "--model", "lost"], 3, ["lost.gguf", "found nothing"]),
        (["run", "x", "--model", "text"], 3, ["text.gguf", "text file"]),
        (["run", "x", "--max-calls", "calculator"], 2, ["TOOL=N"]),
        (["run", "x", "--max-calls", "other=1"], 2, ["'other'"]),
        (["run", "x", "--workspace", "nowhere"], 2, ["nowhere"]),
        (["run", "x", "--config", "none.toml"], 2, ["none.toml"]),
        (["run", "  "], 2, ["empty"]),
        (["models", "show", "scirpt"], 2, ["'scirpt'"]),
        (["models", "pull", "script"], 2, ["no 'source'"]),
        (["tools", "show", "calc"], 2, ["'calc'"]),
        (["record", "show", "nothing"], 2, ["nothing"]),
        (["grammar", "show", "--tools", "none.json"], 2, ["none.json: No such file"]),
        (["grammar", "show", "--dialect", "hermse"], 2, ["no dialect 'hermse'", "action, hermes"]),
        (["parse", "--dialect", "hermse"], 2, ["no dialect 'hermse'", "action, hermes"]),
        (["parse", "--tools", "none.json"], 2, ["none.json: No such file"]),
        (["parse", "--tools", "calculater"], 2, ["'calculater'", "'calculator'"]),
    ],
)
def test_wrong_use_is_one_paragraph_with_the_right_exit_code(home, arguments, code, words):
    done = runner(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("transcript")]
    assert len(lines) == 1
    for word in words:
        assert word in lines[0]


def test_an_error_as_json_is_one_document_too(home):
    done = runner("run", "x", "--model", "lost", "--json")
    assert done.returncode == 3
    assert json_of(done)["error"]["type"] == "ModelFileError"


def test_a_run_without_an_answer_ends_with_exit_code_1(home):
    (home / "turns.txt").write_text("\n---\n".join(["no marker"] * 3))
    done = runner("run", "x")
    assert done.returncode == 1
    assert "could not finish" in done.stdout
    assert "gave_up" in done.stderr


def test_a_script_that_is_over_is_a_model_failure(home):
    (home / "turns.txt").write_text(SUM)
    done = runner("run", "x", "--json")
    assert done.returncode == 3
    data = json_of(done)
    assert data["status"] == "failed"
    assert data["error"]["type"] == "ModelError"


def test_parse_prints_the_turn_and_what_was_repaired(home):
    done = runner("parse", stdin="ACTION: {'tool': 'calculator', 'params': {'expression': '1'}}")
    assert done.returncode == 0
    assert done.stdout == 'ACTION: {"tool": "calculator", "params": {"expression": "1"}}\n'
    assert "repaired" in done.stderr


def test_parse_as_json_takes_tools_from_a_file(home):
    tool = {
        "name": "sum",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    (home / "tools.json").write_text(json.dumps([{"type": "function", "function": tool}]))
    text = 'THOUGHT: hm\nACTION: {"tool": "sum", "params": {"a": "4"}}'
    data = json_of(runner("parse", "--tools", "tools.json", "--json", stdin=text))
    assert data["thought"] == "hm"
    assert data["calls"] == [{"id": "c1", "name": "sum", "input": {"a": 4}}]
    assert data["receipts"][0]["stage"] == "contract"


@pytest.mark.parametrize(
    ("text", "stop", "kind"),
    [
        ("", "end", "empty"),
        ("hello", "end", "no_marker"),
        (SUM, "length", "truncated"),
        (SUM, "degenerate", "truncated"),
    ],
)
def test_parse_ends_with_exit_code_1_where_a_turn_cannot_be_used(home, text, stop, kind):
    done = runner("parse", "--stop", stop, "--json", stdin=text)
    assert done.returncode == 1
    assert json_of(done)["error"]["kind"] == kind


def test_parse_says_that_an_answer_was_cut_off_and_calls_it_no_repair(home):
    done = runner("parse", "--stop", "length", stdin="ANSWER: The first of")
    assert (done.returncode, done.stdout) == (0, "ANSWER: The first of\n")
    assert "token limit" in done.stderr
    assert "repaired" not in done.stderr


def test_parse_reads_and_prints_the_dialect_it_is_told(home):
    text = '<tool_call>{"name": "calculator", "arguments": {"expression": "1"}}</tool_call>'
    done = runner("parse", "--dialect", "hermes", stdin=text)
    assert done.returncode == 0
    assert done.stdout.startswith('<tool_call>\n{"name": "calculator"')
    data = json_of(runner("parse", "--dialect", "hermes", "--json", stdin=f"{text}\n{text}"))
    assert [call["id"] for call in data["calls"]] == ["c1", "c2"]


@pytest.mark.parametrize("command", [["parse"], ["grammar", "check"]])
def test_what_is_no_text_is_not_read_as_text(command):
    done = subprocess.run(
        [sys.executable, "-m", "runner", *command, "--json"],
        input="ANSWER: caf\xe9".encode("latin-1"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert "stdin: byte 12 is not UTF-8" in error["message"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1", "tools.json: Expecting"),
        ("{}", "found dict"),
        ("[3]", "tool 'tool 1': it has no 'name'"),
        ('[{"name": "a b"}]', "tool 'a b': tool name 'a b' is not usable"),
        ('[{"name": "a", "parameters": []}]', "tool 'a': 'parameters' must be"),
        ('[{"name": "a", "parameters": {"type": "array"}}]', "tool 'a': the parameters"),
        ('[{"name": "a"}, {"name": "b"}, {"name": "a"}]', "two tools 'a'"),
    ],
)
def test_a_file_with_faulty_tools_is_refused_by_file_tool_and_reason(home, content, words):
    (home / "tools.json").write_text(content)
    for command in (["parse"], ["grammar", "show"]):
        done = runner(*command, "--tools", "tools.json", stdin="ANSWER: x")
        assert (done.returncode, done.stdout) == (2, "")
        assert "tools.json" in done.stderr
        assert words in done.stderr
        assert "Hint: " in done.stderr


def test_grammar_show_knows_dialects_and_bounds(home):
    text = runner("grammar", "show", "--dialect", "hermes", "--tools", "get_time").stdout
    assert '"<tool_call>\\n"' in text
    assert "ACTION" not in text
    assert runner("grammar", "show", "--max-calls", "65").returncode == 2
    none = runner("grammar", "show", "--max-calls", "0")
    assert none.returncode == 0
    assert "ACTION: " not in none.stdout


def test_grammar_show_prints_gbnf(home):
    done = runner("grammar", "show", "--tools", "calculator", "--max-calls", "2")
    assert done.returncode == 0
    assert done.stdout.startswith("root ::= ")
    assert '\\"calculator\\"' in done.stdout
    assert json_of(runner("grammar", "show", "--json"))["grammar"].startswith("root ::= ")


def test_lists_and_shows_as_json(home):
    models = json_of(runner("models", "list", "--json"))
    assert models["default"] == "script"
    assert models["models"]["lost"]["present"] is False
    assert json_of(runner("models", "show", "--json"))["name"] == "script"
    assert {tool["name"] for tool in json_of(runner("tools", "list", "--json"))["tools"]} >= {
        "calculator",
        "write_file",
    }
    assert json_of(runner("tools", "show", "write_file", "--json"))["effect"] == "write"


def test_lists_and_shows_as_text(home):
    assert "lost.gguf" in runner("models", "list").stdout
    assert "kind: scripted" in runner("models", "show").stdout
    assert "search_files" in runner("tools", "list").stdout
    assert "effect: write" in runner("tools", "show", "write_file").stdout


def test_records_are_listed_and_shown(home):
    runner("run", "What is 6 * 7?")
    (listed,) = json_of(runner("record", "list", "--json"))["runs"]
    assert (listed["task"], listed["status"], listed["calls"]) == ("What is 6 * 7?", "answered", 1)
    assert "answered" in runner("record", "list").stdout
    shown = runner("record", "show", "last")
    assert "OBSERVATION [c1 calculator]: 42" in shown.stdout
    assert "answered: It is 42." in shown.stdout
    events = json_of(runner("record", "show", "last", "--json"))["events"]
    assert events[0]["event"] == "run.start"


def test_a_record_shows_thoughts_before_the_turn(home):
    usage = {"prompt_tokens": 9, "reused_tokens": 0, "generated_tokens": 5}
    reply = {"event": "model.reply", "turn": 1, "attempt": 1, "stop": "end", "usage": usage}
    events = [
        {**reply, "text": "ANSWER: 3", "thinking": "1 and 2\nmake 3\n"},
        {**reply, "text": "ANSWER: 4"},
    ]
    file = home / "thoughts.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    lines = runner("record", "show", str(file)).stdout.splitlines()
    assert lines[2:5] == ["(thinking) 1 and 2", "make 3", "ANSWER: 3"]
    assert lines[-1] == "ANSWER: 4"


def test_doctor_names_what_is_missing(home):
    done = runner("doctor", "--model", "lost", "--no-test", "--json")
    assert done.returncode == 3
    findings = {f["check"]: f for f in json_of(done)["findings"]}
    assert findings["model lost"]["state"] == "fail"
    assert findings["python"]["state"] == "ok"


def test_every_command_has_help_and_json(home):
    commands = [
        ["run"], ["parse"], ["doctor"], ["models", "list"], ["models", "show"], ["models", "pull"],
        ["models", "cache", "list"], ["models", "cache", "clear"],
        ["tools", "list"], ["tools", "show"], ["grammar", "show"], ["record", "list"],
        ["record", "show"], ["bench", "run"], ["bench", "protocol"],
    ]  # fmt: skip
    for command in commands:
        done = runner(*command, "--help")
        assert done.returncode == 0
        assert "--json" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_closes_its_transcript_and_ends_with_130(home, number):
    (home / "slow.py").write_text(
        "import sys, time\n"
        "from runner.models.scripted import ScriptedModel\n"
        "def slow(*args, **kwargs):\n"
        "    print('working', file=sys.stderr, flush=True)\n"
        "    time.sleep(30)\n"
        "ScriptedModel.generate = slow\n"
        "from runner.cli import main\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "slow.py", "run", "x"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "working" in line:
            break
    process.send_signal(number)
    started = time.monotonic()
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - started < 10
    (transcript,) = Path(os.environ["RUNNER_RECORDS"]).glob("*/*.jsonl")
    last = json.loads(transcript.read_text().splitlines()[-1])
    assert (last["event"], last["status"]) == ("run.end", "interrupted")


def test_an_answer_can_be_printed_where_the_locale_cannot_encode_it(home, monkeypatch):
    (home / "turns.txt").write_text("ANSWER: caf\u00e9")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = runner("run", "x", "--quiet")
    assert (done.returncode, done.stdout) == (0, "caf\\xe9\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_standard_streams_do_no_harm(home, closed):
    command = f'"{sys.executable}" -m runner run x {closed}'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_full_disk_behind_stdout_is_an_error(home):
    command = f'"{sys.executable}" -m runner run x -q > /dev/full'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "No space left" in done.stderr


def test_a_damaged_record_does_not_hide_the_others(home):
    runner("run", "What is 6 * 7?")
    folder = next(Path(os.environ["RUNNER_RECORDS"]).iterdir())
    (folder / "0-bad.jsonl").write_text("what\n{}\n")
    (folder / "0-odd.jsonl").write_text('{"event": "run.start"}\n')
    runs = json_of(runner("record", "list", "--json"))["runs"]
    assert [run["status"] for run in runs] == ["answered", None, "damaged"]
    assert runner("record", "list").returncode == 0
    assert runner("record", "show", "0-odd").returncode == 0


def test_a_task_that_looks_like_an_option_is_a_task(home):
    done = runner("run", "--model", "lost", "--", "--json")
    assert done.returncode == 3
    assert done.stdout == ""


def test_failed_calls_are_told_after_the_answer(home):
    (home / "turns.txt").write_text(
        'ACTION: {"tool": "read_file", "params": {"path": "none.txt"}}\n---\nANSWER: so'
    )
    assert "1 of 1 calls failed" in runner("run", "read").stderr


def test_a_grammar_from_stdin_or_a_file_is_checked_with_line_rule_and_hint(tmp_path):
    shown = runner("grammar", "show", "--tools", "calculator").stdout
    done = runner("grammar", "check", stdin=shown)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    (tmp_path / "bad.gbnf").write_text('root ::= x_y\nx_y ::= x_y "a" | "b"\n')
    done = runner("grammar", "check", str(tmp_path / "bad.gbnf"))
    assert done.returncode == 2
    assert "line 2, rule 'x_y': it begins with itself" in done.stdout
    data = json_of(runner("grammar", "check", "--json", stdin="root ::= ."))
    assert not data["ok"]
    (problem,) = data["problems"]
    assert (problem["line"], problem["rule"]) == (1, "root")
    assert "class" in problem["hint"]


def test_a_grammar_that_cannot_be_read_is_a_use_error(tmp_path):
    done = runner("grammar", "check", str(tmp_path / "none.gbnf"))
    assert done.returncode == 2
    assert "none.gbnf" in done.stderr


def test_each_tool_of_a_file_is_judged_and_one_bad_one_hides_no_other(tmp_path):
    file = tmp_path / "tools.json"
    never = {
        "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 4}},
        "required": ["a"],
    }
    parameters = {
        "fine": {"properties": {"a": {"type": "string"}}},
        "refused": {"properties": {"a": {"type": "any"}}},
        "weakened": {"properties": {"a": {"type": "number", "minimum": 0}}},
        "left out": never,
    }
    tools = [
        {"name": name.replace(" ", "-"), "parameters": schema}
        for name, schema in parameters.items()
    ]
    file.write_text(json.dumps([*tools, {"function": {"name": "fine"}}, 3]))
    done = runner("tools", "lint", "--tools", str(file), "--json")
    assert done.returncode == 2
    found = [(row["name"], row["status"]) for row in json_of(done)["tools"]]
    assert found == [
        ("fine", "fine"),
        ("refused", "refused"),
        ("weakened", "weakened"),
        ("left-out", "left out"),
        ("fine", "refused"),
        ("tool 6", "refused"),
    ]
    text = runner("tools", "lint", "--tools", str(file)).stdout
    assert "parameter 'a': 'minimum' is not enforced" in text
    file.write_text(json.dumps(tools[2:3]))
    assert runner("tools", "lint", "--tools", str(file)).returncode == 0


def test_the_built_in_tools_are_fine():
    done = runner("tools", "lint", "--json")
    assert done.returncode == 0
    assert {row["status"] for row in json_of(done)["tools"]} == {"fine"}
