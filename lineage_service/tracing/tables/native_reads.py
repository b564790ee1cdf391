"""Readings that nothing can interrupt, such as those of a library in native code, within a query's time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import BoundedSemaphore, Thread
from typing import TypeVar

from lineage_service.tracing.files.decompression import Check

__all__ = ["awaited"]

T = TypeVar("T")
#: How often a query that waits looks at its time.
_LOOK_S = 0.05
#: Readings at the same time, with those that nobody waits for any more.
_places = BoundedSemaphore(32)


def awaited(read: Callable[[], T], check: Check) -> T:
    """What `read` returns or raises, or what `check` raises before. Then it is left to end by itself."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(read())
        except BaseException as error:  # noqa: BLE001 - it is raised by who waits
            result.set_exception(error)
        finally:
            _places.release()

    while not _places.acquire(timeout=_LOOK_S):
        check()
    Thread(target=run, name="reading", daemon=True).start()
    while not wait([result], _LOOK_S).done:
        check()
    return result.result()
