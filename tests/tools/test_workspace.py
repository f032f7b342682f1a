"""No file tool reads, lists or writes anything outside the workspace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.core.errors import ConfigError, ErrorKind, ToolError
from runner.core.ports import Tool
from runner.tools.builtin import builtin_tools
from runner.tools.builtin.workspace import Workspace

SECRET = "the launch code is 0000"


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A workspace ``ws`` with every kind of way out of it, and secrets around it."""
    for folder in ("outside", "ws-evil", "ws/docs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside/secret.txt").write_text(SECRET)
    (tmp_path / "ws-evil/secret.txt").write_text(SECRET)
    (tmp_path / "ws/notes.txt").write_text("inside\n")
    (tmp_path / "ws/docs/readme.md").write_text("inside too\n")
    links = {
        "link.txt": tmp_path / "outside/secret.txt",
        "relative.txt": Path("../outside/secret.txt"),
        "chain.txt": Path("link.txt"),
        "linkdir": tmp_path / "outside",
        "docs/up": Path("../.."),
        "gone.txt": tmp_path / "outside/new.txt",
        "null": Path("/dev/null"),
        "loop": Path("loop"),
    }
    for name, target in links.items():
        (tmp_path / "ws" / name).symlink_to(target)
    os.mkfifo(tmp_path / "ws/pipe")
    return tmp_path


def tool_of(ground: Path, name: str) -> Tool:
    (found,) = builtin_tools([name], ground / "ws")
    return found


def outside_of(ground: Path) -> dict[str, str]:
    """Everything around the workspace, to see that nothing has changed."""
    files = [path for path in ground.rglob("*") if "ws" not in path.relative_to(ground).parts]
    return {str(path): path.read_text() if path.is_file() else "" for path in files}


CALLS: dict[str, Callable[[str], dict[str, object]]] = {
    "list_files": lambda path: {"path": path, "recursive": True},
    "read_file": lambda path: {"path": path},
    "search_files": lambda path: {"query": "launch", "path": path},
    "write_file": lambda path: {"path": path, "content": "broken", "overwrite": True},
}
ESCAPES = [
    "../outside/secret.txt",
    "../outside",
    "..",
    "docs/../../outside/secret.txt",
    "missing/../../outside/secret.txt",
    "../ws/notes.txt",
    "../ws-evil/secret.txt",
    "{ground}/outside/secret.txt",
    "{ground}/ws-evil/secret.txt",
    "{ground}/ws/../outside/secret.txt",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "link.txt",
    "relative.txt",
    "chain.txt",
    "linkdir",
    "linkdir/secret.txt",
    "linkdir/new.txt",
    "linkdir/../ws/notes.txt",
    "docs/up/outside/secret.txt",
    "docs/up",
    "gone.txt",
    "null",
    "loop",
    "loop/x.txt",
    "pipe",
    "~",
    "~/secret.txt",
    "~root/secret.txt",
    "notes.txt\0.md",
    "x" * 300,
    "x/" * 5000,
    "\ud800.txt",
]


@pytest.mark.parametrize("path", ESCAPES, ids=lambda path: ascii(path)[:40])
@pytest.mark.parametrize("name", CALLS)
def test_every_way_out_is_denied_for_every_tool(ground: Path, name: str, path: str) -> None:
    before = outside_of(ground)
    given = path.format(ground=ground)
    with pytest.raises(ToolError) as caught:
        tool_of(ground, name)(CALLS[name](given))
    message = str(caught.value)
    assert caught.value.kind is ErrorKind.DENIED
    assert SECRET not in message
    assert str(ground) not in message.replace(given, "")
    assert outside_of(ground) == before


@pytest.mark.parametrize("name", ["list_files", "search_files"])
def test_nothing_outside_is_seen_on_a_walk(ground: Path, name: str) -> None:
    text = tool_of(ground, name)(CALLS[name]("."))
    assert SECRET not in text
    assert "secret.txt" not in text
    assert str(ground) not in text


@pytest.mark.parametrize("path", ["gone-inside.txt", "docs/dangling/new.txt"])
def test_nothing_is_written_through_a_link_that_leads_nowhere(ground: Path, path: str) -> None:
    (ground / "ws/gone-inside.txt").symlink_to("not-there.txt")
    (ground / "ws/docs/dangling").symlink_to("not-there")
    with pytest.raises(ToolError, match="leads nowhere") as caught:
        tool_of(ground, "write_file")({"path": path, "content": "x"})
    assert caught.value.kind is ErrorKind.DENIED
    assert not (ground / "ws/not-there.txt").exists()


def test_a_file_with_a_second_name_elsewhere_is_not_written(ground: Path) -> None:
    os.link(ground / "outside/secret.txt", ground / "ws/twin.txt")
    with pytest.raises(ToolError, match="hard link") as caught:
        tool_of(ground, "write_file")({"path": "twin.txt", "content": "x", "overwrite": True})
    assert caught.value.kind is ErrorKind.DENIED
    assert (ground / "outside/secret.txt").read_text() == SECRET


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "docs/.GIT/config", "docs/../.git/x"])
def test_git_data_is_not_written(ground: Path, path: str) -> None:
    with pytest.raises(ToolError, match="Git") as caught:
        tool_of(ground, "write_file")({"path": path, "content": "x"})
    assert caught.value.kind is ErrorKind.DENIED
    assert not (ground / "ws/.git").exists()


def test_denials_say_what_can_be_used(ground: Path) -> None:
    with pytest.raises(ToolError) as caught:
        tool_of(ground, "read_file")({"path": "../outside/secret.txt"})
    assert str(caught.value).startswith("../outside/secret.txt leads out of the workspace")
    assert "only paths inside the workspace" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/notes.txt", "use notes.txt"),
        ("/docs/readme.md", "use docs/readme.md"),
        ("/", "use ."),
    ],
)
def test_an_absolute_path_gets_the_relative_one_as_a_hint(
    ground: Path, path: str, hint: str
) -> None:
    with pytest.raises(ToolError) as caught:
        Workspace(ground / "ws").resolve(path)
    assert str(caught.value).endswith(hint)


@pytest.mark.parametrize("path", ["/nothing.txt", "/../outside/secret.txt", "/link.txt"])
def test_the_hint_tells_nothing_about_what_is_outside(ground: Path, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        Workspace(ground / "ws").resolve(path)
    assert "; use " not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt",
        "./notes.txt",
        "docs/../notes.txt",
        "docs//..//notes.txt",
        "{ground}/ws/notes.txt",
        "same.txt",
        "back/notes.txt",
    ],
)
def test_every_spelling_of_an_inside_path_leads_to_the_file(ground: Path, path: str) -> None:
    (ground / "ws/same.txt").symlink_to("notes.txt")
    (ground / "ws/back").symlink_to(ground / "ws")
    found = Workspace(ground / "ws").resolve(path.format(ground=ground))
    assert found == (ground / "ws/notes.txt").resolve()


def test_a_workspace_may_itself_be_reached_by_a_link(ground: Path) -> None:
    (ground / "alias").symlink_to("ws")
    workspace = Workspace(ground / "alias")
    for path in ("notes.txt", f"{ground}/alias/notes.txt", f"{ground}/ws/notes.txt"):
        assert workspace.name(workspace.resolve(path)) == "notes.txt"


def test_a_name_with_a_tilde_is_a_name_when_it_exists(ground: Path) -> None:
    (ground / "ws/~$report.txt").write_text("lock\n")
    assert "lock" in tool_of(ground, "read_file")({"path": "~$report.txt"})


def test_a_file_swapped_for_a_link_after_the_check_is_not_opened(ground: Path) -> None:
    workspace = Workspace(ground / "ws")
    place = workspace.resolve("notes.txt")
    place.unlink()
    place.symlink_to(ground / "outside/secret.txt")
    with pytest.raises(ToolError), workspace.open_file(place):
        pytest.fail("the link was followed")


def test_a_folder_swapped_for_a_link_after_the_check_is_not_entered(ground: Path) -> None:
    workspace = Workspace(ground / "ws")
    place = workspace.resolve("docs/secret.txt", writing=True)
    (ground / "ws/docs").rename(ground / "ws/old")
    (ground / "ws/docs").symlink_to(ground / "outside")
    with pytest.raises(ToolError), workspace.open_file(place):
        pytest.fail("the link was followed")
    with pytest.raises(ToolError), workspace.open_folder(place.parent, create=True):
        pytest.fail("the link was followed")


def test_a_file_swapped_for_a_pipe_after_the_check_does_not_hang(ground: Path) -> None:
    workspace = Workspace(ground / "ws")
    pipe = workspace.open_file(workspace.root / "pipe")
    with pytest.raises(ToolError, match="not a plain file"), pipe:
        pytest.fail("the pipe was opened")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("note.txt", "did you mean notes.txt"),
        ("NOTES.TXT", "did you mean notes.txt"),
        ("docs/readme.txt", "did you mean docs/readme.md?"),
        ("doc/readme.md", "did you mean docs/readme.md?"),
        ("zzz", "list_files shows what there is"),
        ("notes.txt/x", "notes.txt is a file, not a folder"),
        ("notes.txt/x/y", "notes.txt is a file, not a folder"),
    ],
)
@pytest.mark.parametrize("name", ["list_files", "read_file", "search_files"])
def test_a_missing_file_is_answered_with_close_names(
    ground: Path, name: str, path: str, meant: str
) -> None:
    with pytest.raises(ToolError) as caught:
        tool_of(ground, name)(CALLS[name](path))
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert meant in str(caught.value)
    assert f"there is no {path}" in str(caught.value)


def test_no_descriptor_is_left_open(ground: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name, params in CALLS.items():
        for path in (".", "docs", "notes.txt", "missing", "link.txt", "pipe", "docs/up"):
            try:
                tool_of(ground, name)(params(path))
            except ToolError:
                continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(("name", "problem"), [("nil", "does not exist"), ("f", "not a folder")])
def test_the_workspace_must_be_a_folder(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(ConfigError, match=problem) as caught:
        Workspace(tmp_path / name)
    assert name in str(caught.value)
    assert caught.value.hint
