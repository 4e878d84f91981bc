"""Free main memory, and the refusal of what would not fit, before any work is done for it."""

import os
from pathlib import Path

_CONTAINER = Path("/sys/fs/cgroup")


def free_bytes() -> int:
    """Free bytes of main memory: of the machine, or of the container if that has less."""
    container = _free_in_container()
    return _free_on_machine() if container is None else min(_free_on_machine(), container)


def most_bytes() -> int:
    """Bytes of main memory that this process may use: of the machine, or of the container if that has less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(machine, int((_CONTAINER / "memory.max").read_text()))
    except (OSError, ValueError):  # "max" where there is no limit
        return machine


def cores() -> float:
    """CPU cores that this process may use: those it is bound to, or the share that the container has if that is
    less.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        time, period = (_CONTAINER / "cpu.max").read_text().split()
        return min(float(bound), int(time) / int(period))
    except (OSError, ValueError):  # "max" where there is no limit
        return float(bound)


def require_memory(what: str, needed: int, advice: str) -> None:
    """MemoryError if `what` needs more bytes than nine tenths of what is free."""
    free = free_bytes()
    if needed > 0.9 * free:
        raise MemoryError(f"expected {what} to fit into memory, got {needed:,} bytes where {free:,} are free; {advice}")


def _free_on_machine() -> int:
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not Linux
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _free_in_container() -> int | None:
    """What a limit on this group of processes leaves; None without a limit.

    Cached files count as used until the kernel needs their room, so those not in use are free.
    """
    try:
        most = int((_CONTAINER / "memory.max").read_text())
        used = int((_CONTAINER / "memory.current").read_text())
        counts = dict(line.split() for line in (_CONTAINER / "memory.stat").read_text().splitlines())
        return max(0, most - used + int(counts["inactive_file"]))
    except (OSError, ValueError, KeyError):  # "max" where there is no limit
        return None
