"""Options that several commands take."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.core.errors import ConfigError

if TYPE_CHECKING:
    from runner.core.contract import ToolContract

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The models.toml to use. Default: $RUNNER_MODELS, ./models.toml, the user's, "
        "the checkout's.",
        show_default=False,
    ),
]
RecordsOption = Annotated[
    Path | None,
    typer.Option(
        "--records",
        help="Folder of the transcripts. Default: $RUNNER_RECORDS, else the user's state folder.",
        show_default=False,
    ),
]
ContractsOption = Annotated[
    str | None,
    typer.Option(
        "--tools",
        help="Names of built-in tools, parted by commas, or a JSON file with tools. "
        "Default: the default toolset.",
        show_default=False,
    ),
]
DialectOption = Annotated[
    str, typer.Option(help="How turns are spelled: action, hermes, or one that was added.")
]


def tool_names(tools: str | None, toolset: str | None) -> list[str]:
    """The names that --tools and --toolset ask for; the default toolset without both.

    Raises
    ------
    ConfigError
        Both were given, or the toolset is unknown.
    """
    from runner.tools.builtin import toolset as names_of

    if tools is not None and toolset is not None:
        raise ConfigError("--tools and --toolset were both given", hint="choose one of the two")
    if tools is not None:
        return [name.strip() for name in tools.split(",") if name.strip()]
    return list(names_of(toolset or "default"))


def contracts(tools: str | None) -> Sequence[ToolContract]:
    """Contracts for --tools: built-in names, or those of a ``.json`` file.

    Raises
    ------
    ConfigError
        Unknown names, or a file that holds no tools.
    """
    if tools is not None and tools.endswith(".json"):
        return contracts_from_file(Path(tools))
    from runner.tools.builtin import builtin_tools

    return [tool.contract for tool in builtin_tools(tool_names(tools, None), Path.cwd())]


def text_from(file: str, what: str) -> str:
    """The text of a file, or of stdin for ``-``; ``what`` says for errors what it should hold.

    Raises
    ------
    ConfigError
        It cannot be read, or is not UTF-8.
    """
    name = "stdin" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8"
    raise ConfigError(f"cannot read {what} from {name}: {problem}", hint="expected text in UTF-8")


def contracts_from_file(file: Path) -> list[ToolContract]:
    """Contracts from a JSON list of ``{"name", "description", "parameters"}``.

    The same objects inside ``{"type": "function", "function": ...}`` are taken as well.

    Raises
    ------
    ConfigError
        The file cannot be read, an entry is no tool, or two have one name.
    """
    found: dict[str, ToolContract] = {}
    for name, contract in tools_in_file(file):
        if isinstance(contract, ConfigError):
            raise ConfigError(f"{file}, tool {name!r}: {contract}", hint=contract.hint)
        if name in found:
            raise ConfigError(f"{file} has two tools {name!r}", hint="give each its own name")
        found[name] = contract
    return list(found.values())


def tools_in_file(file: Path) -> list[tuple[str, ToolContract | ConfigError]]:
    """Each tool of a file by name (``tool 3`` without one): its contract, or why it is none.

    Raises
    ------
    ConfigError
        The file cannot be read, or does not hold a list.
    """
    try:
        data = json.loads(text_from(str(file), "tools"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"cannot read tools from {file}: {error}", hint="expected a JSON list of tools"
        ) from error
    if not isinstance(data, list):
        raise ConfigError(
            f"{file}: expected a list of tools, found {type(data).__name__}",
            hint='write [{"name": ..., "description": ..., "parameters": {...}}, ...]',
        )
    found: list[tuple[str, ToolContract | ConfigError]] = []
    for number, entry in enumerate(data, start=1):
        tool: Any = entry.get("function", entry) if isinstance(entry, dict) else entry
        named = isinstance(tool, dict) and isinstance(tool.get("name"), str)
        name = tool["name"] if named else f"tool {number}"
        try:
            if not named:
                raise ConfigError(
                    "it has no 'name'",
                    hint='each tool is {"name": ..., "description": ..., "parameters": {...}}',
                )
            found.append((name, _contract(tool)))
        except ConfigError as error:
            found.append((name, error))
    return found


def _contract(tool: dict[str, Any]) -> ToolContract:
    from runner.core.contract import ToolContract

    parameters = tool.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(parameters, dict):
        raise ConfigError(
            f"'parameters' must be a JSON Schema object, found {type(parameters).__name__}",
            hint='for a tool without parameters leave it out, or write {"type": "object"}',
        )
    return ToolContract.from_schema(tool["name"], str(tool.get("description", "")), parameters)
