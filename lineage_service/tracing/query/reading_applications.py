"""The records that a row became in applications which read the output that it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.query.missing_starts import start_at
from lineage_service.tracing.query.unread_rows import UnreadRows
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.linked_files import FileSplit
from lineage_service.tracing.walk.local_engine import TraceWalk

__all__ = ["ReadingApplications", "RecordsOfReaders"]

Opened = OpenedApplication[Snapshot]
Trace = CrossApplicationTrace[Snapshot, Integers]
_NONE = np.zeros(0, np.int64)
#: Records of one row that are looked at in applications that read it.
_MOST = 20


@dataclass(frozen=True, slots=True)
class RecordsOfReaders:
    """`starts` are records of applications that read the row; `warnings` say what is not known.

    Not exact: an operation on the way is an upper bound, so they may be made of other rows.
    """

    starts: tuple[tuple[Opened, RowStart], ...]
    warnings: tuple[str, ...]
    is_truncated: bool
    is_exact: bool = True


class ReadingApplications:
    """Follows a row from file to file."""

    def __init__(
        self,
        open_application: Callable[[str], Opened],
        files: FilesOfApplications,
        locations: RecordLocations,
    ) -> None:
        self._open, self._files, self._locations = open_application, files, locations

    def of(self, opened: Opened, start: RowStart, check: Check) -> RecordsOfReaders:
        """All that read it, and what was made of it, from application to application."""
        if start.place is None:
            return RecordsOfReaders((), (), is_truncated=False)
        walks: list[TraceWalk] = []

        def new_walk(snapshot: Snapshot) -> TraceWalk:
            walks.append(TraceWalk(snapshot, "forward"))
            return walks[-1]

        walk = new_walk(opened.snapshot)
        for run in start.runs:
            walk.start(start.node.number, run.number, np.array([start.place[1]], np.int64))
        trace = CrossApplicationTrace(
            opened,
            walk,
            "forward",
            open_application=self._open,
            new_walk=new_walk,
            files=self._files,
            rows_before=self._locations.rows_before,
        )
        trace.advance(check)
        warnings = []
        if not trace.is_exact:
            warnings.append("which rows of its output an application has read is not known")
        if not trace.is_complete:
            warnings.append("an application may have read the output in a way that was not followed")
        starts = [*self._starts(trace), *islice(self._left_out(trace, check), _MOST + 1)]
        is_exact = trace.is_exact and all(walk.is_exact for walk in walks)
        return RecordsOfReaders(tuple(starts[:_MOST]), tuple(warnings), len(starts) > _MOST, is_exact)

    @staticmethod
    def _starts(
        trace: Trace,
    ) -> Iterator[tuple[Opened, RowStart]]:
        """The records at sources to which a link has led; a few more than are looked at."""
        reads = dict.fromkeys((read.application_id, read.node) for _, read in trace.shift_of_link)
        count = 0
        for application_id, number in reads:
            opened, walk = trace.segments[application_id]
            node = opened.graph.topology.nodes[number]
            for partition, offsets in sorted(walk.by_partition(number).items()):
                for offset in offsets[: _MOST + 1].tolist():
                    if count > _MOST:
                        return
                    count += 1
                    yield opened, start_at(opened, node, partition, offset)

    def _left_out(self, trace: Trace, check: Check) -> Iterator[tuple[Opened, RowStart]]:
        """The rows of Parquet that a scan has left out: no record of it stands for them."""
        for application_id, (opened, walk) in trace.segments.items():
            for number in walk.done_nodes():
                if opened.graph.topology.nodes[number].kind != "sink":
                    continue
                reached = walk.by_partition(number)
                for written in self._files.of(application_id, number):
                    offsets = reached.get(written.partition, _NONE)[: _MOST + 1].tolist()
                    rows = [
                        offset - written.first + (written.row or 0)
                        for offset in offsets
                        if written.has(offset)
                    ]
                    if written.format == PARQUET:
                        yield from self._unread(trace, written, rows, check)

    def _unread(
        self, trace: Trace, written: FileSplit, rows: Sequence[int], check: Check
    ) -> Iterator[tuple[Opened, RowStart]]:
        readers: dict[tuple[str, int], list[FileSplit]] = {}
        for read in self._files.readers_of(written):
            readers.setdefault((read.application_id, read.node), []).append(read)
        for (application_id, number), read_splits in readers.items():
            opened = self._open(application_id)
            node = opened.graph.topology.nodes[number]
            for row in rows:
                if node.by_id and not any(_has(trace, read, row) for read in read_splits):
                    source = UnreadRows(opened, self._locations, check).of_file(node, written.path, row)
                    if source is not None:
                        yield opened, RowStart(node, None, row=source)


def _has(trace: Trace, read: FileSplit, row: int) -> bool:
    """Is there a record of a row of a file where it was read?"""
    segment = trace.segments.get(read.application_id)
    offsets = None if segment is None else segment[1].by_partition(read.node).get(read.partition)
    return offsets is not None and row - (read.row or 0) + read.first in offsets
