"""What is said of a dataset in lists. Pure.

Applications of one name are one job; its runs are told apart by their ids and times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lineage_service.datasets.catalogue import Entry, Placed
from lineage_service.datasets.uses import ApplicationDetails, UseDetails
from lineage_service.lineage import DatasetSummary, DatasetUseState, DatasetWrite
from lineage_service.outcomes import Outcome
from spark_agent import contract

__all__ = ["FAILED", "DetailsOf", "application_state", "jobs_of", "remark_of", "state_of", "summary_of"]

#: States of a write that left nothing, or not all.
FAILED = frozenset(("failed", "aborted", "lost"))

DetailsOf = Callable[[str], ApplicationDetails]
"""What task runs say of an application."""


def summary_of(entry: Entry, details_of: DetailsOf, now_ms: float) -> DatasetSummary:
    """`now_ms` is Unix time: an application is lost because nothing came of it."""
    states = [state_of(write, now_ms) for write in entry.writes]
    return DatasetSummary(
        namespace=entry.place.namespace,
        name=entry.place.name,
        path=entry.path,
        format=entry.format,
        aliases=entry.aliases,
        schema=next((used.use.schema for used in entry.uses if used.use.schema), ()),
        partitions=next((used.use.partitions for used in entry.uses if used.use.partitions), ()),
        written=_written(entry.writes[-1], details_of, now_ms) if entry.writes else None,
        read_at=max((read.use.at for read in entry.reads), default=None),
        writers=len(jobs_of(entry.writes)),
        readers=len(jobs_of(entry.reads)),
        runs=len(entry.writes),
        failed_runs=sum(state in FAILED for state in states),
        remark=remark_of(entry),
    )


def _written(write: Placed, details_of: DetailsOf, now_ms: float) -> DatasetWrite:
    application_id = write.application.application_id
    details = details_of(application_id)
    return DatasetWrite(
        application_id=application_id,
        name=write.application.name,
        node_id=contract.node_id(application_id, write.use.node),
        at=write.use.at,
        rows=details.uses.get(write.use.node, UseDetails()).rows,
        state=state_of(write, now_ms),
        complete=details.complete,
    )


def state_of(used: Placed, now_ms: float) -> DatasetUseState:
    """How a write ended. Of a read, and where an agent did not report it, how the application did."""
    if used.use.outcome is not None:
        return used.use.outcome.state
    return application_state(used.application.outcome, now_ms)


def application_state(outcome: Outcome, now_ms: float) -> DatasetUseState:
    state = outcome.at(now_ms).state
    return "complete" if state == "ended" else state


def jobs_of(uses: Iterable[Placed]) -> set[str]:
    return {used.application.name for used in uses}


def remark_of(entry: Entry) -> str:
    """About the latest query that was not followed."""
    for used in entry.uses:
        if not used.use.is_followed:
            verb = "written" if used.use.is_write else "read"
            why = f": {used.use.reason}" if used.use.reason else ""
            return f"{verb} by a query of {used.application.name!r} that was not followed{why}"
    return ""
