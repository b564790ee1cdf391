"""The units of one task that are looked at alone: what some of them gave, and which ones gave so much.

Reads only the rows that may speak of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from lineage_service.tracing.columns.column_cache import NO_RUN, Integers
from lineage_service.tracing.columns.flow_files import FlowFiles
from lineage_service.tracing.columns.interval_join import count_outputs, input_counts
from lineage_service.tracing.debugging.unit_tallies import Stream, UnitRequest

__all__ = ["fan_in_of", "fan_out_of", "input_with", "output_with"]


def fan_out_of(flows: FlowFiles, stream: Stream, inputs: Integers) -> Integers:
    """How many outputs each of ascending inputs of the task gave."""
    counts = np.zeros(len(inputs), np.int64)
    if len(inputs):
        for rows in flows.near(*stream, inputs=(int(inputs[0]), int(inputs[-1]))):
            for writer in (NO_RUN, stream[1]):
                counts += count_outputs(rows, inputs, writer)
    return counts


def fan_in_of(flows: FlowFiles, stream: Stream, outputs: Integers) -> Integers:
    """How many inputs each of ascending outputs of the task was made of."""
    if not len(outputs):
        return np.zeros(0, np.int64)
    return input_counts(flows.near(*stream, outputs=(int(outputs[0]), int(outputs[-1]))), outputs)


def input_with(
    flows: FlowFiles, stream: Stream, request: UnitRequest, value: int, check: Callable[[], None]
) -> int | None:
    """The first input that gave so many outputs."""
    if request.is_spanning and value:
        return _spanning_input(flows, stream, value, check)
    counts = np.zeros(request.inputs, np.int64)
    for columns in _all_rows(flows, stream, ("in_pos", "in_run", "out_count"), check):
        writers, positions = columns["in_run"], columns["in_pos"]
        own = ((writers == NO_RUN) | (writers == stream[1])) & (positions < request.inputs)
        np.add.at(counts, positions[own], columns["out_count"][own])
    return _first(np.flatnonzero(counts == value))


def output_with(flows: FlowFiles, stream: Stream, value: int, check: Callable[[], None]) -> int | None:
    """The first output that was made of so many inputs."""
    named = [columns["out_pos"] for columns in _all_rows(flows, stream, ("out_pos",), check)]
    if not named:
        return None
    outputs, counts = np.unique(np.concatenate(named), return_counts=True)
    return _first(outputs[counts == value])


def _spanning_input(flows: FlowFiles, stream: Stream, value: int, check: Callable[[], None]) -> int | None:
    """Looks only at row groups that can hold it."""
    for rows in flows.slices(*stream):
        check()
        least, largest = rows.group.bounds("out_count") or (value, value)
        if least <= value <= largest:
            columns = rows.group.all_rows(("out_count", "in_pos"))
            hit = columns["out_count"][rows.start : rows.stop] == value
            if hit.any():
                return int(columns["in_pos"][rows.start : rows.stop][hit.argmax()])
    return None


def _all_rows(
    flows: FlowFiles, stream: Stream, names: Collection[str], check: Callable[[], None]
) -> Iterator[dict[str, Integers]]:
    for rows in flows.slices(*stream):
        check()
        columns = rows.group.all_rows(names)
        yield {name: column[rows.start : rows.stop] for name, column in columns.items()}


def _first(positions: Integers) -> int | None:
    return int(positions[0]) if len(positions) else None
