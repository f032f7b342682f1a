"""The measurement runs and measures what it says; how fast it is here is no test."""

import json
import subprocess
import sys

import pytest

from runner.bench import protocol
from runner.protocol import parse_turn


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(protocol, "HOSTILE_CHARACTERS", 1000)


def test_every_figure_is_a_time_with_a_target(quick):
    figures = [figure.to_json() for figure in protocol.measure_protocol(rounds=2)]
    assert {figure["group"] for figure in figures} == {"turn", "grammar", "hostile"}
    assert all(figure["value"] > 0 and figure["target"] > 0 for figure in figures)
    assert all(figure["met"] == (figure["value"] < figure["target"]) for figure in figures)
    names = [(figure["group"], figure["what"]) for figure in figures]
    assert len(set(names)) == len(names)


def test_a_target_is_met_by_the_figure_that_is_shown():
    figure = protocol.Figure("turn", "x", 0.99996).to_json()
    assert (figure["value"], figure["met"]) == (1.0, False)


def test_the_typical_turns_are_what_they_are_called():
    tools = protocol.ten_tools()
    read = {
        what: parse_turn(text, tools, dialect=dialect)
        for what, (text, dialect) in protocol._turns(tools).items()
    }
    assert [len(turn.calls) for turn in read.values()] == [1, 3, 0, 1, 1]
    assert read["an answer"].answer
    assert [what for what, turn in read.items() if turn.receipts] == ["a call that needs repair"]


def test_ten_tools_are_ten_and_new_each_time():
    first, second = protocol.ten_tools(), protocol.ten_tools()
    assert len(first) == 10
    assert not {tool.name for tool in first} & {tool.name for tool in second}


def test_the_command_prints_a_table_and_json():
    code = (
        "import sys\nfrom runner.bench import protocol\nprotocol.HOSTILE_CHARACTERS = 1000\n"
        "from runner.cli import main\nsys.argv = ['runner', 'bench', 'protocol', *sys.argv[1:]]\n"
        "main()"
    )

    def run(*options):
        command = [sys.executable, "-c", code, *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    data = json.loads(run("--json"))
    assert data["suite"] == "protocol"
    assert {"group", "what", "value", "unit", "target", "met"} == set(data["figures"][0])
    table = run()
    assert all(figure["what"] in table for figure in data["figures"])
    assert "< 20 ms" in table
