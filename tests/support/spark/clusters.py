"""Executors that are processes of their own, and how they are made to die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext

#: A worker that has just started on a busy machine may need more than the default to meet the broker.
WAIT_BUDGET_S = "30"


def once(folder: Path, name: str) -> bool:
    """True for the first who asks, in whichever process."""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def kill_executor() -> None:
    """SIGKILL for the JVM above this worker: worker, daemon, executor."""
    process = os.getpid()
    while "CoarseGrainedExecutorBackend" not in Path(f"/proc/{process}/cmdline").read_text():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        assert process > 1, "no executor above this worker"
    os.kill(process, signal.SIGKILL)
    signal.pause()


CLUSTER = {
    "master": "local-cluster[2,1,1024]",
    "spark_lineage_delivery_timeout": WAIT_BUDGET_S,
    "spark_cores_max": "2",
    "spark_scheduler_minRegisteredResourcesRatio": "1",
    "spark_sql_shuffle_partitions": "3",
    "spark_sql_adaptive_coalescePartitions_enabled": "false",
}


def dies_at(deadly: Any, folder: Path) -> Callable[[Any], Any]:
    def maybe(value: Any) -> Any:
        if value == deadly and once(folder, "killed"):
            kill_executor()
        return value

    return maybe


def fails_at(bad: Any) -> Callable[[Any], Any]:
    def maybe(value: Any) -> Any:
        if value == bad and TaskContext.get().attemptNumber() == 0:
            raise ValueError(f"the first attempt at {bad}")
        return value

    return maybe
