"""The built-in tools by name: sets, mistakes in names, and contracts that hold together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from runner.core.errors import ConfigError
from runner.tools.builtin import TOOLSETS, builtin_names, builtin_tools, toolset


def names_of(names: list[str] | tuple[str, ...], workspace: Path) -> list[str]:
    return [tool.contract.name for tool in builtin_tools(names, workspace)]


def test_tools_come_in_the_order_of_their_names_and_once(tmp_path: Path) -> None:
    names = ["read_file", "calculator", "read_file", "get_time", "calculator"]
    assert names_of(names, tmp_path) == ["read_file", "calculator", "get_time"]
    assert names_of([], tmp_path) == []


@pytest.mark.parametrize("name", TOOLSETS)
def test_every_toolset_can_be_made(name: str, tmp_path: Path) -> None:
    assert tuple(names_of(toolset(name), tmp_path)) == TOOLSETS[name]


def test_only_the_sets_that_say_so_can_write() -> None:
    writing = [name for name, tools in TOOLSETS.items() if "write_file" in tools]
    assert writing == ["files-write", "all"]
    assert set(TOOLSETS["all"]) == set(builtin_names())


def test_a_mistaken_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'calcultor'") as caught:
        builtin_tools(["get_time", "calcultor"], tmp_path)
    assert "did you mean 'calculator'?" in caught.value.hint
    assert all(name in caught.value.hint for name in builtin_names())
    with pytest.raises(ConfigError, match="'defualt'") as caught:
        toolset("defualt")
    assert "did you mean 'default'?" in caught.value.hint
    assert all(name in caught.value.hint for name in TOOLSETS)


def test_the_name_of_a_toolset_is_no_name_of_a_tool(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'math' is a toolset") as caught:
        builtin_tools(["math"], tmp_path)
    assert "calculator" in caught.value.hint


def test_the_workspace_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        builtin_tools(["calculator"], tmp_path / "missing")


@pytest.mark.parametrize("name", builtin_names())
def test_every_contract_is_short_and_holds_together(name: str, tmp_path: Path) -> None:
    (tool,) = builtin_tools([name], tmp_path)
    contract = tool.contract
    assert 0 < len(contract.description) <= 60
    assert contract.errors
    assert 1 <= len(contract.examples) <= 2
    jsonschema.Draft202012Validator.check_schema(contract.parameters)
    for example in contract.examples:
        jsonschema.validate(example, contract.parameters)
    assert contract.parameters["additionalProperties"] is False
    for schema in contract.properties.values():
        assert isinstance(schema["type"], str)
        assert len(schema.get("description", "")) <= 50


def test_importing_the_tools_is_light() -> None:
    code = "import sys, runner.tools.builtin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"llama_cpp", "numpy", "jinja2", "lark", "typer", "rich"}
