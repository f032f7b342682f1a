import pytest
from simple_tools import ADD, SEARCH

from runner.agent.limits import CallLimits, TurnLimit
from runner.core.contract import Limits
from runner.core.errors import ErrorKind, ToolError


def test_turns_end_at_the_limit():
    limit = TurnLimit(2)
    assert [limit.take(), limit.take(), limit.take()] == [True, True, False]
    assert (limit.used, limit.remaining) == (2, 0)


def test_calls_are_counted_for_each_tool():
    limits = CallLimits([ADD, SEARCH], {"add": 2})
    assert [limits.take("add"), limits.take("add"), limits.take("search")] == [1, 2, 1]
    assert limits.remaining("add") == 0
    assert limits.remaining("search") is None
    assert limits.open([ADD, SEARCH]) == [SEARCH]


def test_a_spent_tool_refuses_with_a_message_for_the_model():
    limits = CallLimits([ADD], {"add": 0})
    with pytest.raises(ToolError, match="used up") as caught:
        limits.take("add")
    assert caught.value.kind is ErrorKind.LIMIT
    assert limits.used["add"] == 0


def test_a_runs_own_limit_goes_before_the_contracts():
    contract = ADD.model_copy(update={"limits": Limits(max_calls=5)})
    assert CallLimits([contract]).remaining("add") == 5
    assert CallLimits([contract], {"add": 1}).remaining("add") == 1
