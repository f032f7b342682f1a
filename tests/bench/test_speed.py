"""What the figures of the speed benchmark are compared with; how fast it is here is no test."""

import pytest

from runner.bench.speed import cases
from runner.bench.speed.report import Ratio, ratios
from runner.core.gbnf import gbnf_problems
from runner.protocol import parse_turn

FIGURES = {
    "model": {"vocabulary": 151_936},
    "calls": {"tokens_per_second": {"free": 20, "runner": 30, "llama-cpp-python": 10}},
    "copies": {"tokens_per_second": {"free": 20, "runner": 30}},
    "answers": {"tokens_per_second": {"free": 20, "runner": 19}},
    "run": {"seconds": 10, "ideal_seconds": 10, "evaluated_again": 1},
    "same": {"different": 5, "explained": 4},
    "start": {"cold_seconds": 10, "warm_seconds": 1, "command_seconds": 0.9, "help_ratio": 1.7},
    "busy": {"quiet": 20, "busy": 10},
    "memory": {"beyond_mb": 70},
}


def test_each_part_is_compared_with_its_target():
    met = {(ratio.part, ratio.what.split()[0]): ratio.met for ratio in ratios(FIGURES)}
    assert met == {
        ("calls", "runner"): True,
        ("copies", "runner"): False,
        ("answers", "under"): False,
        ("run", "seconds"): True,
        ("run", "prompt"): False,
        ("same", "texts"): False,
        ("start", "first"): True,
        ("start", "seconds"): True,
        ("start", "runner"): False,
        ("busy", "beside"): True,
        ("memory", "MB"): True,
    }


def test_large_vocabularies_have_larger_targets():
    large = {"model": {"vocabulary": 262_144}, "calls": FIGURES["calls"]}
    assert [ratio.target for ratio in ratios(large)] == [1.8, 6.0]


def test_a_target_is_met_by_the_figure_that_is_shown():
    assert Ratio("run", "x", 1.0804, 1.08, most=True).met
    assert not Ratio("run", "x", 1.086, 1.08, most=True).met
    assert Ratio("calls", "x", 1.2496, 1.25).to_json()["met"]


def test_what_was_not_measured_is_not_compared():
    assert ratios({}) == []


@pytest.mark.parametrize("count", [1, 20, 200])
def test_tasks_to_compare_are_all_different(count):
    tasks = cases.many_tasks(count)
    assert len(set(tasks)) == len(tasks) == count


def test_the_grammar_of_one_call_is_portable_and_takes_one_call():
    assert gbnf_problems(cases.one_call()) == []
    turn = parse_turn('ACTION: {"tool": "read_file", "params": {"path": "a"}}', cases.TOOLS)
    assert len(turn.calls) == 1
