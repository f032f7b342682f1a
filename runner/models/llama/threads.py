"""How many threads decoding may use: what this process is allowed, never what the host has."""

from __future__ import annotations

import os
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """Cores this process may really use, at least 1.

    The least of: physical cores in the affinity mask (two hyper-threads of a core count once),
    and the CPU quota of the control group and all its parents, rounded down.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are found.
    """
    cores = _physical_cores(os.sched_getaffinity(0), root)
    quota = _cgroup_quota(root)
    if quota is not None:
        cores = min(cores, int(quota))
    return max(1, cores)


def _physical_cores(cpus: set[int], root: Path) -> int:
    cores = set()
    for cpu in cpus:
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        package, core = _read(topology / "physical_package_id"), _read(topology / "core_id")
        cores.add((package, core) if package and core else cpu)
    return len(cores)


def _cgroup_quota(root: Path) -> float | None:
    """Smallest quota in CPUs on the way from this process's group to the root, or None."""
    quotas = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base = root / "sys/fs/cgroup"
        elif "cpu" in controllers.split(","):
            base = root / "sys/fs/cgroup/cpu"
        else:
            continue
        folder = base / group.lstrip("/")
        # Inside a container the group's own path may not exist below the mount.
        folders = [folder, *folder.parents] if folder.is_dir() else [base]
        for place in folders:
            quotas.append(_quota_of(place))
            if place == base:
                break
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_of(folder: Path) -> float | None:
    words = _read(folder / "cpu.max").split()  # version 2: "QUOTA PERIOD" or "max PERIOD"
    if not words:
        words = [_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")]
    if len(words) != 2 or not words[0].isdigit() or not words[1].isdigit() or words[1] == "0":
        return None
    return int(words[0]) / int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
