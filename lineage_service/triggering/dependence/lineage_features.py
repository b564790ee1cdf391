"""What only lineage knows of a change of an input, as features: by the last complete execution. Pure.

Where it is not known, every value is NaN and nothing is raised: a forest learns what that means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import OCCURRENCES, Changes, Elements, Numbers
from lineage_service.triggering.changes.impact import Features, joined
from lineage_service.triggering.dependence.reach import reach, reach_names
from lineage_service.triggering.dependence.read_rows import Codes, ReadRows
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.dependence.routes import ROUTING, Routing, routed

__all__ = ["Lineage", "LineageFeatures", "lineage_features", "lineage_names"]

#: Before the name of each feature.
PREFIX = "lineage."


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is kept of an execution: its `rows` of one input and where they went. `written`: see `reach`."""

    rows: ReadRows
    relation: Relation
    routing: Routing | None
    written: Numbers | None = None


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
    return tuple(f"{PREFIX}{name}" for name in (*reach_names(columns), *ROUTING))


def lineage_features(
    columns: Sequence[str],
    lineage: Lineage | str,
    then: Elements,
    changes: Changes,
    added: Codes | None = None,
) -> LineageFeatures:
    """Of the `changes` since the execution that `lineage` is of, when the input's elements were `then`.

    `columns` name the numbers of both. A `lineage` that is a text says why there is none. `added` are the
    values of the rows that were added, None where they are not known.

    Shares are from 0 to 1, those of signed differences from -1. See `reach` and `routes` for each feature,
    and for what none of them proves.
    """
    names = lineage_names(columns)
    if isinstance(lineage, str):
        return LineageFeatures(Features(names, np.full(len(names), np.nan)), lineage)
    rows, relation = lineage.rows, lineage.relation
    is_multiset = tuple(columns) == (OCCURRENCES,)
    if is_multiset:  # a row more of those that were there before changes none of them
        changes = _fewer(changes)
    changed = rows.changed(changes)
    if is_multiset:
        old = np.ones((len(rows), 1))
        reached = reach(columns, relation, changed, old, np.zeros((len(rows), 1)), lineage.written)
    else:
        numbers = rows.numbers(then), rows.changed_numbers(changes)
        reached = reach(columns, relation, changed, *numbers, lineage.written)
    news = routed(lineage.routing, added, relation.outputs) if added is not None else _unknown(ROUTING)
    values = joined(reached, news).values
    return LineageFeatures(
        Features(names, values), is_upper_bound=not relation.exact, is_sampled=relation.is_sampled
    )


def _fewer(changes: Changes) -> Changes:
    """Those of a multiset of which there are fewer now."""
    kept = changes.removed | (~changes.added & (changes.new < changes.old)[:, 0])
    return Changes(
        changes.keys[kept], changes.old[kept], changes.new[kept], changes.added[kept], changes.removed[kept]
    )


def _unknown(names: Sequence[str]) -> Features:
    return Features(tuple(names), np.full(len(names), np.nan))
