"""The rows of `flows` of one application, read by row group: only those that a step needs.

A stream, all rows of one (node, run), stands in each file nearly in the order (out_pos, in_pos): Delta's
writer may put a batch before another. So the smallest and largest values that Parquet keeps of each row group
say which ones can hold a position, and what is read falls into few parts that are in order. Row groups become
NumPy arrays, the last ones cached within a bound. Files of a Delta table never change.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np

from lineage_service.tracing.columns.column_cache import NO_RUN, ColumnCache, Integers
from lineage_service.tracing.columns.flow_slices import Slice
from lineage_service.tracing.columns.row_groups import RowGroup
from lineage_service.tracing.columns.stored_files import IdleFiles, StoredFile

__all__ = ["FlowFiles"]

_AT_ONCE = min(4, os.cpu_count() or 1)
#: The bounds of so many slices are looked at together.
_MANY = 3


class FlowFiles:
    """All rows of `flows` of one application, by stream. Threads may share it."""

    def __init__(
        self, files: Sequence[str], cache: ColumnCache | None = None, idle: IdleFiles | None = None
    ) -> None:
        """`files` are Parquet files on this machine. Raises StoreUnavailableError."""
        cache, idle = cache or ColumnCache(), idle or IdleFiles()
        self._lock = Lock()
        self._whole: dict[tuple[int, int], list[RowGroup]] = defaultdict(list)
        self._mixed: list[RowGroup] = []
        for path in files:
            file = StoredFile(path, idle)
            for number in range(file.metadata.num_row_groups):
                group = RowGroup(file, number, cache)
                node, run = group.stream
                if node is not None and run is not None:
                    self._whole[node, run].append(group)
                elif group.rows:
                    self._mixed.append(group)
        self._slices: dict[tuple[int, int], tuple[Slice, ...]] | None = None
        self._runs: dict[int, list[int]] = defaultdict(list)
        self._outputs: dict[tuple[int, int], int] = {}
        self._bounds: dict[tuple[int, int], tuple[Integers, Integers]] = {}

    def slices(self, node: int, run: int) -> tuple[Slice, ...]:
        """All rows of a stream, in no order."""
        return self._all().get((node, run), ())

    def near(
        self,
        node: int,
        run: int,
        outputs: tuple[int, int] | None = None,
        inputs: tuple[int, int] | None = None,
    ) -> list[Slice]:
        """Those rows of a stream that may lead from or to something between such bounds. Reads nothing."""
        slices = self.slices(node, run)
        if outputs is None or len(slices) < _MANY:
            return [rows for rows in slices if rows.may_lead(outputs, inputs)]
        first, last = self._output_bounds(node, run, slices)
        may_hold = ((first <= outputs[1]) & (last >= outputs[0])).nonzero()[0].tolist()
        return [slices[at] for at in may_hold if inputs is None or slices[at].may_lead(None, inputs)]

    def _output_bounds(self, node: int, run: int, slices: Sequence[Slice]) -> tuple[Integers, Integers]:
        """(first, last) outputs that the rows of each slice may name, side by side."""
        bounds = self._bounds.get((node, run))
        if bounds is None:
            first, last = np.array([rows.group.outputs_at_most() for rows in slices], np.int64).T
            bounds = self._bounds[node, run] = first, last
        return bounds

    def runs(self, node: int) -> Sequence[int]:
        """The runs that have rows of `node`."""
        self._all()
        return self._runs.get(node, ())

    def writers(self, nodes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """(run that read, run that wrote) of the flows of these nodes."""
        for node in nodes:
            for run in self.runs(node):
                for rows in self.slices(node, run):
                    yield from ((run, writer) for writer in rows.writers if writer > NO_RUN)

    def outputs(self, node: int, run: int) -> int:
        """How many outputs the rows of a stream speak of: the last position, and one."""
        with self._lock:
            outputs = self._outputs.get((node, run))
        if outputs is None:
            slices = self.slices(node, run)
            of_whole = [rows.group.bounds("out_pos") for rows in slices if rows.is_whole]
            at_least = max((bounds[1] for bounds in of_whole if bounds is not None), default=0)
            outputs = max(
                (
                    int((rows.column("out_pos") + rows.column("out_count")).max())
                    for rows in slices
                    if rows.outputs[1] >= at_least
                ),
                default=0,
            )
            with self._lock:
                self._outputs[node, run] = outputs
        return outputs

    def _all(self) -> dict[tuple[int, int], tuple[Slice, ...]]:
        """Row groups that several streams share are looked into once, the first time."""
        with self._lock:
            if self._slices is None:
                slices: dict[tuple[int, int], list[Slice]] = defaultdict(list)
                for key, groups in self._whole.items():
                    slices[key] = [Slice(group, 0, group.rows) for group in groups]
                with ThreadPoolExecutor(_AT_ONCE) as pool:
                    streams = pool.map(RowGroup.streams, self._mixed)
                    for group, inside in zip(self._mixed, streams, strict=True):
                        for key, start, stop in inside:
                            slices[key].append(Slice(group, start, stop))
                for node, run in slices:
                    self._runs[node].append(run)
                self._slices = {key: tuple(of_stream) for key, of_stream in slices.items()}
            return self._slices
