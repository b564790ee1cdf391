"""Which outputs new rows will go into: a guess by columns whose value decided it in the last execution. Pure.

A value leads to an output if more than half of its rows went there. Columns *decide* if nearly all pairs
(row, output) are so explained, by values that several rows have: a value of one row explains nothing, or
every id would decide. Of columns that decide equally well, those with the fewest values are taken; none are
needed where all rows go to the same outputs. "In no output" counts as one more output, so a filter's column
is found as well.

A value that was never seen is a new output where each output had one value, as groups do; else its rows
cannot be routed. Nobody knows better before the job has run: these are features, and no facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lineage_service.triggering.changes.changed_elements import Flags, Keys
from lineage_service.triggering.dependence.read_rows import Codes, Integers, ReadRows
from lineage_service.triggering.dependence.relation import Relation

__all__ = ["Destinations", "Routing", "destinations", "learned"]

#: Of the pairs, that columns must explain.
DECIDES = 0.95
#: Columns that together decide, at most, and how much more than fewer columns they must explain.
_MOST_COLUMNS, _WORTH = 3, 0.01
#: A larger share of a value's rows went to an output which it leads to.
_LEADS = 0.5
#: Pairs beyond which nothing is learned, rows by which columns are chosen, and cells of a count.
_MOST_PAIRS, _CHOOSING, _MOST_CELLS = 1 << 22, 1 << 14, 1 << 19
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Routing:
    """`values` ascend; those of value k lead to `outputs[ends[k]:ends[k + 1]]`, _NOWHERE among them.

    `is_grouping`: each output had one value.
    """

    columns: tuple[str, ...]
    values: Keys
    ends: Integers
    outputs: Integers
    is_grouping: bool


@dataclass(frozen=True, slots=True)
class Destinations:
    """Pairs (`row`, `output`) of new rows; outputs from the number of those that are there on are new ones.

    `live`, `routable` (rows): whether a row will go to an output, and whether that is known. `new`: how many
    outputs are new.
    """

    row: Integers
    output: Integers
    live: Flags
    routable: Flags
    new: int


def learned(rows: ReadRows, relation: Relation) -> Routing | None:
    """None where no columns decide."""
    place = np.full(len(rows), -1, np.int64)
    at = np.flatnonzero(relation.walked[rows.sampled])
    walked = rows.sampled[at]
    place[walked] = np.arange(len(walked))
    inside = place[relation.row] >= 0
    row, output = place[relation.row[inside]], relation.output[inside]
    if not len(walked) or len(row) > _MOST_PAIRS:
        return None
    dead = np.ones(len(walked), bool)
    dead[row] = False
    row = np.concatenate([row, np.flatnonzero(dead)])
    output = np.concatenate([output, np.full(int(dead.sum()), _NOWHERE)])
    codes = rows.codes.values[at]
    chosen = _deciding(codes, row, output)
    if chosen is None:
        return None
    return _routing(rows.codes.names, chosen, _together(codes, chosen), row, output)


def destinations(routing: Routing, added: Codes, outputs: int) -> Destinations:
    """Of rows with these values, among so many outputs. Raises ValueError where a column lacks."""
    columns = [added.names.index(name) for name in routing.columns]
    values = _together(added.values, columns)
    at = np.minimum(routing.values.searchsorted(values), max(len(routing.values) - 1, 0))
    seen = routing.values[at] == values if len(routing.values) else np.zeros(len(values), bool)
    counts = (routing.ends[1:] - routing.ends[:-1])[at] * seen
    begins = np.repeat(routing.ends[:-1][at] - (np.cumsum(counts) - counts), counts)
    led = routing.outputs[begins + np.arange(len(begins))]
    row = np.repeat(np.arange(len(values)), counts)
    leads = led != _NOWHERE
    row, led = row[leads], led[leads]
    routable, new = counts > 0, 0
    if routing.is_grouping:
        groups, group = np.unique(values[~seen], return_inverse=True)
        new, routable = len(groups), routable | ~seen
        row = np.concatenate([row, np.flatnonzero(~seen)])
        led = np.concatenate([led, outputs + group])
    live = np.zeros(len(values), bool)
    live[row] = True
    return Destinations(row, led, live, routable, new)


def _deciding(codes: Keys, row: Integers, output: Integers) -> tuple[int, ...] | None:
    """The columns, by a part of the rows: the fewest that explain nearly as much as any."""
    step = -(-len(codes) // _CHOOSING)
    used = row % step == 0
    row, output = row[used] // step, output[used]
    compact = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in codes[::step].T]
    shares: dict[tuple[int, ...], tuple[float, int]] = {}

    def best_of(tried: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        for columns in tried:
            if columns not in shares:
                shares[columns] = _explained(_joined(compact, columns, len(codes[::step])), row, output)
        most = max(shares[columns][0] for columns in tried)
        near = [columns for columns in tried if shares[columns][0] >= most - _WORTH]
        return min(near, key=lambda columns: (shares[columns][1], -shares[columns][0], columns))

    every = range(len(compact))
    levels = [best_of([()])]
    for count in range(1, _MOST_COLUMNS + 1):
        if shares[levels[-1]][0] >= 1 - _WORTH / 2 or count > len(compact):
            break
        if count <= 2:  # two may decide together of which each alone says little
            tried = list(combinations(every, count))
        else:
            others = [column for column in every if column not in levels[-1]]
            tried = [tuple(sorted((*levels[-1], column))) for column in others]
        levels.append(best_of(tried))
    most = max(shares[columns][0] for columns in levels)
    chosen = next(columns for columns in levels if shares[columns][0] > most - _WORTH)
    return chosen if shares[chosen][0] >= DECIDES else None


def _joined(compact: Sequence[Integers], columns: Sequence[int], rows: int) -> Integers:
    """A small number for the values of several columns together."""
    together = np.zeros(rows, np.int64)
    for column in columns:
        together = together * (int(compact[column].max(initial=0)) + 1) + compact[column]
    if int(together.max(initial=0)) >= _MOST_CELLS:
        together = np.unique(together, return_inverse=True)[1].astype(np.int64)
    return together


def _routing(
    names: Sequence[str], chosen: Sequence[int], values_of: Keys, row: Integers, output: Integers
) -> Routing:
    values, value, sizes = np.unique(values_of, return_inverse=True, return_counts=True)
    of_value, of_output, counts = _counted(value[row], output)
    leads = counts > _LEADS * sizes[of_value]
    of_value, of_output = of_value[leads], of_output[leads]
    ends = np.concatenate([[0], np.cumsum(np.bincount(of_value, minlength=len(values)))]).astype(np.int64)
    led, leading = np.unique(of_output[of_output != _NOWHERE]), of_value[of_output != _NOWHERE]
    return Routing(
        columns=tuple(names[column] for column in chosen),
        values=values,
        ends=ends,
        outputs=of_output,
        is_grouping=1 < len(led) >= len(np.unique(leading)),
    )


def _explained(value: Integers, row: Integers, output: Integers) -> tuple[float, int]:
    """The share of pairs whose value leads to their output, by more than one row; and how many values."""
    sizes = np.bincount(value)
    of_value, _, counts = _counted(value[row], output)
    explained = (counts > _LEADS * sizes[of_value]) & (sizes[of_value] > 1)
    return float(counts[explained].sum() / max(len(row), 1)), int(np.count_nonzero(sizes))


def _counted(value: Integers, output: Integers) -> tuple[Integers, Integers, Integers]:
    """(value, output, how often), by ascending values."""
    width = int(output.max(initial=0)) + 2
    cells = value.astype(np.int64) * width + (output + 1)
    if int(cells.max(initial=0)) < _MOST_CELLS:
        counts = np.bincount(cells)
        pairs = np.flatnonzero(counts)
        counts = counts[pairs]
    else:
        pairs, counts = np.unique(cells, return_counts=True)
    of_value, of_output = np.divmod(pairs, width)
    return of_value, of_output - 1, counts


def _together(codes: Keys, columns: Sequence[int]) -> Keys:
    """One hash of several columns."""
    together = np.zeros(len(codes), np.uint64)
    for column in columns:
        together = (together ^ codes[:, column]) * np.uint64(0x9E3779B97F4A7C15)
        together ^= together >> np.uint64(29)
    return together
