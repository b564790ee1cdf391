"""Actions that call functions of the user's for what these do, not for what they give.

In a replay `foreach` and `foreachPartition` read their records and call nothing, unless the spec says
`run_foreach`; then the guards of the workers hold. Of `runJob` the program gets what its function gives, so
it cannot be left out and is refused. A folder for checkpoints is one of the sandbox.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from typing import Any

from spark_agent.driver.monkeypatch import rdd_module
from spark_agent.worker.guard.begin import Guard
from spark_agent.worker.guard.places import frames, is_of_spark, place_of_user

__all__ = ["install"]


def install(guard: Guard) -> None:
    """Replace them for the whole program."""
    from pyspark import SparkContext

    rdd_class = rdd_module().RDD
    if hasattr(SparkContext, "_lineage_side_effects"):
        return
    SparkContext._lineage_side_effects = True
    SparkContext.setCheckpointDir = _in_sandbox(SparkContext.setCheckpointDir, guard)
    if guard.spec.get("run_foreach"):
        return
    rdd_class.foreach = _draining(rdd_class.foreach, _nothing, guard)
    rdd_class.foreachPartition = _draining(rdd_class.foreachPartition, _read, guard)
    SparkContext.runJob = _refusing(SparkContext.runJob, guard)


def _nothing(_record: object) -> None:
    """In place of a function of one record."""


def _read(records: Iterable[object]) -> None:
    """In place of a function of a partition."""
    for _ in records:
        pass


def _draining(original: Any, instead: Any, guard: Guard) -> Any:
    @functools.wraps(original)
    def action(self: Any, f: Any) -> Any:
        guard.refusals.remark(
            f"{original.__name__} at {place_of_user()} called no function of the job's (--run-foreach does)"
        )
        return original(self, instead)

    return action


def _refusing(original: Any, guard: Guard) -> Any:
    @functools.wraps(original)
    def runJob(self: Any, *args: Any, **kwargs: Any) -> Any:
        caller = next(frames(sys._getframe(1)))
        if not is_of_spark(caller.f_code.co_filename):
            advice = "its function may change what no fence sees: run the replay with --run-foreach"
            guard.refusals.refuse("call a function on partitions (runJob)", advice=advice)
        return original(self, *args, **kwargs)

    return runJob


def _in_sandbox(original: Any, guard: Guard) -> Any:
    @functools.wraps(original)
    def setCheckpointDir(self: Any, dirName: str) -> None:
        original(self, os.path.join(guard.sandbox, "checkpoint"))

    return setCheckpointDir
