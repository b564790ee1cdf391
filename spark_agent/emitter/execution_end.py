"""The end of an execution, as messages: its operations, what counts of their records, and how it ended.

Promises that no record counts of a program that failed. Only where it said which records it failed on, what
these were made of can be traced.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spark_agent import contract
from spark_agent.emitter.operations import Operation
from spark_agent.emitter.program_errors import end_of
from spark_agent.emitter.publisher import MAX_FAILURES, Publisher


def publish_end(
    publisher: Publisher, operations: Collection[Operation], error: BaseException | None, failures: int
) -> int:
    """How many messages were not delivered. `error` has ended the program, which said so many failures."""
    runs = [run for operation in operations for run in operation.runs.values()]
    for run in runs:
        run.ship()
    dropped = {run.number: publisher.flush(run) for run in runs}
    linked = {parent for operation in operations for parent in operation.parents}
    for operation in operations:
        publisher.publish(operation, is_read=operation.number in linked)
    committed = runs if error is None else []
    for run in committed:
        publisher.commit(run, dropped[run.number])
    for run in runs if error is not None and failures else []:
        publisher.keep(run, dropped[run.number])
    if failures > MAX_FAILURES:
        reason = f"failures of the program beyond the first {MAX_FAILURES}: {failures - MAX_FAILURES}"
        publisher.emit(contract.GAP, reason=reason, node=None)
    counters = {
        "runs": len(committed),
        "blocks": sum(run.blocks for run in committed),
        "dropped": sum(dropped[run.number] for run in committed),
    }
    publisher.emit(contract.APPLICATION_ENDED, counters=counters, **_state(error))
    return sum(dropped.values()) + publisher.flush_events()


def _state(error: BaseException | None) -> dict[str, Any]:
    if error is None:
        return {"state": contract.SUCCEEDED}
    return {"state": contract.FAILED, "error": end_of(error)}
