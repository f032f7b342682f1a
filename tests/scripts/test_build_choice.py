"""Set-up says which build it took and why; a comparison takes the fastest and keeps to it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

build_choice: Any = importlib.import_module("build_choice")
children: Any = importlib.import_module("children")
compilers: Any = importlib.import_module("compilers")
setup: Any = importlib.import_module("setup")
Build: Any = importlib.import_module("wheel_cache").Build
speed: Any = importlib.import_module("speed")

CLANG = compilers.Compiler("/opt/clang++-19", "clang", (19, 1, 7), "/opt/clang-19")
READY = "llama-cpp-python 0.3.36, profile "
NATIVE = f"{READY}native: AMX with clang 19"
AVX512 = f"{READY}avx512: AMX is there but no compiler that gets it right"


@pytest.fixture
def avx2_machine(amx_machine: Any) -> Any:
    return replace(amx_machine, features=frozenset(["sse4_2", "avx2", "fma", "f16c", "bmi2"]))


@pytest.fixture
def clang_machine(amx_machine: Any) -> Any:
    return replace(amx_machine, more=(CLANG,))


def test_the_reason_is_said_for_each_kind_of_machine(
    engine: Any, avx2_machine: Any, clang_machine: Any
) -> None:
    assert engine() == AVX512
    assert engine(machine=avx2_machine) == f"{READY}avx2: the best this processor can run"
    assert engine(machine=clang_machine) == NATIVE
    assert engine(machine=clang_machine) == NATIVE  # when nothing is left to do
    assert engine(forced="baseline") == f"{READY}baseline: as asked for"


def test_the_compiler_for_amx_builds_the_native_profile_alone(
    engine: Any, clang_machine: Any, environment: Path
) -> None:
    engine(machine=clang_machine)
    chosen = "-DCMAKE_C_COMPILER=/opt/clang-19 -DCMAKE_CXX_COMPILER=/opt/clang++-19"
    assert chosen in (environment / "installed").read_text()
    engine(machine=clang_machine, forced="avx512")
    assert "CMAKE_CXX_COMPILER" not in (environment / "installed").read_text()


def test_a_native_build_that_crashes_makes_way_and_that_is_the_reason(
    engine: Any, clang_machine: Any, environment: Path
) -> None:
    (environment / "crashing").write_text("NATIVE=ON")
    expected = f"{READY}avx512: the next best, since native with clang 19 did not work here"
    assert engine(machine=clang_machine) == expected


def test_what_to_install_for_amx_is_said_once_and_is_no_error(
    engine: Any, environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (environment / "crashing").write_text("AVX512=ON")  # so that two profiles are built
    engine()
    said = capsys.readouterr()
    assert said.out.count("apt install clang-19 libomp-19-dev") == 1
    assert "4 times faster on Q4_1" in said.out
    assert said.err == ""
    engine()
    assert "apt install" not in capsys.readouterr().out


def test_what_a_compiler_lacks_is_said(
    engine: Any, amx_machine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = replace(CLANG, missing="OpenMP (`apt install libomp-19-dev`)")
    assert engine(machine=replace(amx_machine, more=(lacking,))) == AVX512
    assert "clang 19.1.7 gets AMX right but lacks OpenMP (`apt install libomp-19-dev`)" in (
        capsys.readouterr().out
    )


def test_nothing_is_said_about_amx_where_all_is_well(
    engine: Any, clang_machine: Any, avx2_machine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    engine(machine=clang_machine)
    engine(machine=avx2_machine)
    assert "AMX" not in capsys.readouterr().out


def test_a_comparison_takes_the_fastest_and_set_up_keeps_to_it(
    engine: Any,
    clang_machine: Any,
    environment: Path,
    calls: Callable[[], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (environment / "slow").write_text("NATIVE=ON")
    ready = engine(machine=clang_machine, comparing=True)
    assert calls().count("pip wheel") == 4
    assert ready == (
        f"{READY}avx512: the fastest of 4 that were compared, 3.50 s for 300 prompt tokens and "
        "60 written ones, built with gcc 12.2.0"
    )
    assert "AVX512=ON" in (environment / "installed").read_text()
    table = capsys.readouterr().out
    assert "native with clang 19          50.0      30.0          8.00 s\n" in table
    assert "avx512                       200.0      30.0          3.50 s  <- chosen\n" in table
    assert engine(machine=clang_machine) == ready
    assert calls() == ""
    (environment / "llama-build.json").unlink()
    assert engine(machine=clang_machine) == ready
    assert "pip wheel" not in calls()


def test_a_comparison_measures_anew_what_was_built_before(
    engine: Any,
    avx2_machine: Any,
    environment: Path,
    calls: Callable[[], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine(machine=avx2_machine)
    (environment / "slow").write_text("DGGML_NATIVE=OFF -DLLAVA")  # the flags of avx2
    assert "native: the fastest of 3" in engine(machine=avx2_machine, comparing=True)
    assert calls().count("pip wheel") == 2
    assert (
        "avx2                          50.0      30.0          8.00 s\n" in capsys.readouterr().out
    )


def test_a_forced_profile_goes_before_the_kept_choice_and_does_not_end_it(
    engine: Any, clang_machine: Any, environment: Path
) -> None:
    (environment / "slow").write_text("NATIVE=ON")
    chosen = engine(machine=clang_machine, comparing=True)
    assert engine(machine=clang_machine, forced="native") == f"{READY}native: as asked for"
    assert engine(machine=clang_machine) == chosen


def test_the_choice_ends_when_the_machine_changes(
    engine: Any, amx_machine: Any, clang_machine: Any, environment: Path
) -> None:
    (environment / "slow").write_text("AVX512=ON")
    assert "profile avx2: the fastest" in engine(comparing=True)
    assert "profile avx2: the fastest" in engine()
    assert engine(machine=clang_machine) == NATIVE  # a compiler was installed


def test_a_build_that_crashes_is_in_the_table_and_not_chosen(
    engine: Any, environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (environment / "crashing").write_text("AVX2=OFF")  # the last one that is tried
    assert "profile avx512: the fastest of 2" in engine(comparing=True)
    assert "baseline                  does not work here: killed by SIGSEGV" in (
        capsys.readouterr().out
    )
    assert "AVX512=ON" in (environment / "installed").read_text()


def test_a_comparison_needs_a_model_and_a_measurement(
    engine: Any, environment: Path, tmp_path: Path, calls: Callable[[], str]
) -> None:
    (environment / "baffled").touch()
    with pytest.raises(children.SetupError, match="no build could be measured"):
        engine(comparing=True)
    (tmp_path / "models" / "model.gguf").unlink()
    with pytest.raises(children.SetupError, match=r"expected a model.*found no \*\.gguf"):
        engine(comparing=True)
    assert calls() == ""


def test_when_every_build_crashes_a_comparison_says_so(engine: Any, environment: Path) -> None:
    (environment / "crashing").write_text("DGGML")
    with pytest.raises(children.SetupError, match=r"no build .* works on this machine"):
        engine(comparing=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"key": "1-other", "why": "x"}'])
def test_a_damaged_choice_is_no_choice(
    engine: Any, environment: Path, wheels: Any, text: str
) -> None:
    (environment / "slow").write_text("AVX512=ON")
    engine(comparing=True)
    (file,) = wheels.folder.glob("choice-*.json")
    assert json.loads(file.read_text())["key"].startswith("0.3.36-avx2-")
    file.write_text(text)
    assert engine() == AVX512


class Moments:
    """Gives a build the next of the speeds that were planned for it; notes the order."""

    def __init__(self, **seconds: list[float]):
        self.seconds, self.order = seconds, list[str]()

    def measure(self, build: Any) -> Any:
        self.order.append(build.profile)
        rate = 360 / self.seconds[build.profile].pop(0)  # for reading and writing alike
        if rate < 0:
            return replace(build, checked=False, reason="killed by SIGSEGV", speed=None)
        return replace(build, speed=speed.Speed("m.gguf", rate, rate, 2))

    def compare(self, wheels: Any) -> list[Any]:
        builds = [Build(name, "1", name, (), (), "gcc 12.2.0", 1.0, True) for name in self.seconds]
        for build in builds:
            (wheels.folder / build.key).mkdir(parents=True)
            (wheels.folder / build.key / "one.whl").touch()
        compared: list[Any] = build_choice.by_turns(
            [self.measure(one) for one in builds], self.measure, wheels
        )
        return compared


def test_builds_are_measured_by_turns_and_the_best_counts(
    wheels: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = Moments(avx512=[40.0, 4.0, 4.1], avx2=[5.0, 50.0, 5.1])
    builds = moments.compare(wheels)
    assert moments.order == ["avx512", "avx2"] * 3
    assert [round(one.speed.seconds, 3) for one in builds] == [4.0, 5.0]
    assert wheels.read("avx512").speed == builds[0].speed
    assert build_choice.fastest(builds, builds, wheels).key == "avx512"
    assert "busy" not in capsys.readouterr().out


def test_a_busy_machine_is_told(wheels: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Moments(avx512=[4.0, 5.0, 9.0], avx2=[5.0, 5.1, 5.0]).compare(wheels)
    assert "times of one and the same build differ by 25%" in capsys.readouterr().out


def test_a_build_that_dies_in_a_later_turn_is_out(wheels: Any) -> None:
    moments = Moments(avx512=[4.0, -1.0], avx2=[5.0, 5.0, 5.0])
    assert [one.profile for one in moments.compare(wheels)] == ["avx2"]
    assert wheels.read("avx512").checked is False
    assert not moments.seconds["avx2"]


def test_a_fast_writer_wins_over_a_slightly_faster_reader() -> None:
    reader = speed.Speed("m.gguf", prompt=110.0, decode=20.0, threads=2)
    writer = speed.Speed("m.gguf", prompt=100.0, decode=30.0, threads=2)
    assert writer.seconds == 5.0
    assert writer.seconds < reader.seconds


def test_a_speed_is_read_as_it_is_printed() -> None:
    one = speed.Speed("a b.gguf", prompt=110.2, decode=20.0, threads=2)
    assert speed.parse_speed(str(one)) == one
    assert speed.parse_speed("decoding 8 tokens of m.gguf") is None


def test_comparing_and_forcing_exclude_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "VENV", Path("/dev/null/venv"))  # where nothing can be set up
    assert setup.main(["--compare", "--profile", "avx2"]) == 2
    monkeypatch.setenv("RUNNER_BUILD_PROFILE", "native")
    assert setup.main(["--compare"]) == 2
    assert "found both: 'native'" in capsys.readouterr().err
