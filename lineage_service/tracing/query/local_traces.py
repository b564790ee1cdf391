"""Traces that this machine walks: a new one, from the records that it begins at."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.walk_cache import LocalTrace

__all__ = ["LocalTraces"]


class LocalTraces:
    """Makes them."""

    def __init__(
        self,
        open_application: Callable[[str], Opened],
        files: FilesOfApplications,
        locations: RecordLocations,
    ) -> None:
        self._open, self._files, self._locations = open_application, files, locations

    def new(
        self, opened: Opened, query: TraceQuery, to: int | None, starts: Iterable[Position]
    ) -> LocalTrace:
        """One that has not walked yet."""
        walk = TraceWalk(opened.snapshot, query.direction, depth=query.depth, to=to)
        for (node, run), offsets in _offsets(starts).items():
            walk.start(node, run, offsets)
        return CrossApplicationTrace(
            opened,
            walk,
            query.direction,
            open_application=self._open,
            new_walk=lambda snapshot: TraceWalk(snapshot, query.direction),
            files=self._files if query.crosses_applications else None,
            rows_before=self._locations.rows_before,
        )


def _offsets(starts: Iterable[Position]) -> dict[tuple[int, int], Integers]:
    """(node, run) -> the offsets there, ascending."""
    offsets: dict[tuple[int, int], list[int]] = {}
    for start in starts:
        offsets.setdefault((start.node, start.run), []).append(start.offset)
    return {place: np.unique(np.array(at, np.int64)) for place, at in offsets.items()}
