import json
import os
import stat
from pathlib import Path

import pytest

from runner.core.errors import ConfigError
from runner.record import Transcript, find_transcript, list_transcripts, read_events


def write(folder, *kinds):
    with Transcript.create(folder) as transcript:
        for kind in kinds:
            transcript.record(kind, {"text": "größe\n\u2028", "n": 2**70})
    return transcript.path


def test_events_come_back_as_they_were_recorded(tmp_path):
    path = write(tmp_path, "run.start", "run.end")
    events = list(read_events(path))
    assert [(e["seq"], e["event"], e["text"], e["n"]) for e in events] == [
        (1, "run.start", "größe\n\u2028", 2**70),
        (2, "run.end", "größe\n\u2028", 2**70),
    ]


def test_an_event_is_on_disk_when_record_returns(tmp_path):
    transcript = Transcript.create(tmp_path)
    transcript.record("run.start", {})
    assert len(list(read_events(transcript.path))) == 1
    transcript.close()


def test_one_event_is_one_line_of_json(tmp_path):
    lines = write(tmp_path, "a", "b").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["a", "b"]


def test_only_the_owner_can_read_it(tmp_path):
    assert stat.S_IMODE(write(tmp_path, "a").stat().st_mode) == 0o600


def test_a_torn_last_line_is_left_out(tmp_path):
    path = write(tmp_path, "a", "b")
    path.write_bytes(path.read_bytes()[:-5])
    assert [event["event"] for event in read_events(path)] == ["a"]


def test_damage_before_the_last_line_is_reported_with_its_line(tmp_path):
    path = write(tmp_path, "a", "b", "c")
    path.write_text(path.read_text().replace('"event": "b"', '"event: "b"'))
    with pytest.raises(ConfigError, match="line 2"):
        list(read_events(path))


def test_a_closed_transcript_takes_no_more(tmp_path):
    transcript = Transcript.create(tmp_path)
    transcript.close()
    transcript.close()
    with pytest.raises(ValueError, match="closed"):
        transcript.record("a", {})


def test_text_that_has_no_encoding_is_kept_visibly(tmp_path):
    with Transcript.create(tmp_path) as transcript:
        transcript.record("a", {"text": "x\ud800"})
    assert next(iter(read_events(transcript.path)))["text"] == "x\ud800"


def test_transcripts_are_found_by_name_beginning_path_or_last(tmp_path):
    path = write(tmp_path, "a")
    assert list_transcripts(tmp_path) == [path]
    for name in (path.name, path.stem, path.stem[:-2], str(path), "last"):
        assert find_transcript(name, tmp_path) == path


def test_what_is_not_there_or_not_clear_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="no transcript"):
        find_transcript("last", tmp_path)
    write(tmp_path, "a")
    write(tmp_path, "a")
    with pytest.raises(ConfigError, match="2 transcripts"):
        find_transcript("20", tmp_path)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        Transcript.create(tmp_path / "file")


def test_a_full_disk_stops_the_run_with_a_clear_error():
    full = Transcript.__new__(Transcript)
    full.path, full._seq = Path("/dev/full"), 0
    full._file = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(ConfigError, match="No space left"):
        full.record("a", {})
    os.close(full._file)
