"""What a Python worker does once, when the first captured chain reaches it.

PySpark's daemon collects all garbage after each task, and looks at every object of the process for that: some
20 ms a task, more with each module that is loaded, and the agent brings its own. So what is there before the
first chain (modules, mostly) is put aside for good (`gc.freeze`), and tasks of a reused worker no longer pay
for it. Promises to come before anything of the chain itself is made: what is a job's own is collected as
usual. Garbage in cycles that something made earlier in this process stays until its end.
"""

from __future__ import annotations

import gc
import os
from typing import TypeVar

from spark_agent.delivery import kafka_client
from spark_agent.worker.process_state import worker_process

Command = TypeVar("Command")


def new_command(kind: type[Command], is_sending: bool) -> Command:
    """An empty `kind`, for unpickling. Initialises the worker before.

    `is_sending` loads the Kafka client too, which the chain will want anyway.
    """
    if worker_process.initialised != os.getpid() and _is_worker():
        worker_process.initialised = os.getpid()
        if is_sending:
            kafka_client.load_alone()
        gc.collect()
        gc.freeze()
    return kind.__new__(kind)


def _is_worker() -> bool:
    from pyspark import TaskContext

    return TaskContext.get() is not None
