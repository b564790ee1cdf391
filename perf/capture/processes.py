"""CPU seconds of a tree of processes, also of those in it that have ended.

A process that ends gives its seconds to the parent that waits for it. One whose parent is already gone goes
to the nearest adopting ancestor: `adopt` makes this process that one, so that no worker's seconds are lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Collection, Iterable

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_ORPHANS_END_S = 10.0


def adopt() -> None:
    """Make orphaned descendants children of this process. Linux only; raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel does not let this process adopt orphans")


def _seconds(processes: Iterable[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # user, system, and both of children that were waited for
    return total


def tree_seconds(pid: int) -> float:
    """User and system time of the process, its descendants, and what those have waited for."""
    root = psutil.Process(pid)
    return _seconds([root, *root.children(recursive=True)])


def orphans_seconds(known: Collection[int]) -> float:
    """Seconds of the orphans that came to this process, which are all children but the `known`; buries them.

    Waits until they have ended. Raises TimeoutError.
    """
    deadline = time.monotonic() + _ORPHANS_END_S
    seconds = 0.0
    while orphans := [child for child in psutil.Process().children() if child.pid not in known]:
        for orphan in orphans:
            if orphan.status() == psutil.STATUS_ZOMBIE:
                seconds += _seconds([orphan])
                os.waitpid(orphan.pid, 0)
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"processes {[orphan.pid for orphan in orphans]} have lost their parent and go on"
            )
        time.sleep(0.02)
    return seconds
