"""The speed benchmark measures a real model; how fast it is here is no test."""

import json
import subprocess
import sys

from real_models import settings_of


def test_the_benchmark_measures_what_it_says():
    settings_of("smollm2-135m")
    command = [sys.executable, "-m", "runner", "bench", "speed", "--model", "smollm2-135m"]
    parts = ["--part", "answers", "--part", "same", "--tasks", "2", "--part", "memory"]
    done = subprocess.run(
        [*command, *parts, "--json"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {ratio["part"] for ratio in document["ratios"]} == {"answers", "same", "memory"}
    figures = document["figures"]
    assert all(rate > 0 for rate in figures["answers"]["tokens_per_second"].values())
    assert figures["same"]["tasks"] == 2
    assert figures["same"]["rounding"] > 0
    memory = figures["memory"]
    assert memory["kv_cache_mb"] > 0
    assert memory["compute_mb"] > 0
    assert memory["resident_mb"] > memory["file_mb"]


def test_an_unknown_part_is_an_error_that_names_the_known_ones():
    command = [sys.executable, "-m", "runner", "bench", "speed", "--part", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "calls, copies" in done.stderr
