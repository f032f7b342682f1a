import pytest

from runner import ScriptedModel, ToolContract
from runner.core.conversation import Generation, Message
from runner.core.errors import ModelError, ModelFileError


def ask(model):
    return model.generate([Message("user", "hi")], grammar="g", max_tokens=5, seed=3)


def test_steps_are_texts_generations_exceptions_or_functions():
    cut = Generation("half", "length")
    model = ScriptedModel(["one", cut, ValueError("boom"), lambda request: request.grammar])
    assert ask(model).text == "one"
    assert ask(model) is cut
    with pytest.raises(ValueError, match="boom"):
        ask(model)
    assert ask(model).text == "g"


def test_requests_are_kept():
    model = ScriptedModel(["one"])
    ask(model)
    (request,) = model.requests
    assert request.messages == (Message("user", "hi"),)
    assert (request.max_tokens, request.seed) == (5, 3)


def test_a_script_that_is_over_says_so():
    with pytest.raises(ModelError, match="turn 1 was asked for"):
        ask(ScriptedModel([]))


def test_a_missing_script_is_an_error(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.txt"):
        ScriptedModel.from_file(tmp_path / "none.txt")


def test_thoughts_and_text_of_a_step_go_to_the_view_apart():
    class Seen:
        def __init__(self):
            self.pieces = []

        def text(self, piece):
            self.pieces.append(("text", piece))

        def thinking(self, piece):
            self.pieces.append(("thinking", piece))

        def progress(self, done, total):
            pass

        def event(self, kind, data):
            pass

    view = Seen()
    model = ScriptedModel([Generation("ANSWER: 1", thinking="hm"), "ANSWER: 2"])
    for _ in range(2):
        model.generate([], grammar=None, max_tokens=9, seed=1, view=view)
    assert view.pieces == [("thinking", "hm"), ("text", "ANSWER: 1"), ("text", "ANSWER: 2")]


def test_tools_to_present_are_kept_with_the_request_and_the_dialect_is_told():
    tool = ToolContract.from_schema("now", "Tells the time.", {"type": "object"})
    model = ScriptedModel(["one"], dialect="other")
    model.generate([], grammar=None, max_tokens=9, seed=1, tools=[tool])
    assert model.requests[0].tools == (tool,)
    assert (model.dialect, ScriptedModel([]).dialect) == ("other", "action")
