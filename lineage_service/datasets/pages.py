"""Makes results of a catalogue: a page of datasets, and one dataset. Pure.

A cursor names the last one that was listed, so what comes meanwhile moves no page. It belongs to its query.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.datasets.catalogue import Catalogue, Entry
from lineage_service.datasets.history import history, use_of
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.datasets.search import dataset_named, datasets_with
from lineage_service.datasets.summaries import DetailsOf, summary_of
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import DatasetPage, Datasets
from lineage_service.queries import DatasetQuery, DatasetsQuery

__all__ = ["CatalogueState", "dataset_page", "datasets_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueState:
    """A catalogue, and what it needs to be shown at a moment (`now_ms`, Unix time)."""

    catalogue: Catalogue
    neighbours: Neighbours
    details_of: DetailsOf
    now_ms: float
    unread_applications: int = 0


def datasets_page(state: CatalogueState, query: DatasetsQuery) -> Datasets:
    """Raises InvalidQueryError."""
    entries = sorted(datasets_with(state.catalogue, query.text), key=_order)
    after = _decoded(query.cursor, _digest("datasets", query.text), _order_of)
    rest = [entry for entry in entries if _order(entry) > after] if after is not None else entries
    page = rest[: query.limit]
    is_last = len(page) == len(rest)
    return Datasets(
        datasets=tuple(summary_of(entry, state.details_of, state.now_ms) for entry in page),
        total=len(entries),
        next=None if is_last else _encoded(_digest("datasets", query.text), _order(page[-1])),
        unread_applications=state.unread_applications,
    )


def dataset_page(state: CatalogueState, query: DatasetQuery) -> DatasetPage:
    """Raises UnknownDatasetError, InvalidQueryError."""
    entry = dataset_named(state.catalogue, query.name, query.namespace)
    digest = _digest("dataset", *entry.place)
    after = _decoded(query.cursor, digest, _key_of)
    uses = history(entry)
    keys = [key for key in uses if after is None or key < after]
    page = keys[: query.limit]
    graph = state.neighbours.of(
        entry.place, direction=query.direction, depth=query.depth, now_ms=state.now_ms
    )
    return DatasetPage(
        dataset=summary_of(entry, state.details_of, state.now_ms),
        history=tuple(use_of(uses[key], state.details_of, state.now_ms) for key in page),
        total=len(uses),
        next=None if len(page) == len(keys) else _encoded(digest, page[-1]),
        graph=graph,
        unread_applications=state.unread_applications,
    )


# -- order and cursors ------------------------------------------------------------------------------------

_Order = tuple[int, int, str, str]


def _order(entry: Entry) -> _Order:
    """The latest written first, then the latest read."""
    used = entry.writes or entry.reads
    return int(not entry.writes), -used[-1].use.at, entry.place.name, entry.place.namespace


def _order_of(values: Sequence[Any]) -> _Order:
    rank, at, name, namespace = values
    return int(rank), int(at), str(name), str(namespace)


def _key_of(values: Sequence[Any]) -> tuple[int, str, int, str]:
    at, application_id, node, kind = values
    return int(at), str(application_id), int(node), str(kind)


def _digest(*query: str | None) -> str:
    return hashlib.blake2b(repr(query).encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def _encoded(digest: str, key: Sequence[object]) -> str:
    body = json.dumps([digest, *key], separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).rstrip(b"=").decode()


def _decoded(
    cursor: str | None, digest: str, read: Callable[[Sequence[Any]], tuple[Any, ...]]
) -> tuple[Any, ...] | None:
    """Raises InvalidQueryError."""
    if cursor is None:
        return None
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        of, *values = json.loads(packed)
        key = read(values)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidQueryError("the cursor is not one that this service gave out") from None
    if of != digest:
        raise InvalidQueryError("the cursor is one of another query")
    return key
