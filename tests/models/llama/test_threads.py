import os

import pytest

from runner.models.llama.threads import usable_cores


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A pretended machine: 8 CPUs on 4 cores, and a way to write its control groups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    for cpu in range(8):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text("0\n")
        (topology / "core_id").write_text(f"{cpu % 4}\n")

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return tmp_path, write


def test_two_threads_of_a_core_count_once(machine):
    assert usable_cores(machine[0]) == 4


def test_only_the_affinity_mask_counts(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 2, 5})
    assert usable_cores(machine[0]) == 2


@pytest.mark.parametrize(
    ("quota", "cores"), [("250000 100000", 2), ("50000 100000", 1), ("max 100000", 4)]
)
def test_the_quota_of_the_control_group_counts_rounded_down(machine, quota, cores):
    root, write = machine
    write("proc/self/cgroup", "0::/app\n")
    write("sys/fs/cgroup/app/cpu.max", quota)
    assert usable_cores(root) == cores


def test_the_quota_of_a_parent_counts_too(machine):
    root, write = machine
    write("proc/self/cgroup", "0::/slice/app\n")
    write("sys/fs/cgroup/slice/app/cpu.max", "max 100000")
    write("sys/fs/cgroup/slice/cpu.max", "300000 100000")
    assert usable_cores(root) == 3


def test_a_container_sees_its_own_quota_at_the_mount(machine):
    root, write = machine
    write("proc/self/cgroup", "0::/not/visible/here\n")
    write("sys/fs/cgroup/cpu.max", "100000 100000")
    assert usable_cores(root) == 1


def test_version_one_of_control_groups_counts(machine):
    root, write = machine
    write("proc/self/cgroup", "4:cpu,cpuacct:/app\n3:memory:/app\n")
    write("sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "200000")
    write("sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000")
    assert usable_cores(root) == 2
    write("sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "-1")
    assert usable_cores(root) == 4


def test_this_machine_has_at_least_one_core_and_no_more_than_it_may_use():
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
