"""How many outputs each input of a task gave, and how many inputs each output was made of, from the flows.

All rows of the wanted streams are read once, row group by row group, a few at a time. Rows of a stream stand
nearly in the order of their outputs, so units are counted by place in arrays: to group as many rows by their
values takes several times as long. A stream is let go of as soon as its last row was read.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lineage_service.tracing.columns.column_cache import NO_RUN, Integers
from lineage_service.tracing.columns.flow_files import FlowFiles
from lineage_service.tracing.columns.row_groups import RowGroup
from lineage_service.tracing.debugging.tallies import NOTHING, Tally

__all__ = ["Stream", "StreamTallies", "UnitRequest", "UnitTally", "unit_tallies"]

Stream = tuple[int, int]
"""(node, run)."""

_AT_ONCE = min(4, os.cpu_count() or 1)
#: Row groups that are read before their results are taken: each of these may take some 300 KB.
_WINDOW = 16 * _AT_ONCE
#: Positions are counted in an array where their range is at most so many times as large as they are many.
_DENSE = 8
_LEAST_DENSE = 1 << 16


@dataclass(frozen=True, slots=True)
class UnitRequest:
    """What is to be counted of a stream. `inputs` are all that the node had in the run."""

    inputs: int
    has_fan_out: bool = False
    has_fan_in: bool = False
    is_spanning: bool = False  # each row is an input, and says how many outputs it gave

    @property
    def columns(self) -> frozenset[str]:
        names: list[str] = []
        if self.has_fan_out:
            names += ["out_count"] if self.is_spanning else ["in_pos", "in_run"]
        return frozenset((*names, "out_pos") if self.has_fan_in else names)


class UnitTally(NamedTuple):
    """The values of the units of a task, and where one with the least and one with the largest value is.

    None where that was not seen on the way.
    """

    tally: Tally
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class StreamTallies:
    """None of what was not wanted, or has no units."""

    fan_out: UnitTally | None = None  # outputs per input, 0 of inputs that gave none
    fan_in: UnitTally | None = None  # inputs per output


class _Counted(NamedTuple):
    """How often positions occur: those from `first` on, or `positions`."""

    counts: Integers
    first: int = 0
    positions: Integers | None = None

    @property
    def end(self) -> int:
        if self.positions is not None:
            return int(self.positions[-1]) + 1
        return self.first + len(self.counts)


class _Part(NamedTuple):
    """What the rows of one stream in one row group say."""

    rows: int
    spans: Tally | None
    inputs: _Counted | None
    outputs: _Counted | None


@dataclass(slots=True)
class _Parts:
    """What was read of a stream."""

    missing_rows: int
    spans: list[Tally] = field(default_factory=list)
    span_rows: int = 0
    inputs: list[_Counted] = field(default_factory=list)
    outputs: list[_Counted] = field(default_factory=list)

    def add(self, part: _Part) -> None:
        self.missing_rows -= part.rows
        if part.spans is not None:
            self.spans.append(part.spans)
            self.span_rows += part.rows
        if part.inputs is not None:
            self.inputs.append(part.inputs)
        if part.outputs is not None:
            self.outputs.append(part.outputs)

    def tallies(self, request: UnitRequest) -> StreamTallies:
        fan_out = fan_in = None
        if request.has_fan_out and request.inputs:
            units = UnitTally(Tally.together(self.spans)) if request.is_spanning else _tally(self.inputs)
            fan_out = _with_zeros(units, request.inputs, self.inputs)
        if request.has_fan_in and self.outputs:
            fan_in = _tally(self.outputs)
        return StreamTallies(fan_out, fan_in)


def unit_tallies(
    flows: FlowFiles, requests: Mapping[Stream, UnitRequest], check: Callable[[], None]
) -> dict[Stream, StreamTallies]:
    """Of these streams. `check` is called now and then, and ends it by what it raises.

    Raises StoreUnavailableError.
    """
    reads, parts = _reads(flows, requests)
    tallies = {stream: _Parts(0).tallies(requests[stream]) for stream in requests if stream not in parts}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tallies") as pool:
        for first in range(0, len(reads), _WINDOW):
            check()
            for read in pool.map(lambda one: one.parts(requests), reads[first : first + _WINDOW]):
                for stream, part in read:
                    of_stream = parts[stream]
                    of_stream.add(part)
                    if not of_stream.missing_rows:
                        tallies[stream] = parts.pop(stream).tallies(requests[stream])
    return tallies


@dataclass(slots=True)
class _Read:
    """A row group, and where wanted streams stand in it."""

    group: RowGroup
    streams: list[tuple[Stream, int, int]]

    def parts(self, requests: Mapping[Stream, UnitRequest]) -> list[tuple[Stream, _Part]]:
        names = frozenset().union(*(requests[stream].columns for stream, _, _ in self.streams))
        columns = self.group.all_rows(names)
        return [
            (stream, _part(columns, start, stop, stream, requests[stream]))
            for stream, start, stop in self.streams
        ]


def _reads(
    flows: FlowFiles, requests: Mapping[Stream, UnitRequest]
) -> tuple[list[_Read], dict[Stream, _Parts]]:
    """What is to be read, stream by stream, and how many rows of each stream that are."""
    reads: dict[int, _Read] = {}
    rows: dict[Stream, int] = defaultdict(int)
    for stream in sorted(requests):
        if requests[stream].columns:
            for piece in flows.slices(*stream):
                read = reads.setdefault(id(piece.group), _Read(piece.group, []))
                read.streams.append((stream, piece.start, piece.stop))
                rows[stream] += piece.rows
    return list(reads.values()), {stream: _Parts(count) for stream, count in rows.items()}


def _part(
    columns: Mapping[str, Integers], start: int, stop: int, stream: Stream, request: UnitRequest
) -> _Part:
    spans = inputs = outputs = None
    if request.has_fan_out and request.is_spanning:
        spans = Tally.of(columns["out_count"][start:stop])
    elif request.has_fan_out:
        writers, positions = columns["in_run"][start:stop], columns["in_pos"][start:stop]
        own = (writers == NO_RUN) | (writers == stream[1])
        inputs = _counted(positions if bool(own.all()) else positions[own])
    if request.has_fan_in:
        outputs = _counted(columns["out_pos"][start:stop])
    return _Part(stop - start, spans, inputs, outputs)


def _counted(positions: Integers) -> _Counted | None:
    if not len(positions):
        return None
    first, last = int(positions.min()), int(positions.max())
    if last - first < max(_DENSE * len(positions), _LEAST_DENSE):
        return _Counted(np.bincount(positions - first).astype(np.int32), first)
    distinct, counts = np.unique(positions, return_counts=True)
    return _Counted(counts.astype(np.int32), positions=distinct)


def _tally(parts: Sequence[_Counted]) -> UnitTally:
    """How often each position that occurs does so in all parts."""
    counts = _dense(parts)
    if counts is None:
        return _sparse_tally(parts)
    present = np.flatnonzero(counts)
    if not len(present):
        return UnitTally(NOTHING)
    occurring = counts[present]
    low, high = int(present[occurring.argmin()]), int(present[occurring.argmax()])
    return UnitTally(Tally.of(occurring), low, high)


def _with_zeros(units: UnitTally, inputs: int, parts: Sequence[_Counted]) -> UnitTally:
    """With the inputs that do not occur. Of an input that was stopped early, more may occur than it says."""
    tally = units.tally.with_zeros(inputs - units.tally.size)
    if tally.size == units.tally.size:
        return units
    counts = _dense(parts) if parts else None
    low = None
    if counts is not None:
        absent = np.flatnonzero(counts[:inputs] == 0)
        low = int(absent[0]) if len(absent) else len(counts)
    return UnitTally(tally, low, units.high)


def _dense(parts: Sequence[_Counted]) -> Integers | None:
    """How often each position from 0 on occurs; None where that would take much more memory than they do."""
    end, size = max((part.end for part in parts), default=0), sum(len(part.counts) for part in parts)
    if end > max(_DENSE * size, _LEAST_DENSE):
        return None
    counts = np.zeros(end, np.int64)
    for part in parts:
        if part.positions is None:
            counts[part.first : part.end] += part.counts
        else:
            counts[part.positions] += part.counts
    return counts


def _sparse_tally(parts: Sequence[_Counted]) -> UnitTally:
    distinct, places = np.unique(np.concatenate(list(_positions(parts))), return_inverse=True)
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    occurring, distinct = counts[counts > 0], distinct[counts > 0]
    low, high = int(distinct[occurring.argmin()]), int(distinct[occurring.argmax()])
    return UnitTally(Tally.of(occurring), low, high)


def _positions(parts: Sequence[_Counted]) -> Iterator[Integers]:
    for part in parts:
        yield np.arange(part.first, part.end) if part.positions is None else part.positions
