"""One application's lineage at one version of the flow store, ready to be walked.

Flows are read by row group (`flow_files`), and so are keys and values of single records (`record_texts`). An
in-memory DuckDB searches these; its view `records` reads the store's Parquet files in place. Every query
takes a cursor of its own: they may run side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import duckdb

from lineage_service.completeness import Receipt
from lineage_service.store.errors import translated_read_errors
from lineage_service.store.tables import Bounds
from lineage_service.tracing.columns.annotation_files import AnnotationCache, AnnotationFiles
from lineage_service.tracing.columns.column_cache import ColumnCache
from lineage_service.tracing.columns.flow_files import FlowFiles
from lineage_service.tracing.columns.record_texts import RecordTexts, TextCache
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.columns.stored_files import IdleFiles
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.topology import Topology

__all__ = ["CachedRows", "Snapshot"]

_RECORD_COLUMNS = "node INTEGER, run BIGINT, pos BIGINT, kind VARCHAR, type VARCHAR, text VARCHAR"


@dataclass(frozen=True)
class CachedRows:
    """What was read last of the files of all applications. Snapshots share it."""

    columns: ColumnCache = field(default_factory=ColumnCache)
    texts: TextCache = field(default_factory=TextCache)
    annotations: AnnotationCache = field(default_factory=AnnotationCache)
    idle: IdleFiles = field(default_factory=IdleFiles)

    @classmethod
    def within(cls, max_bytes: int | None) -> CachedRows:
        """Caches that take so much memory together: half of it is for flows. None: their own bounds."""
        if max_bytes is None:
            return cls()
        quarter = max_bytes // 4
        return cls(ColumnCache(2 * quarter), TextCache(quarter), AnnotationCache(quarter))


class Snapshot:
    """What is needed to walk: the graph, the flows, what is said of single outputs, and the texts."""

    def __init__(
        self,
        topology: Topology,
        receipts: Iterable[Receipt],
        flow_files: Sequence[str],
        record_files: Sequence[str],
        cached: CachedRows | None = None,
        annotation_files: Sequence[str] = (),
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        """Files are Parquet files of the application, on this machine. `bounds`: as far as they are known."""
        cached = cached or CachedRows()
        self.flows = FlowFiles(flow_files, cached.columns, cached.idle)
        self.texts = RecordTexts(record_files, cached.texts, cached.idle, bounds)
        self.annotations = AnnotationFiles(annotation_files, cached.annotations, cached.idle, bounds)
        self._record_files = record_files
        self._lock = Lock()
        self._database: duckdb.DuckDBPyConnection | None = None
        self.graph = LineageGraph(topology, receipts, self.flows)

    def cursor(self) -> StoreCursor:
        """For a query that may ask something of the view `records`."""
        return StoreCursor(lambda: self.database.cursor())

    @property
    def database(self) -> duckdb.DuckDBPyConnection:
        """Made when it is needed: that takes longer than many a walk.

        Raises StoreUnavailableError when a file is gone or damaged.
        """
        with self._lock:
            if self._database is None:
                database = duckdb.connect(":memory:")
                database.execute("SET threads = 2")
                with translated_read_errors():
                    _view(database, "records", self._record_files, _RECORD_COLUMNS)
                self._database = database
            return self._database


def _view(database: duckdb.DuckDBPyConnection, name: str, files: Sequence[str], columns: str) -> None:
    if not files:
        database.execute(f"CREATE TABLE {name} ({columns})")
        return
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    database.execute(
        f"CREATE VIEW {name} AS SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false)"
    )
