"""The records that a trace begins at, in the runs that hold them: of one name, or of several."""

from __future__ import annotations

from dataclasses import asdict, replace

from lineage_service.errors import InvalidQueryError
from lineage_service.queries import StartQuery, TraceQuery
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.dataset_rows import MOST_STARTS
from lineage_service.tracing.query.failures import FailureReader
from lineage_service.tracing.query.open_applications import OpenApplications, Opened
from lineage_service.tracing.query.row_choices import RowChoices
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.starts import no_such_key, records_named, starts_named

__all__ = ["TraceStarts", "failures_of"]

#: What names a start, each None.
_NO_START = asdict(StartQuery())


def failures_of(query: TraceQuery) -> list[int]:
    """The numbers of the failures that a trace begins at."""
    numbers = (query.failure, *(start.failure for start in query.starts or ()))
    return [number for number in numbers if number is not None]


class TraceStarts:
    """Of one flow store."""

    def __init__(
        self,
        applications: OpenApplications,
        locations: RecordLocations,
        choices: RowChoices,
        failures: FailureReader,
    ) -> None:
        self._applications, self._locations = applications, locations
        self._choices, self._failures = choices, failures

    def opened(self, application_id: str, query: TraceQuery) -> tuple[Opened, list[Position]]:
        """The application as the walk needs it, and the records of failures.

        A failed run is only there where a trace begins in one. Raises NotFoundError, InvalidQueryError.
        """
        _check_starts(query)
        numbers = failures_of(query)
        opened = self._applications.open(application_id, has_failed=bool(numbers))
        return opened, [self._failures.start(opened, replace(query, failure=number)) for number in numbers]

    def named(
        self, opened: Opened, cursor: StoreCursor | None, query: TraceQuery, check: Check
    ) -> list[Position]:
        """The records that a query names otherwise; those of the node to name first. Raises LineageError.

        Keys are looked up on `cursor`, if one is given.
        """
        if not query.starts:
            return self._of_one(opened, cursor, query, check)
        others = [start for start in query.starts if start.failure is None]
        if len(others) < len(query.starts):  # whose record is the start is a question about what counts
            opened = self._applications.open(opened.application.application_id)
        positions: dict[Position, None] = {}
        for start in others:
            check()
            one = replace(query, starts=None, **{name: getattr(start, name) for name in _NO_START})
            positions |= dict.fromkeys(self._of_one(opened, cursor, one, check))
        return list(positions)

    def _of_one(
        self, opened: Opened, cursor: StoreCursor | None, query: TraceQuery, check: Check
    ) -> list[Position]:
        if query.where is not None:
            return self._choices.starts(opened, query, query.where, check)
        named = records_named(opened.graph, self._locations, query, check)
        if isinstance(named, TopologyNode):
            return _by_key(opened, cursor or opened.snapshot.cursor(), named, query)
        return [
            Position(start.node.number, start.partition, start.offset, run.number)
            for start in starts_named(opened.graph, named, query)
            for run in start.runs
        ]


def _check_starts(query: TraceQuery) -> None:
    """Raises InvalidQueryError."""
    if query.starts is None:
        return
    if any(getattr(query, name) is not None for name in _NO_START):
        raise InvalidQueryError("a trace of several starts has no other start beside them")
    if len(query.starts) > MOST_STARTS:
        raise InvalidQueryError(
            f"{len(query.starts):,} starts are more than a trace may have ({MOST_STARTS:,}): ask for fewer"
        )


def _by_key(opened: Opened, cursor: StoreCursor, node: TopologyNode, query: TraceQuery) -> list[Position]:
    rows = cursor.execute(
        "SELECT DISTINCT run, pos FROM records WHERE node = ? AND kind = 'key' AND text = ?",
        [node.number, query.key],
    ).fetchall()
    partitions = {run.partition for number, _ in rows if (run := opened.graph.topology.runs.get(number))}
    allowed = {
        run.number: run
        for partition in partitions
        for run in opened.graph.holders_of(node.number, partition, query.direction)
    }
    positions = [
        Position(node.number, allowed[run].partition, pos, run) for run, pos in rows if run in allowed
    ]
    if not positions:
        raise no_such_key(node, query.key)
    return sorted(positions, key=lambda position: (position.partition, position.offset))
