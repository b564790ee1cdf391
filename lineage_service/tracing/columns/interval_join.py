"""How rows of `flows` lead from positions to positions: arrays in, arrays out, one slice at a time.

A row (out_pos, out_count, in_pos, in_step) says that its output out_pos + j came from input in_pos +
j * in_step. Positions are given ascending. Pure but for the columns that a slice reads when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import NO_RUN, Integers, places
from lineage_service.tracing.columns.flow_slices import Slice

__all__ = [
    "INPUTS",
    "OF_OUTPUTS",
    "OF_SPANS",
    "count_outputs",
    "distinct",
    "input_counts",
    "inputs_of_outputs",
    "inputs_of_ranges",
    "inputs_of_spans",
    "is_ascending",
    "joined",
    "outputs_of_inputs",
    "outputs_of_ranges",
    "within",
]

#: Rows are chosen by their outputs where there are more of them than that for each output.
_MANY = 16
#: So many values that are the same are not written out.
_MUCH = 1 << 13
#: A flag for each number between is less work than sorting where there are at most so many for each value.
_DENSE = 32
#: Values that fall no more often are sorted at once.
_FEW_FALLS = 8
#: What is looked at of most rows that an input is looked for in, of rows with one output, and of spans.
INPUTS = ("in_pos", "in_run")
OF_OUTPUTS = (*INPUTS, "out_pos")
OF_SPANS = (*OF_OUTPUTS, "out_count", "in_step")
_BOUNDING = ("out_pos", "out_count")
#: Of so few positions most row groups that may hold one hold none. So it is looked first whether one does.
_FEW = 16


def is_ascending(values: Integers) -> bool:
    """Each value is larger than the one before it."""
    return len(values) < 2 or bool(np.all(values[1:] > values[:-1]))


def distinct(values: Integers) -> Integers:
    """The values in ascending order, each once. NumPy's own hashes them, which takes five times as long."""
    rises = values[1:] > values[:-1]
    if bool(rises.all()):
        return values
    falls = int(np.count_nonzero(values[1:] < values[:-1]))
    if falls <= _FEW_FALLS:  # of row groups: what is almost in order is merged
        ordered = np.sort(values, kind="stable") if falls else values
        return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    low = int(values.min())
    extent = int(values.max()) - low + 1
    if extent <= _DENSE * len(values):
        is_there = np.zeros(extent, bool)
        is_there[values - low] = True
        return (np.flatnonzero(is_there) + low).astype(values.dtype, copy=False)
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def joined(starts: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """(index, value) of every value in the ranges [starts[index], starts[index] + counts[index])."""
    if len(counts) == 1:
        start, count = int(starts[0]), int(counts[0])
        return np.zeros(count, np.int64), np.arange(start, start + count, dtype=np.int64)
    index = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return index, np.arange(len(index)) - before[index] + starts[index]


def within(values: Integers, low: int, high: int) -> slice:
    """Where the ascending `values` are from `low` to `high`, both included."""
    return slice(int(values.searchsorted(low, "left")), int(values.searchsorted(high, "right")))


def inputs_of_outputs(
    slices: Iterable[Slice], positions: Integers
) -> Iterator[tuple[int, Integers | None, Integers]]:
    """(in_run, indices of `positions`, inputs) of rows with one output each, however many name the same."""
    for part, chosen in _parts(slices, positions, OF_OUTPUTS):
        left, counts = part.rows_with(positions[chosen])
        if not counts.any():
            continue
        part.fetch(OF_OUTPUTS)
        if len(left) == 1:  # one group, of any size: no copy
            first, count = int(left[0]), int(counts[0])
            rows: slice | Integers = slice(first, first + count)
            index: Integers = (
                np.full(count, chosen.start)
                if count < _MUCH
                else np.broadcast_to(np.int64(chosen.start), count)
            )
        else:
            index, rows = joined(left, counts)
            index += chosen.start
        if len(index):
            yield from _by_writer(part, rows, index, part.at("in_pos", rows))


def input_counts(slices: Iterable[Slice], positions: Integers) -> Integers:
    """How many inputs each of distinct, ascending positions has in rows with one output each."""
    counts = np.zeros(len(positions), np.int64)
    for part, chosen in _parts(slices, positions, ("out_pos",)):
        counts[chosen] += part.rows_with(positions[chosen])[1]
    return counts


def inputs_of_spans(
    slices: Iterable[Slice], positions: Integers, *, with_indices: bool = False
) -> Iterator[tuple[int, Integers | None, Integers]]:
    """As `inputs_of_outputs`, of rows whose outputs do not overlap.

    Without `with_indices`, the indices are None where many outputs have one input each: then each input is
    named once.
    """
    for part, chosen in _parts(slices, positions, OF_SPANS):
        outputs, counts = part.column("out_pos"), part.column("out_count")
        wanted_outputs = positions[chosen]
        is_plain = part.constant("in_step") == 0 and part.constant("in_run") == NO_RUN
        if is_plain and not with_indices and len(wanted_outputs) > len(outputs):
            wanted_outputs = wanted_outputs[
                within(wanted_outputs, int(outputs[0]), int(outputs[-1] + counts[-1]) - 1)
            ]
            yield NO_RUN, None, part.at("in_pos", _are_hit(outputs, counts, wanted_outputs))
            continue
        at = places(outputs, wanted_outputs, "right") - 1
        into = wanted_outputs - outputs[at]
        inside = (into < counts[at]).nonzero()[0]
        if not len(inside):
            continue
        part.fetch(OF_SPANS)
        if len(inside) < len(at):
            at, into = at[inside], into[inside]
        inputs = part.at("in_pos", at)
        if part.constant("in_step") != 0:
            inputs = inputs + into * part.at("in_step", at)
        yield from _by_writer(part, at, inside + chosen.start, inputs)


def inputs_of_ranges(
    slices: Iterable[Slice], positions: Integers, check_few: Callable[[int], None], *, with_indices: bool
) -> Iterator[tuple[int, Integers | None, Integers]]:
    """As `inputs_of_spans`, of rows of one input each whose outputs may overlap.

    Rows are looked at one by one, so that it matters little how many outputs a row has. `check_few` hears how
    many inputs will be given, before they take memory.
    """
    for part in slices:
        part.fetch(OF_SPANS)
        outputs = part.column("out_pos")
        left = positions.searchsorted(outputs, "left")
        counts = positions.searchsorted(outputs + part.column("out_count"), "left") - left
        hit = counts.nonzero()[0]
        if not len(hit):
            continue
        inputs = part.at("in_pos", hit)
        if with_indices:
            check_few(int(counts.sum()))
            row, index = joined(left[hit], counts[hit])
            yield NO_RUN, index, inputs[row]
        else:
            yield NO_RUN, None, inputs


def outputs_of_ranges(
    part: Slice,
    positions: Integers,
    among: Integers | None,
    check_few: Callable[[int], None],
    *,
    with_indices: bool,
) -> tuple[Integers, Integers]:
    """As `outputs_of_inputs`, of such rows. With `among`, only outputs that are among them are given.

    Without `with_indices`, each output is given once, and the indices say nothing.
    """
    inputs = part.column("in_pos")
    left = positions.searchsorted(inputs, "left")
    repeats = positions.searchsorted(inputs, "right") - left
    hit = repeats.nonzero()[0]
    if not len(hit):
        return _NOTHING
    part.fetch(OF_SPANS)
    starts = part.at("out_pos", hit).astype(np.int64)
    ends = starts + part.at("out_count", hit)
    if among is not None:  # as places in it, from here on
        starts, ends = among.searchsorted(starts, "left"), among.searchsorted(ends, "left")
    if with_indices:
        row, index = joined(left[hit], repeats[hit])
        check_few(int((ends - starts)[row].sum()))
        again, outputs = joined(starts[row], (ends - starts)[row])
        index = index[again]
    else:
        outputs = _union(starts, ends)
        index = np.zeros(len(outputs), np.int64)
    return index, outputs if among is None else among[outputs]


def _union(starts: Integers, ends: Integers) -> Integers:
    """What is in any of the ranges, ascending."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    starts[1:] = np.maximum(starts[1:], ends[:-1])
    return joined(starts, np.maximum(ends - starts, 0))[1]


def _are_hit(outputs: Integers, counts: Integers, chosen: Integers) -> npt.NDArray[np.bool_]:
    """Which rows name any of the wanted outputs. For many of these (the words of most lines)."""
    ends = outputs + counts
    if not bool(np.all(ends[:-1] == outputs[1:])):
        return np.searchsorted(chosen, outputs, "left") < np.searchsorted(chosen, ends, "left")
    flags = np.zeros(int(ends[-1] - outputs[0]), bool)
    flags[chosen - outputs[0]] = True
    hit: npt.NDArray[np.bool_] = np.logical_or.reduceat(flags, outputs - outputs[0])
    return hit


def _parts(
    slices: Iterable[Slice], positions: Integers, columns: Collection[str]
) -> Iterator[tuple[Slice, slice]]:
    """The parts in order of those slices that may hold some of the positions, and which.

    `columns` will be looked at of these. Of few positions, only what tells which rows hold them is read here.
    """
    smallest, largest = int(positions[0]), int(positions[-1])
    for rows in slices:
        if not rows.is_whole:  # to know its bounds; most of several such rows hold none of the positions
            rows.fetch([name for name in columns if name in _BOUNDING])
        first, last = rows.outputs
        if first <= largest and smallest <= last:  # most do not
            chosen = within(positions, first, last)
            if chosen.start < chosen.stop:
                is_few = chosen.stop - chosen.start <= _FEW
                rows.fetch([name for name in columns if name in _BOUNDING] if is_few else columns)
                parts = rows.parts
                for part in parts:
                    if len(parts) > 1:
                        chosen = within(positions, *part.outputs)
                    if chosen.start < chosen.stop:
                        yield part, chosen


def _by_writer(
    part: Slice, rows: slice | Integers, index: Integers, inputs: Integers
) -> Iterator[tuple[int, Integers | None, Integers]]:
    """The rows apart by the run whose outputs they name; NO_RUN is the run's own input."""
    constant = part.constant("in_run")
    if constant is not None:
        yield constant, index, inputs
        return
    writers = part.at("in_run", rows)
    for writer in np.unique(writers).tolist():
        chosen = writers == writer
        yield writer, index[chosen], inputs[chosen]


def outputs_of_inputs(
    part: Slice, positions: Integers, writer: int, among: Integers | None = None
) -> tuple[Integers, Integers]:
    """(indices of `positions`, outputs) of a slice's rows that name inputs of `writer`, or NO_RUN.

    `positions` are ascending, and may repeat. With `among`, ascending too, outputs that are not among them
    may be left out.
    """
    if among is not None:
        first, last = part.outputs
        if last < among[0] or among[-1] < first:
            return _NOTHING
    smallest, largest = part.inputs
    if positions[-1] < smallest:
        return _NOTHING
    near = within(positions, smallest, largest)
    # A row may name inputs beyond the one that it begins with.
    reaches = part.constant("in_step") != 0 and part.constant("out_count") != 1
    if near.start == near.stop and not reaches:
        return _NOTHING
    if reaches:  # such rows stand in the order of their inputs: some will be found
        part.fetch(OF_SPANS)
    rows = part.rows_of(writer)
    if rows is not None and among is not None:
        rows = _near(part, rows, among)
    if rows is None:
        return _NOTHING
    if not reaches and near.stop - near.start < len(positions):  # most are of other slices
        index, outputs = _outputs_near(part, rows, positions[near], reaches=False)
        return index + near.start, outputs
    return _outputs_near(part, rows, positions, reaches=reaches)


def count_outputs(part: Slice, positions: Integers, writer: int) -> Integers:
    """How many outputs each of distinct inputs of `writer`, or NO_RUN, has by a slice's rows."""
    named = part.constant("in_run")
    if named is not None and named != writer:
        return np.zeros(len(positions), np.int64)
    if part.constant("in_step") == 0 and named == writer:
        part.fetch(("in_pos", "out_count"))
        if part.inputs_ascend:
            near = within(positions, *part.inputs)
            index, rows = joined(*part.rows_from(positions[near]))
            outputs = np.bincount(index + near.start, part.at("out_count", rows), len(positions))
            return outputs.astype(np.int64)
    return np.bincount(outputs_of_inputs(part, positions, writer)[0], minlength=len(positions))


def _outputs_near(
    part: Slice, rows: slice | Integers, positions: Integers, *, reaches: bool
) -> tuple[Integers, Integers]:
    """As `outputs_of_inputs`, of these rows. `reaches`: a row may name inputs beyond its first one."""
    if isinstance(rows, slice) and not reaches and part.inputs_ascend:
        matches = joined(*part.rows_from(distinct(positions)))[1]
        inputs = part.at("in_pos", matches)
    else:
        inputs = part.at("in_pos", rows)
        can_match = inputs <= positions[-1]
        if not reaches:
            can_match &= inputs >= positions[0]
        matches = np.flatnonzero(can_match)
        inputs = inputs[matches]
        matches = matches if isinstance(rows, slice) else rows[matches]
    if not len(matches):
        return _NOTHING
    # Each row names inputs side by side, or one: where these stand among the positions.
    left = positions.searchsorted(inputs, "left")
    if part.constant("in_step") == 0:
        row, index = joined(left, positions.searchsorted(inputs, "right") - left)
        outputs = part.at("out_pos", matches[row]).astype(np.int64)
        if part.constant("out_count") == 1:
            return index, outputs
        again, outputs = joined(outputs, part.at("out_count", matches[row]))
        return index[again], outputs
    counts, steps = part.at("out_count", matches), part.at("in_step", matches)
    right = positions.searchsorted(inputs + np.where(steps == 1, counts - 1, 0), "right")
    row, index = joined(left, right - left)
    is_stepping = steps[row] == 1
    outputs = part.at("out_pos", matches[row]) + np.where(is_stepping, positions[index] - inputs[row], 0)
    repeats = np.where(is_stepping, 1, counts[row])
    if bool(np.all(repeats == 1)):
        return index, outputs
    again, outputs = joined(outputs, repeats)
    return index[again], outputs


_NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)


def _near(whole: Slice, rows: slice | Integers, among: Integers) -> slice | Integers | None:
    """Those of all rows whose one output is wanted, where that is less to look at; None for none."""
    if whole.constant("out_count") != 1 or not isinstance(rows, slice) or len(among) * _MANY > whole.rows:
        return rows
    chosen = within(among, *whole.outputs)
    if chosen.start == chosen.stop:
        return None
    near = []
    for part in whole.parts:
        in_part = among[within(among, *part.outputs)]
        if not len(in_part):
            continue
        left, counts = part.rows_with(in_part)
        near.append(joined(left, counts)[1] + (part.start - whole.start))
    matches = np.concatenate(near) if near else _NOTHING[0]
    return matches if len(matches) else None
