"""How much of a job's outputs depends on the rows that changed: by the lineage of its last execution. Pure.

With the pairs (row, output) of the last execution:
- *live*: the share of changed rows that reached an output at all;
- *reach*: the share of outputs that such rows went into;
- *share* of an output: its changed rows of all its rows;
- *mass* of an output and a column: the absolute differences of its rows, of the sum of their sizes. The
  impact of the paper (Eq. 2), but of one output;
- *push*: the same with signed differences, so that what cancels within an output is no change of it.
  `together` is |push| of all outputs of a kind, of the sum of their sizes;
- *moved error*: the error (Eq. 3) of the old outputs, if each moved as the sum of its rows did. So it is of a
  mean or a sum by group, nearly. If all outputs that are 0 have rows with a smaller mean than the others, the
  step is taken for one with a threshold between the two: `low` and `high` are the errors with each of these
  as the threshold, *rising* and *falling* the shares of outputs that come to the other side of both.

Of a row, the difference is |new - old| and the size max(|new|, |old|). Nothing here is a proof. A row that
reached no output may do so with its new value, and a row on the right of an anti join decides about outputs
without being a source of them. Rows that were added are in no pair: `routes` guesses theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lineage_service.triggering.changes.changed_elements import Flags, Numbers
from lineage_service.triggering.changes.impact import LARGEST, Features
from lineage_service.triggering.dependence.read_rows import finite
from lineage_service.triggering.dependence.relation import Relation

__all__ = ["error_of", "largest", "ratios_of", "reach", "reach_names", "sums_of", "times"]

#: Outputs by what they are now: all, those that are zero, and the others.
_KINDS = ("", "_of_zeros", "_of_others")
#: Of features that are not known where the numbers of outputs are not.
_OF_WRITTEN = ("_of_zeros_", "_of_others_", ".moved_error_", ".rising", ".falling")
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
    yield from ("moved_error_low", "moved_error_high", "rising", "falling")


def reach(
    columns: Sequence[str],
    relation: Relation,
    changed: Flags,
    then: Numbers,
    now: Numbers,
    written: Numbers | None = None,
) -> Features:
    """`changed` (rows): those that are looked at for a difference. `then` and `now` (rows, columns): the
    numbers of each row, 0 where it is gone.

    `written` (outputs): the number of each output of the last execution; None: they are not known.
    """
    changed = changed & relation.walked
    zeros = None if written is None else written == 0
    if not changed.any():  # most often rows are added only
        return _of_no_change(columns, written)
    hits = changed[relation.row]
    inputs, changed_inputs = (
        sums_of(relation, np.ones(relation.rows)),
        sums_of(relation, changed.astype(float)),
    )
    live = np.zeros(relation.rows, bool)
    live[relation.row[hits]] = True
    values: list[float] = [
        live.sum() / max(int(changed.sum()), 1),
        np.count_nonzero(changed_inputs) / max(relation.outputs, 1),
        *largest(changed_inputs / np.maximum(inputs, 1)),
    ]
    for column in range(len(columns)):
        old, new = then[:, column], np.where(changed, now[:, column], then[:, column])
        difference, whole = new - old, sums_of(relation, np.maximum(np.abs(old), np.abs(new)))
        distance, push = sums_of(relation, np.abs(difference)), sums_of(relation, difference)
        for chosen in _kinds(relation.outputs, zeros):
            if chosen is None:
                values += [np.nan] * (len(_LARGEST) + 1 + len(_EXTENT))
                continue
            mass = _shares(distance[chosen], whole[chosen])
            net = _shares(push[chosen], whole[chosen])
            together = _shares(np.abs(push[chosen]).sum(keepdims=True), whole[chosen].sum(keepdims=True))
            values += [*largest(mass), float(together[0]), *_extent(net)]
        values += _moved(sums_of(relation, old), sums_of(relation, new), inputs, written)
    return Features(reach_names(columns), np.array(values, np.float64))


def _of_no_change(columns: Sequence[str], written: Numbers | None) -> Features:
    names = reach_names(columns)
    is_known = [written is not None or not any(part in name for part in _OF_WRITTEN) for name in names]
    return Features(names, np.where(is_known, 0.0, np.nan))


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


def _moved(old: Numbers, new: Numbers, inputs: Numbers, written: Numbers | None) -> list[float]:
    """The moved errors (low, high), rising and falling, by the sums of outputs then and now."""
    if written is None:
        return [np.nan] * 4
    written, zeros = finite(written), written == 0
    was, remains = old / np.maximum(inputs, 1), new / np.maximum(inputs, 1)
    low, high = was[~zeros].min(initial=np.inf), was[zeros].max(initial=-np.inf)
    is_threshold = zeros.any() and not zeros.all() and high < low
    moved = np.where(zeros, 0.0, times(written, ratios_of(new, old)))
    if not is_threshold:
        error = error_of(written, moved)
        return [error, error, 0.0, 0.0]
    # What an output that was 0 is worth beyond the threshold: as the others are for their means.
    scale = float(np.median(ratios_of(written[~zeros], was[~zeros])))
    beyond = np.where(zeros, times(remains, np.array(scale)), moved)
    errors = [  # at `high` itself outputs were 0
        error_of(written, np.where(is_beyond, beyond, 0.0)) for is_beyond in (remains >= low, remains > high)
    ]
    rising, falling = zeros & (remains >= low), ~zeros & (remains <= high)
    return [*errors, float(rising.mean()), float(falling.mean())]


def ratios_of(numbers: Numbers, of: Numbers) -> Numbers:
    """1 where the second is 0."""
    with np.errstate(over="ignore"):
        ratios: Numbers = np.where(of != 0, numbers / np.where(of != 0, of, 1), 1.0)
    return np.clip(ratios, -LARGEST, LARGEST)


def times(one: Numbers, other: Numbers) -> Numbers:
    with np.errstate(over="ignore"):
        return np.clip(one * other, -LARGEST, LARGEST)


def error_of(stale: Numbers, correct: Numbers) -> float:
    """Eq. 3, as `output_error` has it, of outputs that are on both sides."""
    size = np.maximum(np.abs(stale), np.abs(correct))
    largest = float(size.max(initial=0.0))
    if not largest:
        return 0.0
    distance = float(np.abs(correct / largest - stale / largest).sum())
    return float((stale != correct).mean()) * min(distance / float((size / largest).sum()), 1.0)


def _kinds(outputs: int, zeros: Flags | None) -> Iterator[Flags | None]:
    """The outputs of each kind; None where it is not known which they are."""
    yield np.ones(outputs, bool)
    yield zeros
    yield None if zeros is None else ~zeros


def sums_of(relation: Relation, of_rows: Numbers) -> Numbers:
    """Of each output the sum over its rows."""
    sums = np.bincount(relation.output, of_rows[relation.row], relation.outputs)
    return np.asarray(sums, np.float64)


def _shares(parts: Numbers, whole: Numbers) -> Numbers:
    """From -1 to 1."""
    shares: Numbers = np.clip(parts / np.where(whole > 0, whole, 1), -1, 1)
    return shares
