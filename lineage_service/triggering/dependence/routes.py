"""Which outputs new rows will go into: a guess by columns whose value decided it in the last execution. Pure.

A value leads to an output if more than half of its rows went there. A column *decides* if nearly all pairs
(row, output) are so explained, by values that several rows have: a value of one row explains nothing, or
every id would decide. Columns that decide together are found greedily. "In no output" counts as one more
output, so a filter's column is found as well.

A value that was never seen is a new output where each output had one value, as groups do; else its rows
cannot be routed. Nobody knows better before the job has run: these are features, and no facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import Keys
from lineage_service.triggering.changes.impact import Features
from lineage_service.triggering.dependence.reach import largest
from lineage_service.triggering.dependence.read_rows import Codes, Integers, ReadRows
from lineage_service.triggering.dependence.relation import Relation

__all__ = ["ROUTING", "Routing", "learned", "routed"]

ROUTING = ("routed_live", "routed_reach", "routed_share_most", "routed_share_mean", "routed_share_90",
           "new_outputs", "unroutable")  # fmt: skip
#: Of the pairs, that a column must explain.
DECIDES = 0.95
#: Columns that together decide, at most, and how much a further one must add.
_MOST_COLUMNS, _WORTH = 3, 0.01
#: A larger share of a value's rows went to an output which it leads to.
_LEADS = 0.5
#: Pairs beyond which nothing is learned.
_MOST_PAIRS = 1 << 22
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Routing:
    """`values` ascend; those of value k lead to `outputs[ends[k]:ends[k + 1]]`, _NOWHERE among them.

    `explains`: the share of pairs. `is_grouping`: each output had one value. `inputs`: of each output, of the
    last execution.
    """

    columns: tuple[str, ...]
    explains: float
    values: Keys
    ends: Integers
    outputs: Integers
    is_grouping: bool
    inputs: Integers


def learned(rows: ReadRows, relation: Relation) -> Routing | None:
    """None where no columns decide."""
    place = np.full(len(rows), -1, np.int64)
    walked = rows.sampled[relation.walked[rows.sampled]]
    at = np.flatnonzero(relation.walked[rows.sampled])
    place[walked] = np.arange(len(walked))
    inside = place[relation.row] >= 0
    row, output = place[relation.row[inside]], relation.output[inside]
    if not len(walked) or len(row) > _MOST_PAIRS:
        return None
    dead = np.setdiff1d(np.arange(len(walked)), row)
    row = np.concatenate([row, dead])
    output = np.concatenate([output, np.full(len(dead), _NOWHERE)])
    codes = rows.codes.values[at]
    chosen: tuple[int, ...] = ()
    best = 0.0
    while len(chosen) < _MOST_COLUMNS and best < 1:
        tried = {
            (*chosen, column): _explained(_together(codes, (*chosen, column)), row, output)
            for column in range(codes.shape[1])
            if column not in chosen
        }
        if not tried:
            break
        columns = max(tried, key=lambda columns: tried[columns])
        if tried[columns] < best + _WORTH:
            break
        chosen, best = columns, tried[columns]
    if best < DECIDES:
        return None
    return _routing(rows, relation, chosen, best, _together(codes, chosen), row, output)


def routed(routing: Routing | None, added: Codes, outputs: int) -> Features:
    """Of rows that were added to the input of so many outputs."""
    if not len(added):
        return Features(ROUTING, np.zeros(len(ROUTING)))
    if routing is None or not set(routing.columns) <= set(added.names):
        return Features(ROUTING, np.array([np.nan] * (len(ROUTING) - 1) + [1.0]))
    columns = [added.names.index(name) for name in routing.columns]
    values = _together(added.values, columns)
    at = np.minimum(routing.values.searchsorted(values), max(len(routing.values) - 1, 0))
    seen = routing.values[at] == values if len(routing.values) else np.zeros(len(values), bool)
    counts = (routing.ends[1:] - routing.ends[:-1])[at] * seen
    begins = np.repeat(routing.ends[:-1][at] - (np.cumsum(counts) - counts), counts)
    led = routing.outputs[begins + np.arange(len(begins))]
    of_row = np.repeat(np.arange(len(values)), counts)
    live = np.zeros(len(values), bool)
    live[of_row[led != _NOWHERE]] = True
    more = np.bincount(led[led != _NOWHERE], minlength=outputs)[:outputs]
    is_routed = counts > 0
    new = len(np.unique(values[~seen])) if routing.is_grouping else 0
    if routing.is_grouping:
        is_routed |= ~seen
        live |= ~seen
    shares = more / np.maximum(more + routing.inputs, 1)
    return Features(
        ROUTING,
        np.array(
            [
                live.mean(),
                np.count_nonzero(more) / max(outputs, 1),
                *largest(shares),
                new / max(outputs + new, 1),
                1 - is_routed.mean(),
            ]
        ),
    )


def _routing(
    rows: ReadRows,
    relation: Relation,
    chosen: Sequence[int],
    explains: float,
    values_of: Keys,
    row: Integers,
    output: Integers,
) -> Routing:
    values, value, sizes = np.unique(values_of, return_inverse=True, return_counts=True)
    of_value, of_output, counts = _counted(value[row], output)
    leads = counts > _LEADS * sizes[of_value]
    of_value, of_output = of_value[leads], of_output[leads]
    ends = np.concatenate([[0], np.cumsum(np.bincount(of_value, minlength=len(values)))]).astype(np.int64)
    led, leading = np.unique(of_output[of_output != _NOWHERE]), of_value[of_output != _NOWHERE]
    scale = relation.rows / max(int(relation.walked.sum()), 1)
    return Routing(
        columns=tuple(rows.codes.names[column] for column in chosen),
        explains=explains,
        values=values,
        ends=ends,
        outputs=of_output,
        is_grouping=1 < len(led) >= len(np.unique(leading)),
        inputs=np.round(np.bincount(relation.output, minlength=relation.outputs) * scale).astype(np.int64),
    )


def _explained(values_of: Keys, row: Integers, output: Integers) -> float:
    """The share of pairs whose value leads to their output, by more than one row."""
    _, value, sizes = np.unique(values_of, return_inverse=True, return_counts=True)
    of_value, _, counts = _counted(value[row], output)
    explained = (counts > _LEADS * sizes[of_value]) & (sizes[of_value] > 1)
    return float(counts[explained].sum() / max(len(row), 1))


def _counted(value: Integers, output: Integers) -> tuple[Integers, Integers, Integers]:
    """(value, output, how often), by ascending values."""
    width = np.int64(output.max(initial=0) + 2)
    pairs, counts = np.unique(value.astype(np.int64) * width + (output + 1), return_counts=True)
    of_value, of_output = np.divmod(pairs, width)
    return of_value, of_output - 1, counts


def _together(codes: Keys, columns: Sequence[int]) -> Keys:
    """One hash of several columns."""
    together = np.zeros(len(codes), np.uint64)
    for column in columns:
        together = (together ^ codes[:, column]) * np.uint64(0x9E3779B97F4A7C15)
        together ^= together >> np.uint64(29)
    return together
