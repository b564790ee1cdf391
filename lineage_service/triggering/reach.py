"""How much of a job's outputs depends on the rows that changed: by the lineage of its last execution. Pure.

With the pairs (row, output) of the last execution:
- *live*: the share of changed rows that reached an output at all;
- *reach*: the share of outputs that such rows went into;
- *share* of an output: its changed rows of all its rows;
- *mass* of an output and a column: the absolute differences of its rows, of the sum of their sizes. The
  impact of the paper (Eq. 2), but of one output;
- *push*: the same with signed differences, so that what cancels within an output is no change of it.
  `together` is |push| of all outputs of a kind, of the sum of their sizes;
- *rising* and *falling*: for steps with a threshold, the share of outputs that are 0 and whose rows now have
  a mean as large as those of an output that is not, and had a smaller one; and the other way round.

Of a row, the difference is |new - old| and the size max(|new|, |old|). Nothing here is a proof. A row that
reached no output may do so with its new value, and a row on the right of an anti join decides about outputs
without being a source of them. Rows that were added are in no pair: `routes` guesses theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lineage_service.triggering.changed_elements import Flags, Numbers
from lineage_service.triggering.impact import Features
from lineage_service.triggering.relation import Relation

__all__ = ["largest", "reach", "reach_names"]

#: Outputs by what they are now: all, those that are zero, and the others.
_KINDS = ("", "_of_zeros", "_of_others")
_LARGEST, _EXTENT = ("most", "mean", "90"), ("least", "mean", "most")


def reach_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The names of the features, whatever is known."""
    return (
        "live",
        "reach",
        *(f"share_{name}" for name in _LARGEST),
        *(f"{column}.{name}" for column in columns for name in _of_column()),
    )


def _of_column() -> Iterator[str]:
    for kind in _KINDS:
        yield from (f"mass{kind}_{name}" for name in (*_LARGEST, "together"))
        yield from (f"push{kind}_{name}" for name in _EXTENT)
    yield from ("rising", "falling")


def reach(
    columns: Sequence[str],
    relation: Relation,
    changed: Flags,
    then: Numbers,
    now: Numbers,
    zeros: Flags | None = None,
) -> Features:
    """`changed` (rows): those that are looked at for a difference. `then` and `now` (rows, columns): the
    numbers of each row, 0 where it is gone.

    `zeros` (outputs): which are 0 in the last execution; None where their numbers are not known.
    """
    changed = changed & relation.walked
    hits = changed[relation.row]
    inputs, changed_inputs = _sums(relation, np.ones(relation.rows)), _sums(relation, changed.astype(float))
    live = np.zeros(relation.rows, bool)
    live[relation.row[hits]] = True
    values: list[float] = [
        live.sum() / max(int(changed.sum()), 1),
        np.count_nonzero(changed_inputs) / max(relation.outputs, 1),
        *largest(changed_inputs / np.maximum(inputs, 1)),
    ]
    for column in range(len(columns)):
        old, new = then[:, column], np.where(changed, now[:, column], then[:, column])
        difference, whole = new - old, _sums(relation, np.maximum(np.abs(old), np.abs(new)))
        distance, push = _sums(relation, np.abs(difference)), _sums(relation, difference)
        for chosen in _kinds(relation.outputs, zeros):
            if chosen is None:
                values += [np.nan] * (len(_LARGEST) + 1 + len(_EXTENT))
                continue
            mass = _shares(distance[chosen], whole[chosen])
            net = _shares(push[chosen], whole[chosen])
            together = _shares(np.abs(push[chosen]).sum(keepdims=True), whole[chosen].sum(keepdims=True))
            values += [*largest(mass), float(together[0]), *_extent(net)]
        values += _crossing(_sums(relation, old), _sums(relation, new), inputs, zeros)
    return Features(reach_names(columns), np.array(values, np.float64))


def largest(numbers: Numbers) -> tuple[float, float, float]:
    """The largest, the mean, and the one that nine of ten do not exceed; zeros of none."""
    if not len(numbers):
        return 0.0, 0.0, 0.0
    at = min(int(0.9 * len(numbers)), len(numbers) - 1)
    return float(numbers.max()), float(numbers.mean()), float(np.partition(numbers, at)[at])


def _extent(numbers: Numbers) -> tuple[float, float, float]:
    if not len(numbers):
        return 0.0, 0.0, 0.0
    return float(numbers.min()), float(numbers.mean()), float(numbers.max())


def _crossing(old: Numbers, new: Numbers, inputs: Numbers, zeros: Flags | None) -> tuple[float, float]:
    """(rising, falling) by the sums of outputs then and now."""
    if zeros is None:
        return np.nan, np.nan
    was, remains = old / np.maximum(inputs, 1), new / np.maximum(inputs, 1)
    low, high = was[~zeros].min(initial=np.inf), was[zeros].max(initial=-np.inf)
    rising = (was < low) & (remains >= low) & zeros
    falling = (was > high) & (remains <= high) & ~zeros
    return int(rising.sum()) / max(len(zeros), 1), int(falling.sum()) / max(len(zeros), 1)


def _kinds(outputs: int, zeros: Flags | None) -> Iterator[Flags | None]:
    """The outputs of each kind; None where it is not known which they are."""
    yield np.ones(outputs, bool)
    yield zeros
    yield None if zeros is None else ~zeros


def _sums(relation: Relation, of_rows: Numbers) -> Numbers:
    """Of each output the sum over its rows."""
    sums = np.bincount(relation.output, of_rows[relation.row], relation.outputs)
    return np.asarray(sums, np.float64)


def _shares(parts: Numbers, whole: Numbers) -> Numbers:
    """From -1 to 1."""
    shares: Numbers = np.clip(parts / np.where(whole > 0, whole, 1), -1, 1)
    return shares
