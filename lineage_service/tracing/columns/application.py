"""One application, read from the flow store: what is said of it as a whole, and what is needed to walk.

Knows nothing of how a trace is walked; caches nothing between versions of the store.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lineage_service.completeness import Receipt
from lineage_service.lineage import Application
from lineage_service.store.tables import TABLES, Bounds
from lineage_service.tracing.columns.snapshot import CachedRows, Snapshot
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.summaries import Receipts, SummaryReader, summary
from lineage_service.tracing.model.topology_builder import read_topology
from spark_agent import contract

__all__ = ["AnySnapshot", "OpenedApplication", "StoreReader", "open_application", "opened_as", "stored_files"]


class StoreReader(SummaryReader, Protocol):
    """What queries read of a flow store."""

    def bounds(self, application_id: str) -> Mapping[str, Bounds]: ...


class StoredFiles(Protocol):
    """Where an application is read from."""

    def files(self, table: str, application_id: str) -> Sequence[str]: ...


class AnySnapshot(Protocol):
    """What an engine walks over."""

    @property
    def graph(self) -> LineageGraph: ...


S_co = TypeVar("S_co", bound=AnySnapshot, covariant=True)
S = TypeVar("S", bound=AnySnapshot)


@dataclass(frozen=True)
class OpenedApplication(Generic[S_co]):
    """One application, read, with the snapshot of the engine that is to walk."""

    application: Application
    snapshot: S_co
    is_detailed: bool = False
    values_sample: float = 1.0  # the fraction of input records whose sampled paths have values

    @property
    def graph(self) -> LineageGraph:
        return self.snapshot.graph


def stored_files(store: StoredFiles, application_id: str) -> dict[str, tuple[str, ...]]:
    """Table -> the files that hold something of the application."""
    return {name: tuple(sorted(store.files(name, application_id))) for name in TABLES}


def open_application(
    files: Mapping[str, Sequence[str]],
    application_id: str,
    events: Sequence[Mapping[str, Any]],
    cached: CachedRows | None = None,
    receipts: Receipts | None = None,
    rows: Mapping[str, int] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    *,
    has_failed: bool = False,
) -> OpenedApplication[Snapshot]:
    """`has_failed`: with the runs that an error has ended, for traces that begin in one.

    `files` are those of each table that hold something of the application, on this machine. Of those whose
    `bounds` are known, some are opened only when they are needed.

    `rows` is what a table was counted to have of it later than `files` were named; None: not counted.
    """
    block_receipts = (receipts or Receipts()).of(files["blocks"])
    topology = read_topology(application_id, events, block_receipts, has_failed=has_failed)
    snapshot = Snapshot(
        topology, block_receipts, files["flows"], files["records"], cached, files["annotations"], bounds
    )
    return opened_as(snapshot, events, block_receipts, rows)


def opened_as(
    snapshot: S,
    events: Sequence[Mapping[str, Any]],
    receipts: Collection[Receipt],
    rows: Mapping[str, int] | None = None,
) -> OpenedApplication[S]:
    """The application that `snapshot` is of."""
    started: Mapping[str, Any] = next(
        (event for event in events if event["type"] == contract.APPLICATION_STARTED), {}
    )
    return OpenedApplication(
        summary(snapshot.graph.topology.application_id, events, receipts, rows),
        snapshot,
        # A program without Spark may say nothing of it, and send values.
        is_detailed=bool(started.get("detailed")) or bool(snapshot.graph.blocks.valued),
        values_sample=_fraction(started.get("values_sample")),
    )


def _fraction(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else 1.0
