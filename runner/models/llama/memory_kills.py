"""Counts what the kernel has killed for want of memory."""

from __future__ import annotations

from pathlib import Path


def memory_kills(root: Path = Path("/")) -> int:
    """Processes killed so far in this process's control group, or on the machine.

    The group's own count says it for certain; where it cannot be read, the machine's is taken.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are found.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base, name = root / "sys/fs/cgroup", "memory.events"
        elif "memory" in controllers.split(","):
            base, name = root / "sys/fs/cgroup/memory", "memory.oom_control"
        else:
            continue
        # Inside a container the group's own path may not exist below the mount.
        for folder in (base / group.lstrip("/"), base):
            count = _count(folder / name)
            if count is not None:
                return count
    return _count(root / "proc/vmstat") or 0


def _count(path: Path) -> int | None:
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key == "oom_kill":
            return int(value)
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
