"""The engine is built once, checked with real tokens, and replaced by the next when it crashes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

children: Any = importlib.import_module("children")
llama_build: Any = importlib.import_module("llama_build")
wheel_cache: Any = importlib.import_module("wheel_cache")
Speed: Any = importlib.import_module("speed").Speed

ROOT = Path(__file__).parents[2]
SPEED = {"model": "model.gguf", "prompt": 200.0, "decode": 30.0, "threads": 2}
READY = "llama-cpp-python 0.3.36, profile "
READY_AVX512 = f"{READY}avx512: AMX is there but no compiler that gets it right"
READY_AVX2 = f"{READY}avx2: the next best, since avx512 did not work here"


def plan(name: str, **known: Any) -> Any:
    return wheel_cache.Build(
        key=f"1-{name}",
        version="1",
        profile=name,
        cmake_args=(),
        cpu_features=(),
        compiler="gcc 12.2.0",
        **known,
    )


def put(wheels: Any, build: Any) -> Any:
    folder = wheels.folder / build.key
    folder.mkdir(parents=True)
    (folder / "llama_cpp_python-1-py3-none-any.whl").write_bytes(b"")
    wheels.save(build)
    return build


class Workshop:
    """Builds into the cache and tries out; notes what it was asked for."""

    def __init__(self, wheels: Any, *, working: set[str], buildable: set[str] | None = None):
        self.wheels, self.working, self.buildable = wheels, working, buildable
        self.made: list[str] = []
        self.tried: list[str] = []

    def make(self, build: Any) -> Any:
        self.made.append(build.profile)
        if self.buildable is not None and build.profile not in self.buildable:
            return None
        return put(self.wheels, build)

    def try_out(self, build: Any, wheel: Path) -> Any:
        assert wheel.parent.name == build.key
        self.tried.append(build.profile)
        works = build.profile in self.working
        return replace(build, checked=works, reason="" if works else "killed by SIGSEGV")

    def choose(self, *ladder: str, again: bool = False) -> Any:
        plans = [plan(name) for name in ladder]
        working = llama_build.works(
            plans, self.wheels, make=self.make, try_out=self.try_out, again=again
        )
        return next(working, None)


def test_the_best_profile_that_works_is_taken(wheels: Any) -> None:
    shop = Workshop(wheels, working={"avx2", "baseline"})
    assert shop.choose("avx512", "avx2", "baseline").profile == "avx2"
    assert shop.made == ["avx512", "avx2"]
    assert wheels.read("1-avx512").reason == "killed by SIGSEGV"
    assert wheels.read("1-avx2").checked is True


def test_a_profile_that_failed_is_skipped_from_then_on(
    wheels: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Workshop(wheels, working={"avx2"}).choose("avx512", "avx2")
    second = Workshop(wheels, working={"avx512", "avx2"})
    assert second.choose("avx512", "avx2").profile == "avx2"
    assert second.made == [] and second.tried == ["avx2"]
    assert "skipping profile avx512, which failed here before: killed by SIGSEGV" in (
        capsys.readouterr().out
    )


def test_a_forced_profile_is_tried_again_without_building(wheels: Any) -> None:
    put(wheels, plan("avx512", checked=False, reason="killed by SIGSEGV"))
    shop = Workshop(wheels, working={"avx512"})
    assert shop.choose("avx512", again=True).checked is True
    assert shop.made == []


def test_a_profile_that_does_not_build_is_passed_over(wheels: Any) -> None:
    shop = Workshop(wheels, working={"avx512", "avx2"}, buildable={"avx2"})
    assert shop.choose("avx512", "avx2").profile == "avx2"


def test_none_is_chosen_when_none_works(wheels: Any) -> None:
    assert Workshop(wheels, working=set()).choose("avx2", "baseline") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"unknown": 1}'])
def test_a_wheel_with_a_damaged_record_is_not_trusted(wheels: Any, text: str) -> None:
    put(wheels, plan("avx2", checked=True))
    (wheels.folder / "1-avx2" / "build.json").write_text(text)
    assert wheels.read("1-avx2") is None


@pytest.mark.parametrize("speed", [None, SPEED])
def test_records_of_older_and_newer_set_ups_are_read(wheels: Any, speed: Any) -> None:
    put(wheels, plan("avx2", checked=True))
    file = wheels.folder / "1-avx2" / "build.json"
    record = json.loads(file.read_text())
    del record["speed"]
    file.write_text(json.dumps(record | {"later": 1} | ({"speed": speed} if speed else {})))
    found = wheels.read("1-avx2")
    assert found.checked is True
    assert found.speed == (Speed(**speed) if speed else None)


def test_a_record_without_its_wheel_is_not_trusted(wheels: Any) -> None:
    put(wheels, plan("avx2", checked=True))
    wheels.wheel("1-avx2").unlink()
    assert wheels.read("1-avx2") is None


def test_a_second_set_up_waits_and_says_so(wheels: Any, capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def second() -> None:
        with wheels.lock():
            order.append("second")

    with wheels.lock():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.5)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert "waiting for another set-up" in capsys.readouterr().out


def test_what_a_killed_build_left_is_removed(wheels: Any) -> None:
    (wheels.folder / ".build-left" / "new").mkdir(parents=True)
    with wheels.lock():
        pass
    assert [path.name for path in wheels.folder.iterdir()] == [".lock"]


def test_the_engine_is_built_checked_installed_and_then_left_alone(
    engine: Any,
    environment: Path,
    wheels: Any,
    capsys: pytest.CaptureFixture[str],
    calls: Callable[[], str],
) -> None:
    assert engine() == READY_AVX512
    assert "$CMAKE_ARGS is not used" in capsys.readouterr().out
    assert "-DGGML_AVX512=ON" in (environment / "installed").read_text()
    assert "-DGGML_NATIVE=ON" not in (environment / "installed").read_text()
    record = json.loads((environment / "llama-build.json").read_text())
    assert record["profile"] == "avx512" and record["checked"] is True
    assert record["why"] == "AMX is there but no compiler that gets it right"
    assert record["speed"] == SPEED
    assert json.loads((wheels.folder / record["key"] / "build.json").read_text())["speed"] == SPEED
    assert sorted(path.name for path in wheels.folder.iterdir()) == [
        ".lock",
        record["key"],
        f"{record['key']}.log",
    ]
    assert "  [2/2] c++ two.cpp" in (wheels.folder / f"{record['key']}.log").read_text()
    assert engine() == READY_AVX512
    assert calls() == ""


def test_a_build_that_crashes_makes_way_for_the_next(
    engine: Any, environment: Path, wheels: Any
) -> None:
    (environment / "crashing").write_text("AVX512=ON")
    assert engine() == READY_AVX2
    assert "AVX512" not in (environment / "installed").read_text()
    reasons = [json.loads(file.read_text())["reason"] for file in wheels.folder.rglob("*.json")]
    assert sorted(reasons) == ["", "killed by SIGSEGV while decoding 8 tokens of model.gguf"]


def test_another_checkout_takes_the_checked_wheel_as_it_is(
    engine: Any, environment: Path, calls: Callable[[], str]
) -> None:
    engine()
    (environment / "llama-build.json").unlink()
    engine()
    made = calls()
    assert "--force-reinstall" in made
    assert "pip wheel" not in made and "check_llama" not in made


def test_what_an_older_set_up_left_is_measured_once_without_building(
    engine: Any, environment: Path, wheels: Any, calls: Callable[[], str]
) -> None:
    engine()
    for file in [environment / "llama-build.json", *wheels.folder.glob("*/build.json")]:
        record = json.loads(file.read_text())
        file.write_text(json.dumps({k: v for k, v in record.items() if k not in ("speed", "why")}))
    engine()
    made = calls()
    assert "model.gguf measure" in made and "pip wheel" not in made
    assert json.loads((environment / "llama-build.json").read_text())["speed"] == SPEED
    engine()
    assert calls() == ""


def test_an_engine_that_was_removed_is_installed_again(
    engine: Any, environment: Path, calls: Callable[[], str]
) -> None:
    engine()
    shutil.rmtree(environment / "lib")
    engine()
    assert "--force-reinstall" in calls()


def test_a_wheel_without_a_model_to_check_it_is_checked_later(
    engine: Any, environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "models" / "model.gguf").unlink()
    assert "not checked: there is no model file" in engine()
    (environment / "crashing").write_text("AVX512=ON")
    (tmp_path / "models" / "model.gguf").write_bytes(b"GGUF")
    assert engine() == READY_AVX2


def test_when_every_build_crashes_none_stays_installed(
    engine: Any, environment: Path, calls: Callable[[], str]
) -> None:
    (environment / "crashing").write_text("DGGML")
    with pytest.raises(
        children.SetupError, match=r"no build of llama-cpp-python 0\.3\.36"
    ) as caught:
        engine()
    for name in ("avx512", "avx2", "baseline"):
        assert f"{name}: killed by SIGSEGV while decoding 8 tokens" in str(caught.value)
    assert "uninstall --yes llama-cpp-python" in calls()
    assert not (environment / "llama-build.json").exists()


def test_the_end_of_the_log_is_shown_when_nothing_compiles(
    engine: Any, environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (environment / "does-not-compile").touch()
    with pytest.raises(children.SetupError, match="avx2: it could not be built"):
        engine()
    assert "one.cpp: error: nonsense" in capsys.readouterr().out


def test_a_failure_before_compiling_stops_at_once(engine: Any, environment: Path) -> None:
    python = environment / "bin" / "python"
    python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found'\nexit 1\n")
    with pytest.raises(children.SetupError, match="Nothing was compiled") as caught:
        engine()
    assert "No matching distribution found" in str(caught.value)


def test_a_missing_compiler_is_named_with_the_package_to_install(
    engine: Any, amx_machine: Any, calls: Callable[[], str]
) -> None:
    with pytest.raises(children.SetupError, match=r"build-essential.*gcc-c\+\+"):
        engine(machine=replace(amx_machine, compiler=None))
    assert calls() == ""


def test_no_compiler_is_needed_with_a_cached_wheel(
    engine: Any, amx_machine: Any, environment: Path
) -> None:
    engine()
    (environment / "llama-build.json").unlink()
    assert engine(machine=replace(amx_machine, compiler=None)) == READY_AVX512


def test_an_interrupted_build_leaves_no_process_and_no_files(
    engine: Any,
    environment: Path,
    wheels: Any,
    monkeypatch: pytest.MonkeyPatch,
    is_alive: Callable[[int], bool],
) -> None:
    (environment / "hang").touch()
    # A job in the background of a shell starts with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_when_it_hangs() -> None:
        for _ in range(200):
            if (environment / "sleeper").exists():
                break
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_when_it_hangs)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine()
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert not [path for path in wheels.folder.iterdir() if path.is_dir()]
    assert not is_alive(int((environment / "sleeper").read_text()))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  [12/140] /usr/bin/g++ -DGGML_BUILD -c ggml.cpp", "compiled 12 of 140"),
        ("[140/140] linking", "compiled 140 of 140"),
        ("  [  8%] Building CXX object", "compiled 8 %"),
        ("  -- Configuring done", ""),
        ("warning: see [1/2] above", ""),
        ("", ""),
    ],
)
def test_progress_is_read_from_ninja_and_make(line: str, expected: str) -> None:
    assert llama_build.compile_progress(line) == expected


def test_the_version_is_the_one_of_the_llama_extra() -> None:
    version, others = llama_build.requirements((ROOT / "pyproject.toml").read_text("utf-8"))
    assert version.count(".") == 2
    assert any(other.startswith("numpy") for other in others)
    with pytest.raises(children.SetupError, match="expected `llama = "):
        llama_build.requirements('[project.optional-dependencies]\nllama = ["numpy"]\n')
