"""A state comes back as it was saved and for the same key only, or not at all."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.errors import ConfigError
from runner.models.llama.state_cache import StateCache, StateKey, default_state_cache

STATE = bytes(range(256)) * 40
KEY = StateKey(
    model="a" * 64,
    build="0.3.36 AVX2 = 1",
    parameters={"n_ctx": 4096, "type_k": "f16", "flash_attn": True},
    tokens=(1, 5, 9, 200_000),
    name="small",
)
LIMIT = 1_000_000


@pytest.fixture
def cache(tmp_path: Path) -> StateCache:
    return StateCache(tmp_path / "cache" / "states", LIMIT)


@pytest.fixture
def file(cache: StateCache) -> Path:
    """The file of a state that was saved for KEY."""
    assert cache.save(KEY, STATE) == ""
    return path_of(cache, KEY)


def path_of(cache: StateCache, key: StateKey) -> Path:
    return cache.folder / f"{key.digest()}.state"


def keys(count: int) -> list[StateKey]:
    return [replace(KEY, tokens=[number]) for number in range(count)]


def used(cache: StateCache, key: StateKey, seconds_ago: float) -> None:
    then = time.time() - seconds_ago
    os.utime(path_of(cache, key), (then, then))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_state_comes_back_as_it_was_saved(cache: StateCache, kind: Any) -> None:
    assert cache.load(KEY) is None
    assert cache.save(KEY, kind(STATE)) == ""
    assert cache.load(KEY) == STATE
    assert StateCache(cache.folder, LIMIT).load(replace(KEY, tokens=list(KEY.tokens))) == STATE


def test_an_empty_state_is_a_state(cache: StateCache) -> None:
    assert cache.save(KEY, b"") == ""
    assert cache.load(KEY) == b""


def test_a_newer_state_takes_the_place_of_an_older_one(cache: StateCache) -> None:
    cache.save(KEY, STATE)
    cache.save(KEY, b"new")
    assert cache.load(KEY) == b"new"
    assert len(cache.entries()) == 1


def test_the_name_is_for_people_and_no_part_of_the_key(cache: StateCache) -> None:
    cache.save(KEY, STATE)
    assert cache.load(replace(KEY, name="other")) == STATE


OTHERS = [
    replace(KEY, model="b" * 64),
    replace(KEY, build="0.3.37 AVX2 = 1"),
    replace(KEY, parameters={**KEY.parameters, "n_ctx": 8192}),
    replace(KEY, parameters={**KEY.parameters, "flash_attn": 1}),
    replace(KEY, parameters={"n_ctx": 4096}),
    replace(KEY, tokens=(1, 5, 9)),
    replace(KEY, tokens=(1, 9, 5, 200_000)),
    replace(KEY, tokens=(15, 9, 200_000)),
]


@pytest.mark.parametrize("other", OTHERS)
def test_another_key_finds_nothing(cache: StateCache, file: Path, other: StateKey) -> None:
    assert cache.load(other) is None
    assert cache.load(KEY) == STATE


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_under_the_name_of_another_key_is_not_believed(
    cache: StateCache, file: Path, other: StateKey
) -> None:
    file.rename(path_of(cache, other))
    assert cache.load(other) is None
    assert not path_of(cache, other).exists()


DAMAGE = {
    "empty": lambda whole: b"",
    "no JSON": lambda whole: b"hello\n" + STATE,
    "no object": lambda whole: b"[1]\n" + STATE,
    "deep": lambda whole: b"[" * 60_000,
    "no head": lambda whole: STATE,
    "no state": lambda whole: whole[: whole.index(b"\n") + 1],
    "cut in the head": lambda whole: whole[:50],
    "cut in the state": lambda whole: whole[:-1],
    "too long": lambda whole: whole + b"x",
    "bit of the head": lambda whole: whole.replace(b'"small"', b'"smalm"'),
    "bit of the state": lambda whole: whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
    "zeros": lambda whole: bytes(len(whole)),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_removed_and_said(
    cache: StateCache, file: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(DAMAGE[kind](file.read_bytes()))
    assert cache.load(KEY) is None
    assert not file.exists()
    said = capsys.readouterr().err
    assert str(file) in said
    assert said.count("\n") == 1
    assert cache.save(KEY, STATE) == ""
    assert cache.load(KEY) == STATE


@given(place=st.integers(0, 10_000), change=st.integers(1, 255))
def test_any_changed_byte_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int
) -> None:
    cache = StateCache(tmp_path_factory.mktemp("changed"), LIMIT)
    # Shorter than its head, so that half of the places are there.
    cache.save(KEY, STATE[:300])
    file = path_of(cache, KEY)
    whole = bytearray(file.read_bytes())
    whole[place % len(whole)] ^= change
    file.write_bytes(whole)
    assert cache.load(KEY) is None


def test_only_the_owner_can_read_states(cache: StateCache, file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


def test_a_folder_that_is_open_to_others_is_closed_when_a_state_is_saved(
    cache: StateCache, file: Path
) -> None:
    cache.folder.chmod(0o777)
    assert cache.load(KEY) is None
    assert cache.save(KEY, STATE) == ""
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert cache.load(KEY) == STATE


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_not_trusted(
    cache: StateCache, file: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file.chmod(mode)
    assert cache.load(KEY) is None
    assert "other users may write to it" in capsys.readouterr().err


def test_a_symbolic_link_is_not_followed(cache: StateCache, file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert cache.load(KEY) is None
    assert cache.entries() == []
    assert cache.save(KEY, b"new") == ""
    assert not file.is_symlink()
    assert STATE in elsewhere.read_bytes()


def test_a_named_pipe_is_not_waited_for(cache: StateCache, file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)
    assert cache.load(KEY) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_another_user_is_not_trusted(
    cache: StateCache, file: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown(file if what == "file" else cache.folder, 65534, 65534)
    assert cache.load(KEY) is None
    assert "another user" in capsys.readouterr().err
    reason = cache.save(KEY, STATE)
    assert ("another user" in reason) == (what == "folder")


def test_the_least_recently_used_states_make_room(cache: StateCache) -> None:
    first, second, third, fourth = keys(4)
    for key, ago in ((first, 30), (second, 20), (third, 10)):
        cache.save(key, STATE)
        used(cache, key, ago)
    assert cache.load(first) == STATE  # and so it is the last used one
    cache.limit = 3 * path_of(cache, first).stat().st_size
    assert cache.save(fourth, STATE) == ""
    assert [cache.load(key) is None for key in (first, second, third, fourth)] == [
        False, True, False, False,
    ]  # fmt: skip


def test_all_files_together_keep_to_the_limit(cache: StateCache) -> None:
    cache.limit = 50_000
    for number, key in enumerate(keys(12)):
        assert cache.save(key, STATE[: 1000 * (number % 9 + 1)]) == ""
        assert sum(path.stat().st_size for path in cache.folder.iterdir()) <= cache.limit
    assert len(cache.entries()) > 3


def test_a_state_in_the_place_of_an_older_one_drives_out_no_other(cache: StateCache) -> None:
    first, second = keys(2)
    cache.save(first, STATE)
    cache.save(second, STATE)
    cache.limit = sum(entry.size for entry in cache.entries())
    cache.save(first, STATE)
    assert cache.load(second) == STATE


def test_a_state_larger_than_the_limit_is_not_kept_and_drives_out_none(
    cache: StateCache, file: Path
) -> None:
    reason = cache.save(keys(1)[0], bytes(LIMIT))
    assert "1.0 MB" in reason
    assert "RUNNER_STATE_CACHE_MB" in reason
    assert cache.load(KEY) == STATE


def test_a_limit_of_0_switches_the_cache_off(cache: StateCache, file: Path) -> None:
    off = StateCache(cache.folder, 0)
    assert off.load(KEY) is None
    assert "switched off" in off.save(KEY, STATE)
    assert file.exists()


def test_leftovers_of_a_crash_are_removed_when_they_are_old(cache: StateCache, file: Path) -> None:
    old, young = cache.folder / "old.tmp", cache.folder / "young.tmp"
    for leftover, ago in ((old, 3700), (young, 3500)):
        leftover.write_bytes(b"half a sta")
        os.utime(leftover, (time.time() - ago,) * 2)
    cache.save(KEY, STATE)
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.parametrize("place", ["file/states", "/proc/runner/states"])
def test_where_no_folder_can_be_made_the_reason_is_returned(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    cache = StateCache(tmp_path / place, LIMIT)
    assert "cannot write the state" in cache.save(KEY, STATE)
    assert cache.load(KEY) is None
    assert capsys.readouterr().err.count("\n") <= 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_still_gives_what_it_has(tmp_path: Path) -> None:
    cache = StateCache(tmp_path / "parent" / "states", LIMIT)
    cache.save(KEY, STATE)
    cache.folder.chmod(0o500)
    cache.folder.parent.chmod(0o500)
    try:
        assert cache.load(KEY) == STATE
    finally:
        cache.folder.parent.chmod(0o700)


def test_a_full_disk_is_a_reason_and_leaves_nothing_behind(cache: StateCache, file: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        reason = cache.save(keys(1)[0], bytes(200_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "cannot write the state" in reason
    assert list(cache.folder.iterdir()) == [file]


SHARED = """
import sys
from pathlib import Path
from runner.models.llama.state_cache import StateCache, StateKey

# The limit keeps four of the five states, so that they drive each other out.
cache, hits = StateCache(Path(sys.argv[1]), 45_000), 0
keys = [StateKey("model", "build", {}, [number]) for number in range(5)]
states = [bytes([number]) * (10_000 + number) for number in range(5)]
for turn in range(200):
    assert cache.save(keys[turn % 5], states[turn % 5]) == ""
    for key, state in zip(keys, states):
        found = cache.load(key)
        assert found in (None, state)
        hits += found is not None
assert hits
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "states"
    command = [sys.executable, "-c", SHARED, str(folder)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, "")
    assert not list(folder.glob("*.tmp"))


def test_entries_say_what_there_is_the_last_used_first(cache: StateCache, file: Path) -> None:
    other = replace(KEY, tokens=[1] * 70, name="größer")
    cache.save(other, b"other")
    used(cache, other, 100)
    first, second = cache.entries()
    assert (first.digest, first.name, first.tokens) == (KEY.digest(), "small", 4)
    assert first.size == file.stat().st_size
    assert (second.name, second.tokens) == ("größer", 70)
    assert first.used - second.used == pytest.approx(100, abs=60)


def test_entries_name_damaged_files_and_clear_removes_them(cache: StateCache, file: Path) -> None:
    file.write_bytes(b"damaged")
    (entry,) = cache.entries()
    assert (entry.digest, entry.name, entry.tokens) == (KEY.digest(), "", None)
    assert cache.clear("small") == []
    assert cache.clear() == [entry]
    assert list(cache.folder.iterdir()) == []


def test_clear_removes_all_or_those_of_one_model(cache: StateCache) -> None:
    for number, key in enumerate(keys(4)):
        cache.save(replace(key, name="odd" if number % 2 else "even"), STATE)
    (cache.folder / "half.tmp").touch()
    assert [entry.name for entry in cache.clear("odd")] == ["odd", "odd"]
    assert {entry.name for entry in cache.entries()} == {"even"}
    assert len(cache.clear()) == 2
    assert list(cache.folder.iterdir()) == []


def test_without_a_folder_there_is_nothing_to_list_or_clear(cache: StateCache) -> None:
    assert cache.entries() == []
    assert cache.clear() == []
    assert not cache.folder.exists()


def test_a_folder_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "states").touch()
    cache = StateCache(tmp_path / "states", LIMIT)
    for call in (cache.entries, cache.clear):
        with pytest.raises(ConfigError, match="states") as caught:
            call()
        assert "RUNNER_CACHE_DIR" in caught.value.hint


def test_no_token_is_in_the_head_of_a_file(file: Path) -> None:
    head = json.loads(file.read_bytes().split(b"\n")[0])
    assert head["tokens"] == 4
    assert "200000" not in json.dumps(head)


@pytest.mark.parametrize(
    ("text", "limit"), [(None, 2_048_000_000), ("", 2_048_000_000), ("0", 0), ("7", 7_000_000)]
)
def test_the_environment_says_where_and_how_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, limit: int
) -> None:
    monkeypatch.setenv("RUNNER_CACHE_DIR", "cache")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNNER_STATE_CACHE_MB", raising=False)
    if text is not None:
        monkeypatch.setenv("RUNNER_STATE_CACHE_MB", text)
    cache = default_state_cache()
    assert (cache.folder, cache.limit) == (tmp_path / "cache" / "states", limit)


@pytest.mark.parametrize("text", ["-1", "2 GB", "1.5", "off", "²"])
def test_a_wrong_limit_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("RUNNER_STATE_CACHE_MB", text)
    with pytest.raises(ConfigError, match="RUNNER_STATE_CACHE_MB") as caught:
        default_state_cache()
    assert text in str(caught.value)
