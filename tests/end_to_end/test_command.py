"""The command line with real models, as a user runs it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_models import settings_of

from runner.record import read_events

LONG = "Write a very long story. " * 60
TASK = "What is 123 multiplied by 456, and what time is it now?"


def runner(*arguments, prefix=(), **options):
    return subprocess.run(
        [*prefix, sys.executable, "-m", "runner", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


def workers():
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    )
    return [line for line in listed.stdout.splitlines() if "runner.models.llama.worker" in line]


def start(task, *arguments):
    """A run in the background, and the pid of its worker once a turn is being written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "run", task, "--seed", "1", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.startswith("-- turn 1"):
            break
    (worker,) = workers_of(process)
    time.sleep(0.3)
    return process, worker


def workers_of(process):
    rows = [line.split() for line in workers()]
    return {int(pid) for pid, parent, *_ in rows if parent == str(process.pid)}


def events():
    (path,) = Path(os.environ["RUNNER_RECORDS"]).glob("*/*.jsonl")
    return list(read_events(path))


def last_event():
    return events()[-1]


def test_the_default_model_multiplies_and_tells_the_time():
    settings_of("qwen2.5-coder-0.5b")
    done = runner("run", TASK, "--seed", "1", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert "56088" in data["answer"]
    results = {call["name"]: call["result"] for call in data["calls"]}
    assert results["calculator"] == "56088"
    assert "get_time" in results


def test_the_default_model_works_in_the_dialect_hermes(tmp_path):
    settings = settings_of("qwen2.5-coder-0.5b")
    config = tmp_path / "models.toml"
    config.write_text(f'[models.m]\npath = "{settings.path}"\ncontext = 8192\ndialect = "hermes"\n')
    task = "Calculate 2 to the power of 20."
    done = runner("run", task, "--model", "m", "--config", str(config), "--seed", "1", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [(call["name"], call["result"]) for call in data["calls"]] == [("calculator", "1048576")]
    assert "1048576" in data["answer"].replace(",", "")
    ready = list(read_events(Path(data["transcript"])))[1]
    # The model's own template presents the tools, so the prompt does not.
    assert (ready["settings"]["dialect"], ready["template_tools"]) == ("hermes", True)
    opening = "".join(message["content"] for message in ready["opening"])
    assert "<tools>" not in opening
    assert "ACTION" not in opening


@pytest.mark.parametrize("name", ["smollm2-135m", "gemma3-270m-base"])
def test_weaker_models_end_with_a_valid_status_and_valid_calls(name):
    settings_of(name)
    done = runner("run", TASK, "--model", name, "--seed", "1", "--json")
    assert "Traceback" not in done.stderr
    data = json.loads(done.stdout)
    assert data["status"] in ("answered", "gave_up", "limit")
    assert done.returncode == (0 if data["status"] == "answered" else 1)
    assert all(turn["receipts"] == [] for turn in data["turns"] if turn["calls"])
    known = {"calculator", "get_time", "list_files", "read_file", "search_files"}
    assert {call["name"] for call in data["calls"]} <= known


def test_the_default_model_lists_files_and_counts_lines(tmp_path):
    settings_of("qwen2.5-coder-0.5b")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("buy milk\ncall Ana\nfix the bike\nread\nsleep\nwake\nrun\n")
    (folder / "data.csv").write_text("a,b\n1,2\n")
    (folder / "readme.md").write_text("# Hello\n")
    task = "List the files in this folder and tell me how many lines notes.txt has"
    done = runner("run", task, "--toolset", "files", "--seed", "1", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert {"list_files", "read_file"} <= {call["name"] for call in data["calls"]}
    assert "7" in data["answer"] or "seven" in data["answer"]


def test_a_killed_worker_is_replaced_and_the_screen_and_the_transcript_say_so():
    settings_of("smollm2-135m")
    process, worker = start(LONG, "--model", "smollm2-135m", "--tools", "")
    os.kill(worker, signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode in (0, 1)
    assert stderr.count("restarted") == 1
    assert "SIGKILL" in stderr
    (reply, *_) = [event for event in events() if event["event"] == "model.reply"]
    assert "SIGKILL" in reply["notices"][0]


def test_a_worker_that_is_killed_twice_is_a_typed_error_with_exit_code_3():
    settings_of("smollm2-135m")
    process, worker = start(LONG, "--model", "smollm2-135m", "--tools", "")
    os.kill(worker, signal.SIGKILL)
    while not (second := workers_of(process) - {worker}):
        assert process.poll() is None
    os.kill(second.pop(), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "SIGKILL" in stderr
    assert "Traceback" not in stderr
    event = last_event()
    assert (event["event"], event["status"]) == ("run.end", "failed")
    assert event["reason"].count("SIGKILL") == 2


def test_ctrl_c_closes_the_transcript_and_leaves_no_process():
    settings_of("smollm2-135m")
    process, worker = start(LONG, "--model", "smollm2-135m", "--tools", "")
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert time.monotonic() - started < 10
    assert not any(line.split()[0] == str(worker) for line in workers())
    assert last_event()["status"] == "interrupted"


def test_a_task_longer_than_the_window_is_one_paragraph_with_both_numbers(tmp_path):
    settings = settings_of("smollm2-135m")
    config = tmp_path / "models.toml"
    config.write_text(f'[models.m]\npath = "{settings.path}"\ncontext = 512\n')
    done = runner("run", "word " * 600, "--model", "m", "--config", str(config))
    assert done.returncode == 2
    assert "512" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_truncated_model_is_refused_with_both_sizes(tmp_path):
    settings = settings_of("smollm2-135m")
    half = tmp_path / "half.gguf"
    with settings.path.open("rb") as source, half.open("wb") as target:
        target.write(source.read(settings.path.stat().st_size // 2))
    (tmp_path / "models.toml").write_text('[models.half]\npath = "half.gguf"\n')
    done = runner("run", "x", "--model", "half", "--config", str(tmp_path / "models.toml"))
    assert done.returncode == 3
    assert "cut short" in done.stderr
    assert f"{settings.path.stat().st_size:,}" in done.stderr
    assert "Traceback" not in done.stderr


def test_damage_that_only_the_engine_sees_is_its_own_words(tmp_path):
    settings = settings_of("smollm2-135m")
    strange = tmp_path / "strange.gguf"
    shutil.copy(settings.path, strange)
    data = strange.read_bytes().replace(
        b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama",
        b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0ghost",
        1,
    )
    strange.write_bytes(data)
    (tmp_path / "models.toml").write_text('[models.s]\npath = "strange.gguf"\n')
    done = runner("run", "x", "--model", "s", "--config", str(tmp_path / "models.toml"))
    assert done.returncode == 3
    assert "ghost" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_needs_no_network():
    settings_of("smollm2-135m")
    prefix = ("unshare", "--net", "--map-root-user")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us make a network namespace")
    done = runner("run", "Hello", "--model", "smollm2-135m", "--tools", "", "--json", prefix=prefix)
    assert json.loads(done.stdout)["status"] in ("answered", "gave_up", "limit")


def test_doctor_finds_the_engine_well():
    settings_of("smollm2-135m")
    done = runner("doctor", "--model", "smollm2-135m", "--json")
    assert done.returncode == 0, done.stdout
    findings = {f["check"]: f["found"] for f in json.loads(done.stdout)["findings"]}
    assert "grammar holds" in findings["self-test smollm2-135m"]
