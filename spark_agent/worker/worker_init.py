"""What a Python worker does once when the first captured chain reaches it.

PySpark's daemon collects all garbage after each task, and looks at every object of the process for that: some
20 ms a task, more with each module that is loaded, and the agent brings its own. So what is there when the
first chain arrives (modules, mostly) is put aside for good (`gc.freeze`), and tasks of a reused worker no
longer pay for it. Promises to come before anything of the chain itself is made: what is a job's own
is collected as ever. Garbage in cycles that something made earlier in this process stays until its end.
"""

from __future__ import annotations

import gc
import os
from typing import TypeVar

from spark_agent.delivery import kafka_client

Command = TypeVar("Command")

_arrived_in = 0  # the process


def arrive(kind: type[Command], is_sending: bool) -> Command:
    """An empty `kind`, for unpickling; before it, in a worker, what is to be done there once.

    `is_sending` loads the Kafka client too, which the chain will want anyway.
    """
    global _arrived_in
    if _arrived_in != os.getpid() and _is_worker():
        _arrived_in = os.getpid()
        if is_sending:
            kafka_client.load_alone()
        gc.collect()
        gc.freeze()
    return kind.__new__(kind)


def _is_worker() -> bool:
    from pyspark import TaskContext

    return TaskContext.get() is not None
