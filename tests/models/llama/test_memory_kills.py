"""What the kernel says about processes killed for want of memory, in trees of plain files."""

import pytest

from runner.models.llama.memory_kills import memory_kills

EVENTS = "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"


def write(root, **files):
    for name, text in {"proc/vmstat": "pgfault 1\noom_kill 7\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "file", "text", "kills"),
    [
        ("0::/a/b\n", "sys/fs/cgroup/a/b/memory.events", EVENTS, 3),
        ("0::/not/mounted/here\n", "sys/fs/cgroup/memory.events", EVENTS, 3),
        (
            "5:cpu:/x\n4:memory:/a\n0::/\n",
            "sys/fs/cgroup/memory/a/memory.oom_control",
            CONTROL,
            5,
        ),
        ("0::/a\n", "sys/fs/cgroup/b/memory.events", EVENTS, 7),
    ],
)
def test_the_count_is_that_of_the_own_group_else_of_the_machine(
    tmp_path, groups, file, text, kills
):
    assert memory_kills(write(tmp_path, **{"proc/self/cgroup": groups, file: text})) == kills


def test_without_any_count_it_is_none_at_all(tmp_path):
    assert memory_kills(tmp_path) == 0
