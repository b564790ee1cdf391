"""Rows of one stream of flows that stand side by side in a row group: which rows lead from and to positions.

Says what it can by the bounds of the row group, and reads columns only where these do not suffice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import Integers, RunLengths, places
from lineage_service.tracing.columns.row_groups import LAST, RowGroup

__all__ = ["Slice"]


@dataclass(frozen=True)
class Slice:
    """Rows of one stream that stand side by side in one row group."""

    group: RowGroup
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    @property
    def is_whole(self) -> bool:
        """Nothing else is in the row group."""
        return self.rows == self.group.rows

    def column(self, name: str) -> Integers:
        """out_pos, out_count, in_pos, in_step, or in_run with NO_RUN for null."""
        return self.group.column(name, self.start, self.stop)

    def fetch(self, names: Collection[str]) -> None:
        """Read those columns that are not at hand, all at once. What is looked at then need not be read."""
        self.group.fetch(names)

    def constant(self, name: str) -> int | None:
        """The value that the column has in every row, if any. Reads it where others share the row group."""
        if self.is_whole:
            return self.group.constant(name)
        if name not in self._constants:
            values = self.column(name)
            self._constants[name] = int(values[0]) if bool(np.all(values == values[0])) else None
        return self._constants[name]

    @cached_property
    def _constants(self) -> dict[str, int | None]:
        return {}

    def _bounds(self, name: str) -> tuple[int, int]:
        bounds = self.group.bounds(name) if self.is_whole else None
        if bounds is not None:
            return bounds
        values = self.column(name)
        return int(values.min()), int(values.max())

    @cached_property
    def outputs(self) -> tuple[int, int]:
        """Bounds of the outputs that its rows name. Reads them where others share the row group."""
        first, last = self._bounds("out_pos")
        return first, min(last + self._bounds("out_count")[1] - 1, LAST)

    def at(self, name: str, rows: slice | npt.NDArray[Any]) -> Integers:
        """The values of a column in some rows."""
        column = self.group.cached(name)
        if isinstance(column, np.ndarray):
            return column[self.start : self.stop][rows]
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.rows)
            return self.group.column(name, self.start + start, self.start + max(start, stop))
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        if isinstance(column, range):
            return (rows + (column.start + self.start)).astype(np.int32)
        return column.values[column.starts.searchsorted(rows + np.int32(self.start), "right") - 1]

    def rows_with(self, outputs: Integers) -> tuple[Integers, Integers]:
        """(first row, number of rows) that begin with each of ascending outputs, of a part in order."""
        column = self.group.cached("out_pos")
        if not isinstance(column, RunLengths):
            return _rows_of_keys(column, self.start, self.stop, outputs)
        first, last = self._in_run_lengths
        values, starts = column.values[first:last], column.starts[first : last + 1]
        if not self.is_whole:
            starts = starts - np.int32(self.start)
            starts[0], starts[-1] = 0, self.rows
        left = starts[values.searchsorted(outputs, "left")]
        return left, starts[values.searchsorted(outputs, "right")] - left

    def rows_from(self, inputs: Integers) -> tuple[Integers, Integers]:
        """(first row, number of rows) that name each of ascending inputs first, where `inputs_ascend`."""
        column = self.group.cached("in_pos")
        if isinstance(column, RunLengths):  # one run, of a column that is constant
            return _rows_of_keys(self.column("in_pos"), 0, self.rows, inputs)
        return _rows_of_keys(column, self.start, self.stop, inputs)

    @cached_property
    def _in_run_lengths(self) -> tuple[int, int]:
        """From which run of `out_pos` to before which one its rows stand, where these are cached as runs."""
        column = self.group.cached("out_pos")
        assert isinstance(column, RunLengths)
        first = int(column.starts.searchsorted(self.start, "right")) - 1
        return first, int(column.starts.searchsorted(self.stop, "left"))

    def may_lead(self, outputs: tuple[int, int] | None, inputs: tuple[int, int] | None) -> bool:
        """May a row name something between these bounds, both ends included? Reads nothing."""
        if outputs is not None:
            first, last = self.group.outputs_at_most()
            if first > outputs[1] or last < outputs[0]:
                return False
        if inputs is not None and (own := self.group.bounds("in_pos")) is not None:
            return own[0] <= inputs[1] and (own[1] >= inputs[0] or self._goes_on)
        return True

    @property
    def _goes_on(self) -> bool:
        """A row may name inputs beyond the one that it begins with."""
        return self.group.constant("in_step") != 0 and self.group.constant("out_count") != 1

    def is_at_hand(self, names: Collection[str]) -> bool:
        """These columns need not be read."""
        return not self.group.missing(names)

    @cached_property
    def parts(self) -> tuple[Slice, ...]:
        """The same rows in parts in each of which `out_pos` does not fall. Reads them."""
        column = self.group.cached("out_pos")
        if isinstance(column, RunLengths):
            first, last = self._in_run_lengths
            values = column.values[first:last]
            falls: Integers = column.starts[first + 1 : last][values[1:] < values[:-1]] - self.start
        else:
            outputs = self.column("out_pos")
            falls = np.flatnonzero(outputs[1:] < outputs[:-1]) + 1
        if not len(falls):
            return (self,)
        bounds = [0, *falls.tolist(), self.rows]
        return tuple(
            Slice(self.group, self.start + start, self.start + stop) for start, stop in pairwise(bounds)
        )

    def rows_of(self, writer: int) -> slice | Integers | None:
        """The rows that name `writer` in `in_run`; None where there are none."""
        constant = self.constant("in_run")
        if constant is not None:
            return slice(0, self.rows) if constant == writer else None
        return self._by_writer.get(writer)

    @cached_property
    def _by_writer(self) -> dict[int, Integers]:
        writers = self.column("in_run")
        order = np.argsort(writers, kind="stable")
        ordered = writers[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        parts = np.split(order.astype(np.int32), starts[1:])
        return dict(zip(ordered[starts].tolist(), parts, strict=True))

    @property
    def writers(self) -> tuple[int, ...]:
        """The runs that `in_run` names, NO_RUN among them for null."""
        constant = self.constant("in_run")
        return (constant,) if constant is not None else tuple(np.unique(self.column("in_run")).tolist())

    @cached_property
    def inputs_ascend(self) -> bool:
        """No row names an earlier input than the one before it. Reads them."""
        if isinstance(self.group.cached("in_pos"), range):
            return True
        inputs = self.column("in_pos")
        return bool(np.all(inputs[1:] >= inputs[:-1]))

    @cached_property
    def inputs(self) -> tuple[int, int]:
        """(smallest, largest) `in_pos`. Reads them where others share the row group."""
        return self._bounds("in_pos")


def _rows_of_keys(
    column: Integers | range, start: int, stop: int, keys: Integers
) -> tuple[Integers, Integers]:
    """(first row, number of rows) of ascending values among those from row `start` to before `stop`."""
    if isinstance(column, range):
        row = keys - (column.start + start)
        is_there = (row >= 0) & (row < stop - start)
        return np.where(is_there, row, 0), is_there.astype(np.int64)
    values = column[start:stop]
    left = places(values, keys, "left")
    return left, places(values, keys, "right") - left
