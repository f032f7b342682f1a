"""Dialects of other packages, found through their entry points."""

import pytest

from runner import Agent, ScriptedModel
from runner.core.errors import ConfigError
from runner.protocol import dialects, parse_turn, tool_grammar
from runner.protocol.dialects import ACTION, HERMES, find_dialect

MODULE = """
from runner.protocol.dialects.hermes import Hermes

class Loud(Hermes):
    name = "loud"

    def spelled(self, turn):
        return super().spelled(turn).upper()

    def outline(self, text):
        return super().outline(text.removesuffix("!!!"))

LOUD = Loud()
NOT_ONE = "loud"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with one dialect on the path, as pip would."""
    monkeypatch.setattr(dialects, "DIALECTS", dict(dialects.DIALECTS))

    def installed(name, value, module="some_dialects"):
        (tmp_path / f"{module}.py").write_text(MODULE)
        info = tmp_path / "some_dialects-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-dialects\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[runner.dialects]\n{name} = {value}\n")
        monkeypatch.syspath_prepend(tmp_path)

    return installed


def test_the_built_in_dialects_need_no_entry_point():
    assert (find_dialect("action"), find_dialect("hermes")) == (ACTION, HERMES)


def test_an_unknown_name_is_refused_with_those_that_are_known(install):
    install("loud", "some_dialects:LOUD")
    with pytest.raises(ConfigError, match="no dialect 'hermse'") as caught:
        find_dialect("hermse")
    assert "action, hermes, loud" in caught.value.hint


def test_a_dialect_of_another_package_is_found_by_its_name_everywhere(install, add):
    install("loud", "some_dialects:LOUD")
    assert find_dialect("loud").name == "loud"
    assert tool_grammar([add.contract], dialect="loud") == tool_grammar(
        [add.contract], dialect="hermes"
    )
    assert parse_turn("three!!!", [], dialect="loud").answer == "three"
    model = ScriptedModel(["It is 3.!!!"], dialect="loud")
    assert Agent(model, [add]).run("task").answer == "It is 3."
    assert "GOOD EVENING" in model.requests[0].messages[2].content


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no_such_module:LOUD", "cannot be loaded: No module named 'no_such_module'"),
        ("some_dialects:NO_SUCH", "cannot be loaded"),
        ("some_dialects:NOT_ONE", "is a str"),
        ("some_dialects:Loud", "is a ABCMeta"),
    ],
)
def test_an_entry_point_that_gives_no_dialect_is_named(install, value, words):
    install("loud", value)
    with pytest.raises(ConfigError, match=words) as caught:
        find_dialect("loud")
    assert value in str(caught.value)
    assert caught.value.hint


def test_a_dialect_that_calls_itself_otherwise_is_refused(install):
    install("quiet", "some_dialects:LOUD")
    with pytest.raises(ConfigError, match="calls itself 'loud'"):
        find_dialect("quiet")


def test_a_built_in_dialect_cannot_be_replaced(install):
    install("hermes", "some_dialects:LOUD")
    assert find_dialect("hermes") is HERMES
