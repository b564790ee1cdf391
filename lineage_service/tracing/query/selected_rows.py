"""The rows of one node of a trace that fulfil a condition, in the order of a column. Any engine may walk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_search import RecordSearch
from lineage_service.tracing.query.reached_rows import ReachedRows
from lineage_service.tracing.query.row_order import Place
from lineage_service.tracing.walk.cross_application import Selection

__all__ = ["check_selection", "is_selective", "page_behind", "selected"]

Arrived = Mapping[int, Integers]
"""Partition -> the offsets that a trace reached there, ascending."""


def is_selective(query: TraceQuery) -> bool:
    return query.sort is not None or query.filter is not None


def check_selection(query: TraceQuery, only: str | None) -> None:
    """Raises InvalidQueryError where parameters do not belong together; `only` is a node id."""
    for name, value in (("sort", query.sort), ("filter", query.filter)):
        if value is not None and only is None:
            raise InvalidQueryError(f"{name} needs only: the operation whose rows are meant")
    if query.desc and query.sort is None:
        raise InvalidQueryError("desc needs sort: the column whose largest values are to come first")


def selected(
    query: TraceQuery,
    arrived: Arrived,
    rows_at: Callable[[Arrived], ReachedRows],
    search: Callable[[Where], RecordSearch],
    check: Check,
) -> Selection:
    """The places that fulfil the condition of a query, in the order of its column."""
    warnings = tuple[str, ...]()
    if query.filter is not None:
        with search(Where(query.filter)) as searched:
            arrived = _fulfilling(arrived, searched, check)
        warnings = tuple(searched.warnings)
    rows = rows_at(arrived)
    places = rows.places() if query.sort is None else rows.ordered(query.sort, check, desc=query.desc)
    return Selection(places, warnings)


def _fulfilling(arrived: Arrived, search: RecordSearch, check: Check) -> dict[int, Integers]:
    fulfilling: dict[int, Integers] = {}
    for partition, offsets in sorted(arrived.items()):
        if not len(offsets):
            continue
        first, last = int(offsets[0]), int(offsets[-1]) + 1
        places = search.matching(partition, first=first, last=last, check=check)
        matches = np.array([offset for offset, is_match in places if is_match], np.int64)
        fulfilling[partition] = np.intersect1d(offsets, matches)
    return fulfilling


def page_behind(places: Sequence[Place], last: Place | None, limit: int) -> tuple[Sequence[Place], bool]:
    """(the places of a page, are there more?). `last` is the last one of the page before."""
    first = 0
    if last is not None:
        try:
            first = places.index(last) + 1
        except ValueError:
            raise InvalidQueryError("the cursor names a record that is not listed") from None
    chosen = places[first : first + limit]
    return chosen, first + len(chosen) < len(places)
