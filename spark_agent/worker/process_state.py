"""What a Python worker holds for the time of its process. The only module state of the worker's code.

Spark reuses a Python worker for many tasks, one after the other, and PySpark calls serializers with nothing
but records and a stream. So the task run at hand is found here, as a task is found by `TaskContext.get()`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spark_agent.worker.pace import Pace
    from spark_agent.worker.task_run import TaskRun


@dataclass
class WorkerProcess:
    """A worker runs one chain at a time."""

    #: The task run at hand; None between tasks, and where nothing is captured.
    run: TaskRun | None = None
    #: (application, node) whose texts nearly all differ: a later task need not try to say them by code.
    distinct_texts: set[tuple[str, int]] = field(default_factory=set)
    #: What looks which record that run is at; None until a task wants it.
    pace: Pace | None = None
    #: The id of the process that `worker_init` has initialised.
    initialised: int = 0


worker_process: Final = WorkerProcess()
