import pytest
from make_gguf import write_small

from runner.core.errors import ModelFileError
from runner.models.llama.gguf import check_complete, read_header


@pytest.fixture
def small(tmp_path):
    return write_small(tmp_path / "small.gguf")


def test_the_head_of_a_file_is_read(small):
    header = read_header(small)
    assert header.architecture == "llama"
    assert header.context_train == 2048
    assert header.chat_template == "{{ messages }}"
    assert header.metadata["tokenizer.ggml.tokens"] == 500
    assert header.tensors == 2
    assert header.data_end == header.size
    check_complete(small, header)


def test_a_file_that_ends_before_its_last_tensor_is_cut_short(small):
    whole = small.read_bytes()
    small.write_bytes(whole[:-4])
    header = read_header(small)
    with pytest.raises(ModelFileError, match="cut short") as caught:
        check_complete(small, header)
    assert f"{len(whole):,}" in str(caught.value)
    assert f"{len(whole) - 4:,}" in str(caught.value)


def test_every_cut_inside_the_head_is_an_error_and_never_a_crash(small):
    whole = small.read_bytes()
    for length in range(len(whole) - 384):
        small.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            check_complete(small, read_header(small))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"just some notes\n", "text file"),
        (b"PK\x03\x04rest", "zip"),
        (b"ggjt\x03\0\0\0", "older"),
        (b"FUGG\0\0\0\3", "reverse"),
        (b"\x00\x01\x02\x03\x04", "bytes 00 01 02 03"),
        (b"GGUF" + b"\xff" * 40, "header"),
    ],
)
def test_what_is_no_gguf_is_named(tmp_path, content, words):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        read_header(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="found nothing"):
        read_header(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError, match="found a folder"):
        read_header(tmp_path)


def test_parts_of_a_split_model_must_all_be_there(small):
    first = small.with_name("m-00001-of-00002.gguf")
    small.rename(first)
    with pytest.raises(ModelFileError, match="part 2 is missing"):
        read_header(first)
    second = write_small(first.with_name("m-00002-of-00002.gguf"))
    read_header(first)
    with pytest.raises(ModelFileError, match="is part 2"):
        read_header(second)
