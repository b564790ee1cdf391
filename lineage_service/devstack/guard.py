"""One process at a time starts or stops a stack: a lock on `stack.lock` in its home, which the kernel lets
go of when its holder ends, however it ends. Also the home folder itself: made when missing, and its errors
said in one line.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lineage_service.devstack.errors import BusyError, HomeError

#: A command that is just ending is worth this wait; one that downloads is not.
_WAIT_S = 1.0


@contextmanager
def usable(home: Path) -> Iterator[None]:
    """Inside, an OSError (no permission, disk full, a file where a folder should be) becomes a HomeError."""
    try:
        yield
    except OSError as error:
        where = error.filename or home
        raise HomeError(
            f"cannot use {home} as home of the local stack: {where}: {error.strerror or error}; "
            "make it writable, or give another folder with --home or LINEAGE_HOME"
        ) from error


@contextmanager
def alone(home: Path, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Makes `home` and holds its lock inside the block.

    Raises BusyError, naming the holder's process id, when another process keeps the lock for more than
    `wait_s` seconds; HomeError when the folder cannot be written.
    """
    with usable(home):
        home.mkdir(parents=True, exist_ok=True)
        # Not inherited by the servers (PEP 446), so the lock ends with this process, not with theirs.
        lock = os.open(home / "stack.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + wait_s
        while not _take(lock):
            if time.monotonic() >= deadline:
                holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
                raise BusyError(
                    f"another command is starting or stopping the stack in {home} (process {holder}): "
                    "wait until it has ended"
                )
            time.sleep(0.05)
        with usable(home):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
