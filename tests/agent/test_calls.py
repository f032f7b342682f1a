import pytest
from simple_tools import ADD, SimpleTool

from runner.agent.calls import CallRunner, clip
from runner.agent.limits import CallLimits
from runner.core.contract import Limits
from runner.core.conversation import ToolCall
from runner.core.errors import ErrorKind, ToolError


def run(function, contract=ADD, calls=1):
    events = []
    tool = SimpleTool(contract, function)
    runner = CallRunner(
        [tool], CallLimits([contract]), lambda kind, data: events.append((kind, data))
    )
    made = [ToolCall(f"c{i}", "add", {"a": i, "b": 1}) for i in range(1, calls + 1)]
    return list(runner.run(made)), events


def test_a_call_is_recorded_before_and_after_it_runs():
    order = []

    def function(params):
        order.append("ran")
        return "3"

    tool = SimpleTool(ADD, function)
    runner = CallRunner([tool], CallLimits([ADD]), lambda kind, data: order.append(kind))
    list(runner.run([ToolCall("c1", "add", {"a": 1, "b": 2})]))
    assert order == ["call.start", "ran", "call.end"]


def test_results_come_in_call_order_with_their_numbers():
    results, _ = run(lambda params: str(params["a"]), calls=3)
    assert [(r.call.id, r.text, r.number) for r in results] == [
        ("c1", "1", 1),
        ("c2", "2", 2),
        ("c3", "3", 3),
    ]


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        (ToolError("no such thing", kind=ErrorKind.NOT_FOUND), ErrorKind.NOT_FOUND, "no such"),
        (ToolError("no", hint="try b"), ErrorKind.FAILED, "no (try b)"),
        (ZeroDivisionError("by zero"), ErrorKind.FAILED, "ZeroDivisionError: by zero"),
    ],
)
def test_a_failing_tool_becomes_a_result(problem, kind, words):
    def fail(params):
        raise problem

    (result,), _ = run(fail)
    assert result.error is kind
    assert words in result.text


def test_one_failing_call_does_not_stop_the_next():
    results, _ = run(lambda params: str(1 // (params["a"] - 1)), calls=2)
    assert [r.error for r in results] == [ErrorKind.FAILED, None]


def test_ctrl_c_in_a_tool_is_no_result():
    def interrupted(params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted)


def test_a_call_over_the_limit_is_not_run():
    contract = ADD.model_copy(update={"limits": Limits(max_calls=1)})
    ran = []
    results, _ = run(lambda params: ran.append(1) or "ok", contract, calls=2)
    assert len(ran) == 1
    assert results[1].error is ErrorKind.LIMIT


def test_long_results_keep_head_and_tail_and_say_what_is_missing():
    text = "a" * 500 + "b" * 500
    cut = clip(text, 300)
    assert cut.startswith("a" * 200)
    assert cut.endswith("b" * 100)
    assert "700 characters left out" in cut
    assert clip(text, 1000) == text


def test_half_a_surrogate_pair_in_a_result_is_replaced():
    (result,), _ = run(lambda params: "x\ud800y")
    assert result.text == "x?y"


@pytest.mark.parametrize("returned", [None, b"x", 3])
def test_a_tool_that_returns_no_text_is_a_failing_tool(returned):
    (result,), _ = run(lambda params: returned)
    assert result.error is ErrorKind.FAILED
    assert type(returned).__name__ in result.text


def test_a_tool_that_ends_the_program_does_not():
    (result,), _ = run(lambda params: exit(3))
    assert result.error is ErrorKind.FAILED


def test_an_exception_without_a_text_is_a_result_too():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    def fail(params):
        raise MuteError

    (result,), _ = run(fail)
    assert "MuteError" in result.text


def test_a_tool_cannot_change_what_is_on_record():
    (result,), _ = run(lambda params: params.clear() or "ok")
    assert result.call.input == {"a": 1, "b": 1}
