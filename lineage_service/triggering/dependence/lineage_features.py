"""What only lineage knows of a change of an input, as features: by the last complete execution. Pure.

Where it is not known, every value is NaN and nothing is raised: a forest learns what that means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lineage_service.triggering.changes.changed_elements import (
    OCCURRENCES,
    Changes,
    Elements,
    Flags,
    Keys,
    Numbers,
)
from lineage_service.triggering.changes.impact import Features, joined
from lineage_service.triggering.dependence.reach import reach, reach_names
from lineage_service.triggering.dependence.read_rows import NOT_KEPT, Codes, ReadRows
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.dependence.routed_outputs import (
    NewRows,
    OutputSums,
    routed,
    routed_names,
    sums_of_rows,
)
from lineage_service.triggering.dependence.routes import Routing

__all__ = ["Lineage", "LineageFeatures", "keys_of_new_rows", "lineage_features", "lineage_names"]

#: Before the name of each feature.
PREFIX = "lineage."


@dataclass(frozen=True)
class Lineage:
    """What is kept of an execution: its `rows` of one input, the elements that they were `then`, and where
    they went. `written`: see `reach`.
    """

    rows: ReadRows
    relation: Relation
    routing: Routing | None
    then: Elements
    written: Numbers | None = None

    @cached_property
    def scale(self) -> float:
        """Of so many rows of which something is kept, one was walked."""
        kept = int(np.count_nonzero(self.rows.keys != NOT_KEPT))
        return kept / max(int(self.relation.walked.sum()), 1)

    @cached_property
    def numbers(self) -> Numbers:
        """(rows, columns), 0 where there is none."""
        return self.rows.numbers(self.then)

    @cached_property
    def numbered(self) -> Numbers:
        """(rows, columns): 1 where there is a number, else 0."""
        is_number = np.isfinite(self.then.values)
        if is_number.all():
            numbered: Numbers = (self.rows.keys != NOT_KEPT)[:, None] * np.ones((1, is_number.shape[1]))
            return numbered
        return self.rows.placed(self.then.keys, is_number.astype(np.float64))

    @cached_property
    def sums(self) -> OutputSums:
        return sums_of_rows(self.relation, np.ones(len(self.rows)), self.numbers, self.numbered)

    @cached_property
    def occurrences(self) -> OutputSums:
        """Of rows of a multiset, each of which counts once."""
        ones = np.ones((len(self.rows), 1))
        return sums_of_rows(self.relation, ones[:, 0], ones, ones)


@dataclass(frozen=True, slots=True)
class LineageFeatures:
    """`why` says why nothing is known, or is empty.

    `is_upper_bound`: an operation on the way has only an upper bound, so fewer outputs may be reached.
    `is_sampled`: of the rows some were followed, so more may be.
    """

    features: Features
    why: str = ""
    is_upper_bound: bool = False
    is_sampled: bool = False


def lineage_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The same whatever is known."""
    return tuple(f"{PREFIX}{name}" for name in (*reach_names(columns), *routed_names(columns)))


def keys_of_new_rows(columns: Sequence[str], changes: Changes) -> Keys:
    """Of the elements of which there are rows that were not there before, ascending."""
    return changes.keys[_has_more(columns, changes)]


def lineage_features(
    columns: Sequence[str], lineage: Lineage | str, changes: Changes, added: Codes | None = None
) -> LineageFeatures:
    """Of the `changes` since the execution that `lineage` is of.

    `columns` name the numbers of both. A `lineage` that is a text says why there is none. `added` are the
    values of `keys_of_new_rows`, None where they are not known.

    Shares are from 0 to 1, those of signed differences from -1. See `reach` and `routed_outputs` for each
    feature, and for what none of them proves.
    """
    names = lineage_names(columns)
    if isinstance(lineage, str):
        return LineageFeatures(Features(names, np.full(len(names), np.nan)), lineage)
    relation, has_more = lineage.relation, _has_more(columns, changes)
    news = Features(routed_names(columns), np.full(len(routed_names(columns)), np.nan))
    if tuple(columns) == (OCCURRENCES,):
        counts = (changes.new - changes.old)[has_more, 0]
        fewer = lineage.rows.changed(_fewer(changes))
        then = np.ones((len(fewer), 1))
        now = then - fewer[:, None]
        reached = reach(columns, relation, fewer, then, now, lineage.written)
        old = new = lineage.occurrences
        if fewer.any():
            new = sums_of_rows(relation, now[:, 0], now, now)
        numbers = np.ones((len(counts), 1))
    else:
        counts, numbers = np.ones(int(has_more.sum())), changes.new[has_more]
        changed = lineage.rows.changed(changes)
        now = lineage.rows.changed_numbers(changes)
        reached = reach(columns, relation, changed, lineage.numbers, now, lineage.written)
        old = new = lineage.sums
        if changed.any():
            new = _sums_now(lineage, changes, now)
    if added is not None:
        rows = NewRows(added, numbers, counts)
        news = routed(columns, lineage.routing, rows, old, new, lineage.written, lineage.scale)
    return LineageFeatures(
        Features(names, joined(reached, news).values),
        is_upper_bound=not relation.exact,
        is_sampled=relation.is_sampled,
    )


def _has_more(columns: Sequence[str], changes: Changes) -> Flags:
    """Elements that are new; of a multiset those of which there are more now."""
    if tuple(columns) != (OCCURRENCES,):
        return changes.added
    more: Flags = changes.new[:, 0] > changes.old[:, 0]
    return more


def _fewer(changes: Changes) -> Changes:
    """Those of a multiset of which there are fewer now: a row more changes none of those that were there."""
    kept = changes.removed | (~changes.added & (changes.new < changes.old)[:, 0])
    return Changes(
        changes.keys[kept], changes.old[kept], changes.new[kept], changes.added[kept], changes.removed[kept]
    )


def _sums_now(lineage: Lineage, changes: Changes, now: Numbers) -> OutputSums:
    """Of the rows that the execution read, as they are now."""
    rows, stayed = lineage.rows, ~changes.added
    changed = rows.changed(changes)[:, None]
    are = np.isfinite(changes.new[stayed]) & ~changes.removed[stayed, None]
    gone = rows.placed(changes.keys[changes.removed], np.ones((int(changes.removed.sum()), 1)))
    return sums_of_rows(
        lineage.relation,
        1 - gone[:, 0],
        np.where(changed, now, lineage.numbers),
        np.where(changed, rows.placed(changes.keys[stayed], are.astype(np.float64)), lineage.numbered),
    )
