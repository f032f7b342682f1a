"""The set-up does what is missing, says what is wrong, and never does a thing twice."""

from __future__ import annotations

import importlib
import io
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.bench.conformance import data

children: Any = importlib.import_module("children")
setup: Any = importlib.import_module("setup")

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_a_child_that_hangs_is_killed_with_its_children(
    tmp_path: Path, is_alive: Callable[[int], bool]
) -> None:
    script = f"sleep 300 & echo $! > {tmp_path}/sleeper; echo started; wait"
    done = children.run(["sh", "-c", script], timeout=1)
    assert done.timed_out and done.ending == "no end after 1 s"
    assert done.lines == ("started",)
    assert not is_alive(int((tmp_path / "sleeper").read_text()))


def test_only_the_last_lines_are_kept() -> None:
    done = children.run(["sh", "-c", "seq 1 100; exit 7"])
    assert done.code == 7
    assert done.lines == tuple(str(number) for number in range(76, 101))


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(children.SetupError, match="cannot run /no/such/program"):
        children.run(["/no/such/program"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pipe, terminal = io.StringIO(), Terminal()
    tickers = [children.Ticker(str.strip, out=out) for out in (pipe, terminal)]
    for step in range(1, 31):
        now = 100.0 + step
        for ticker in tickers:
            ticker(f" step {step} ")
    for ticker in tickers:
        ticker.close()
    assert pipe.getvalue().splitlines() == [
        f"  step {step} (0:{step} so far)" for step in (10, 20, 30)
    ]
    assert terminal.getvalue().count("\r") == 30
    assert terminal.getvalue().count("\n") == 1


@pytest.fixture
def sound_venv(tmp_path: Path) -> Path:
    """A virtual environment that sees the pip of the one that runs the tests."""
    folder = tmp_path / "checkout" / ".venv"
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "pip").mkdir()
    (packages / "pip" / "__init__.py").touch()
    return folder


def test_a_sound_environment_is_kept(sound_venv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sound_venv / "mark").touch()
    assert setup.venv_fault(sound_venv) == ""
    assert setup.make_venv(sound_venv) == sound_venv / "bin" / "python"
    assert (sound_venv / "mark").exists()


def test_faults_of_an_environment_are_named(sound_venv: Path, tmp_path: Path) -> None:
    moved = sound_venv.rename(tmp_path / "moved")
    assert setup.venv_fault(moved) == "the one there was made in another folder"
    (packages,) = moved.glob("lib/python*/site-packages")
    shutil.rmtree(packages / "pip")
    assert setup.venv_fault(moved) == "the one there has no pip"
    python = moved / "bin" / "python"
    python.unlink()
    assert "its python does not run: No such file" in setup.venv_fault(moved)
    python.write_text("#!/bin/sh\nexit 127\n")
    python.chmod(0o755)
    assert "its python ends with 127" in setup.venv_fault(moved)
    python.write_text("#!/bin/sh\necho 3 8 True\n")
    assert setup.venv_fault(moved) == "the one there has Python 3.8, which is too old"


def test_a_broken_environment_is_made_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/no/such/python")
    (folder / "old").touch()
    python = setup.make_venv(folder)
    assert "the one there is broken" in capsys.readouterr().out
    assert setup.venv_fault(folder) == ""
    assert not (folder / "old").exists()
    subprocess.run([str(python), "-m", "pip", "--version"], check=True, capture_output=True)


def test_a_python_without_venv_names_the_debian_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ensurepip" else 1)
    expected = "apt install python{}.{}-venv".format(*sys.version_info)
    with pytest.raises(children.SetupError, match=expected):
        setup.make_venv(tmp_path / ".venv")
    assert not (tmp_path / ".venv").exists()


def test_the_package_is_installed_again_only_for_a_new_pyproject(
    environment: Path, tmp_path: Path, calls: Callable[[], str]
) -> None:
    def install(*, dev: bool) -> str:
        setup.install_package(environment / "bin" / "python", tmp_path, dev=dev)
        return calls()

    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert install(dev=False).endswith(f"-e {tmp_path}\n")
    assert install(dev=False) == ""
    assert install(dev=True).endswith(f"-e {tmp_path}[dev]\n")
    assert install(dev=False) == ""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert install(dev=False).endswith(f"-e {tmp_path}[dev]\n")


def test_pips_words_are_shown_and_it_is_tried_again_when_the_package_does_not_install(
    environment: Path, tmp_path: Path, calls: Callable[[], str]
) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    python = environment / "bin" / "python"
    sound = python.read_text()
    python.write_text("#!/bin/sh\necho 'ERROR: no such index'\nexit 1\n")
    with pytest.raises(children.SetupError, match="ERROR: no such index"):
        setup.install_package(python, tmp_path, dev=False)
    python.write_text(sound)
    setup.install_package(python, tmp_path, dev=False)
    assert "pip install" in calls()


def test_test_data_come_without_what_they_depend_on_and_only_once(
    environment: Path, calls: Callable[[], str]
) -> None:
    python = environment / "bin" / "python"
    assert setup.install_test_data(python)
    assert calls().endswith("--no-deps bfcl-eval==2026.3.23\n")
    assert setup.install_test_data(python)
    assert calls() == ""


def test_without_test_data_the_set_up_goes_on_and_says_how_to_get_them(
    environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (environment / "offline").touch()
    assert not setup.install_test_data(environment / "bin" / "python")
    said = capsys.readouterr().out
    assert "tests that use it are skipped" in said
    assert "pip install" in said and "ERROR: no such index" in said


def test_the_test_data_are_those_that_the_measurements_name() -> None:
    assert "==".join(setup.TEST_DATA) == data.BFCL


@pytest.fixture
def path_folder(tmp_path: Path) -> Path:
    """A PATH with nothing but what the script itself needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def add_python(folder: Path, name: str, *, works: bool) -> Path:
    file = folder / name
    version = f"#!/bin/sh\nif [ $1 = -c ]; then exit {0 if works else 1}; fi\n"
    file.write_text(f"{version}echo {name} $@\n")
    file.chmod(0o755)
    return file


def find_python(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    bash = str(folder / "bash")
    command = [bash, str(SCRIPTS / "setup"), "--dev"]
    env = {"PATH": str(folder), **environ}
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_the_first_python_that_is_new_enough_is_used(path_folder: Path) -> None:
    add_python(path_folder, "python3", works=False)
    add_python(path_folder, "python3.12", works=True)
    add_python(path_folder, "python3.10", works=True)
    assert find_python(path_folder).stdout == "python3.12 scripts/setup.py --dev\n"
    add_python(path_folder, "python3", works=True)
    assert find_python(path_folder).stdout == "python3 scripts/setup.py --dev\n"


def test_a_python_can_be_named(path_folder: Path) -> None:
    add_python(path_folder, "python3", works=True)
    mine = add_python(path_folder, "mine", works=True)
    assert find_python(path_folder, PYTHON=str(mine)).stdout == "mine scripts/setup.py --dev\n"
    add_python(path_folder, "mine", works=False)
    done = find_python(path_folder, PYTHON=str(mine))
    assert done.returncode == 2 and "expected Python 3.10 or later" in done.stderr


def test_no_python_at_all_says_what_to_install(path_folder: Path) -> None:
    done = find_python(path_folder)
    assert done.returncode == 2
    assert "expected Python 3.10 or later" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr
