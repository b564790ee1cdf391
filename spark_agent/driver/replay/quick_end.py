"""Lets SparkContexts of a process that runs a program many times end without waiting for their own servers.

PySpark waits until its server of accumulators has noticed that it is to end, which takes up to a second. All
jobs are over by then, so it would receive nothing more. The server ends by itself, beside the program.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

__all__ = ["install"]

#: As PySpark 4 and PySpark 3.5 name the classes of these servers.
_SERVERS = ("AccumulatorTCPServer", "AccumulatorUnixServer", "AccumulatorServer")


def install() -> None:
    """For the whole program. Does nothing the second time."""
    from pyspark import accumulators

    for name in _SERVERS:
        server_class = getattr(accumulators, name, None)
        if server_class is not None and not hasattr(server_class.shutdown, "_lineage_beside"):
            server_class.shutdown = _beside(server_class.shutdown)


def _beside(original: Any) -> Any:
    @functools.wraps(original)
    def shutdown(self: Any) -> None:
        threading.Thread(target=original, args=(self,), name="lineage-ends", daemon=True).start()

    shutdown._lineage_beside = True  # type: ignore[attr-defined]
    return shutdown
