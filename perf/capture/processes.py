"""CPU seconds of processes, each one's own: user and system, without its children's.

PySpark's daemon ignores the end of its workers, so the kernel hands their seconds to nobody. Whoever wants
them must read them while the workers live; `perf.capture.driver` does when a SparkContext stops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil


def seconds(processes: Iterable[psutil.Process]) -> float:
    """What those of the processes that still live have used so far."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def tree(pid: int) -> list[psutil.Process]:
    """The process and its descendants."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]
