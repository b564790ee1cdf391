"""How far new rows will move the outputs that they are routed to, as features. Pure.

- *routed live*, *routed reach*: the shares of new rows that will go into an output, and of outputs that they
  will go into;
- *routed share* of an output: its new rows, of all that it will then have;
- *new outputs*: of all that there will be; *unroutable*: the share of new rows of which nothing is known;
- *routed error*: the error (Eq. 3) of the old outputs, if each moved as the `mean` or the `sum` of its rows
  did, or as their `count`: with those that changed, without those that are gone, and with the new ones where
  they are routed to. Rows without a number count for no mean. A new output is to its rows what the others
  are to theirs.

Of an output that is the mean, the sum or the count of its rows, the routed error is the error itself, as far
as routes are right. Which of the three it is, if any, a forest finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import Numbers
from lineage_service.triggering.changes.impact import Features
from lineage_service.triggering.dependence.reach import error_of, largest, ratios_of, sums_of, times
from lineage_service.triggering.dependence.read_rows import Codes, finite
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.dependence.routes import Routing, destinations

__all__ = ["NewRows", "OutputSums", "routed", "routed_names", "sums_of_rows"]

_ROUTED = ("routed_live", "routed_reach", "routed_share_most", "routed_share_mean", "routed_share_90",
           "new_outputs", "unroutable")  # fmt: skip
_COUNT = "routed_error_count"
_MOVES = ("routed_error_mean", "routed_error_sum")


@dataclass(frozen=True, slots=True)
class NewRows:
    """`numbers` (rows, columns), NaN where none is. `counts` (rows): how often each is there."""

    values: Codes
    numbers: Numbers
    counts: Numbers


@dataclass(frozen=True, slots=True)
class OutputSums:
    """Over the rows of each output: how many they are, and (outputs, columns) the sum of their numbers, and
    how many have one.
    """

    rows: Numbers
    numbers: Numbers
    numbered: Numbers


def sums_of_rows(relation: Relation, present: Numbers, numbers: Numbers, numbered: Numbers) -> OutputSums:
    """`present` (rows) is 1, or 0 of a row that is gone; `numbers` and `numbered` (rows, columns)."""

    def sums(columns: Numbers) -> Numbers:
        parts = [sums_of(relation, column) for column in columns.T]
        return np.column_stack(parts) if parts else np.zeros((relation.outputs, 0))

    return OutputSums(sums_of(relation, present), sums(numbers), sums(numbered))


def routed_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The names of the features, whatever is known."""
    return (*_ROUTED, _COUNT, *(f"{column}.{name}" for column in columns for name in _MOVES))


def routed(
    columns: Sequence[str],
    routing: Routing | None,
    added: NewRows,
    then: OutputSums,
    now: OutputSums,
    written: Numbers | None,
    scale: float = 1.0,
) -> Features:
    """`then` and `now` are of the rows of the last execution, one of so many (`scale`) of which are known.

    `written` as in `reach`. Where new rows cannot be routed, only that is known.
    """
    names, outputs = routed_names(columns), len(then.rows)
    count = float(added.counts.sum())
    if count and (routing is None or not set(routing.columns) <= set(added.values.names)):
        return Features(names, np.array([np.nan if name != "unroutable" else 1.0 for name in names]))
    row = output = np.zeros(0, np.int64)
    new, live, routable = 0, 0.0, 0.0
    if count and routing is not None:
        ways = destinations(routing, added.values, outputs)
        row, output, new = ways.row, ways.output, ways.new
        live, routable = (float(added.counts[which].sum()) for which in (ways.live, ways.routable))

    def of_outputs(weights: Numbers) -> Numbers:
        """(outputs and new ones): the sum over the new rows of each."""
        return np.asarray(np.bincount(output, weights[row], outputs + new), np.float64)

    more = of_outputs(added.counts)
    values = [
        live / (count or 1),
        np.count_nonzero(more[:outputs]) / max(outputs, 1),
        *largest(more[:outputs] / np.maximum(more[:outputs] + scale * then.rows, 1)),
        new / max(outputs + new, 1),
        1 - routable / count if count else 0.0,
    ]
    if written is None:
        return Features(names, np.array([*values, *[np.nan] * (len(names) - len(values))]))
    values.append(_error(written, scale * then.rows, _plus(scale * now.rows, more)))
    for column in range(len(columns)):
        numbers = added.numbers[:, column]
        sums = of_outputs(finite(numbers) * added.counts)
        numbered = of_outputs(np.isfinite(numbers) * added.counts)
        before, after = scale * then.numbers[:, column], _plus(scale * now.numbers[:, column], sums)
        old = before / np.maximum(scale * then.numbered[:, column], 1)
        means = after / np.maximum(_plus(scale * now.numbered[:, column], numbered), 1)
        values += [_error(written, old, means), _error(written, before, after)]
    return Features(names, np.array(values, np.float64))


def _plus(old: Numbers, more: Numbers) -> Numbers:
    """`more` is longer: it has new outputs behind those that are there."""
    together = more.copy()
    together[: len(old)] += old
    return together


def _error(written: Numbers, old: Numbers, now: Numbers) -> float:
    """Of outputs that move as these numbers of their rows do; `now` has new outputs behind the old ones."""
    written, outputs = finite(written), len(written)
    ratios = ratios_of(now[:outputs], old)
    moved = times(written, ratios)
    is_some = (written != 0) & (old != 0)
    scale = float(np.median(ratios_of(written[is_some], old[is_some]))) if is_some.any() else 1.0
    beyond = times(now[outputs:], np.array(scale))
    return error_of(np.concatenate([written, 0 * beyond]), np.concatenate([moved, beyond]))
