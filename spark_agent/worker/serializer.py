"""Ends a task run once its records are written: steps 3 to 5 of the protocol of `task_run`."""

from __future__ import annotations

import contextlib
from typing import Any

from spark_agent.delivery.producer import DeliveryError
from spark_agent.delivery.tracebacks import hide_agent
from spark_agent.worker.failed_runs import Fields, failure_of
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.task_run import TaskRun


class CapturingSerializer:
    """Writes what the chain gives, then ends the run (steps 3 to 5 of the protocol of `task_run`)."""

    def __init__(self, inner: Any, manifests: Any) -> None:
        self.inner = inner
        self.manifests = manifests  # a PySpark accumulator of lists of JSON manifests

    def dump_stream(self, records: Any, stream: Any) -> None:
        run = worker_process.run
        failure: Fields | None = None
        try:
            try:
                self.inner.dump_stream(records, stream)
            except BaseException as error:
                failure = failure_of(run, error)
                hide_agent(error)
                if run is not None and failure is None and isinstance(error, OSError):
                    # The JVM hung up: its task stopped early, with records that have not found room in a
                    # cache. A manifest says that they were computed again, so no reader counts as one of the
                    # cache.
                    with contextlib.suppress(Exception):
                        run.close()
                raise
            finally:
                # PySpark closes a chain's generator here; ours hides it behind a counter.
                if run is not None and hasattr(run.result, "close"):
                    run.result.close()
            if run is not None:
                self._end(run)
        except BaseException as error:
            if run is not None:
                _report(run, failure or failure_of(run, error, is_closing=True))
            raise
        finally:
            worker_process.run = None
            if run is not None:
                run.release()

    def _end(self, run: TaskRun) -> None:
        dropped, problem = run.close()
        if dropped and run.plan.settings.on_error == "fail":
            raise DeliveryError(
                f"lineage of partition {run.partition} is incomplete, and spark.lineage.onError=fail: "
                f"{dropped} of {run.blocks} blocks are lost; {problem}"
            )
        self.manifests.add([run.manifest(dropped, problem)])


def _report(run: TaskRun, failure: Fields | None) -> None:
    if failure is not None:
        with contextlib.suppress(Exception):  # an agent bug: the task fails as without lineage
            run.fail(failure)
