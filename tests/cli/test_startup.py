"""Help comes quickly: commands import what is heavy when they run, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "jinja2", "json_repair", "jsonschema", "lark", "llama_cpp", "llguidance", "numpy", "psutil",
    "referencing", "rich", "runner.agent", "runner.models.catalog", "runner.protocol",
    "runner.tools.builtin",
}  # fmt: skip
PROBE = """
import sys
sys.argv = ["runner", *sys.argv[1:]]
from runner.cli import main
try:
    main()
finally:
    sys.stderr.write("\\n".join(sys.modules))
"""


def imported(*arguments: str) -> tuple[str, set[str]]:
    """What ``runner ARGUMENTS`` prints, and the modules that it imports."""
    command = [sys.executable, "-c", PROBE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, set(done.stderr.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["models", "--help"], ["models", "cache", "list", "--help"]],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    text, modules = imported(*arguments)
    assert text.startswith("Usage: ")
    assert "typer" in modules
    assert modules & HEAVY == set()


def test_the_version_imports_nothing_heavy() -> None:
    text, modules = imported("--version")
    assert text.count(".") == 2
    assert modules & HEAVY == set()


def test_what_is_heavy_is_imported_where_it_is_used() -> None:
    _, modules = imported("grammar", "show", "--json")
    assert {"lark", "jsonschema", "runner.protocol"} <= modules
