"""Puts the graphs of applications that are complete into Neo4j, with all their flows, within a budget.

Beside the consumers, never in their way: the list of what is to be done is in the graph itself (applications
that ended and that nobody has decided about), so nothing is lost with a process. Which process does it is
decided by a claim in the graph; writing is idempotent, and what a process began and did not end another one
writes again. Knows nothing of Kafka.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lineage_service.completeness import Receipt, completeness_of
from lineage_service.errors import LineageError, UnavailableError
from lineage_service.graph.application_rows import ApplicationGraph
from lineage_service.graph.row_values import EdgeCounts, GraphDataError, NodeCounts
from lineage_service.graph_export.application_reader import TooManyFlows, application_graph
from lineage_service.graph_export.file_rows import FileRowReader
from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.model.edges import counts

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["GraphExport", "from_settings"]

logger = logging.getLogger(__name__)

#: Looks are so far apart. One of a graph with nothing to do is one search in an index.
LOOK_S = 2.0
#: While a store is away.
AWAY_S = 15.0
#: An orderly end waits so long for the application that is being written.
END_S = 20.0


class _Graph(Protocol):
    """What is needed of a `graph_store.GraphStore`."""

    def pending(self, max_flows: int) -> tuple[str, ...]: ...

    def claim(self, application_id: str, max_flows: int) -> str | None: ...

    def count_application(
        self, application_id: str, claim: str, records: NodeCounts, flows: EdgeCounts
    ) -> bool: ...

    def write_application(self, application_id: str, claim: str, graph: ApplicationGraph) -> bool: ...

    def leave_application(self, application_id: str, claim: str, records: int, max_flows: int) -> bool: ...


class _Store(Protocol):
    """What is read of a `flow_store.FlowStore`."""

    def version(self) -> object: ...

    def version_of(self, application_id: str) -> object: ...

    def applications(self) -> Sequence[str]: ...

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]: ...

    def blocks(self, application_id: str) -> Collection[Receipt]: ...

    def rows(self, application_id: str) -> Mapping[str, int]: ...

    def files(self, table: str, application_id: str) -> Sequence[str]: ...

    def deleted(self, application_ids: Iterable[str]) -> set[str]: ...


def from_settings(settings: Settings, graph: _Graph | None) -> GraphExport | None:
    """What the settings want done, or None: there is no graph, or `graph_max_flows` is 0."""
    from lineage_service.store.flow_store import open_store

    if graph is None or not settings.graph_max_flows:
        return None
    rows = FileRowReader(settings.graph_row_characters)
    return GraphExport(partial(open_store, settings), graph, settings.graph_max_flows, rows)


class GraphExport:
    """The work of one process. `look` is for one thread at a time."""

    def __init__(
        self,
        open_store: Callable[[], _Store],
        graph: _Graph,
        max_flows: int,
        rows: FileRowReader | None = None,
    ) -> None:
        """`open_store` is called at the first look, in the thread that looks. Without `rows`, no file is."""
        self._open_store = open_store
        self._graph = graph
        self._max_flows = max_flows
        self._rows = rows
        self._store: _Store | None = None
        self._incomplete: dict[str, object] = {}  # application -> the version of it that was not complete
        self._end = threading.Event()
        self.applications = 0  # whose flows this process put there

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Look again and again, in a thread, until the block ends."""
        thread = threading.Thread(target=self._run, name="graph-export", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join(END_S)

    def look(self) -> int:
        """Decide about every application that can be decided; how many came into the graph.

        Raises UnavailableError.
        """
        written = 0
        pending = self._graph.pending(self._max_flows)
        self._incomplete = {name: self._incomplete[name] for name in pending if name in self._incomplete}
        for application_id in pending:
            if self._end.is_set():
                break
            try:
                written += self._decide(application_id)
            except UnavailableError:
                raise
            except LineageError as error:  # of this application: the others have their turn
                logger.warning("%s: its flows cannot come into the graph: %s", application_id, error)
        self.applications += written
        return written

    def look_at(self, application_id: str) -> None:
        """Decide about one application that is complete, or leave it to another look if Neo4j is away."""
        try:
            if application_id in self._graph.pending(self._max_flows):
                self.applications += self._decide(application_id)
        except LineageError as error:
            logger.warning("%s: its flows are not in the graph yet: %s", application_id, error)

    def _run(self) -> None:
        pause = LOOK_S
        while not self._end.wait(pause):
            try:
                self.look()
                pause = LOOK_S
            except UnavailableError as error:
                logger.warning("flows wait for the graph, trying again in %g s: %s", AWAY_S, error)
                pause = AWAY_S
            except Exception:
                logger.exception("graphs of applications no longer come into Neo4j")
                return

    def _decide(self, application_id: str) -> bool:
        """1. Is it complete? 2. Claim it. 3. Write its counts. 4. Read its flows. 5. Write them, or that
        there are too many.
        """
        self._store = store = self._store or self._open_store()
        version = store.version_of(application_id)
        if self._incomplete.get(application_id, self) == version or store.deleted([application_id]):
            return False
        events = store.events(application_id)
        if not completeness_of(store, application_id, events).is_complete:
            self._incomplete[application_id] = version
            return False
        claim = self._graph.claim(application_id, self._max_flows)
        if claim is None:
            return False
        opened = open_application(stored_files(store, application_id), application_id, events)
        if not self._graph.count_application(application_id, claim, *counts(opened.graph)):
            return False
        graph = application_graph(opened, self._max_flows, self._rows)
        if isinstance(graph, TooManyFlows):
            self._graph.leave_application(application_id, claim, graph.records, self._max_flows)
            return False
        try:
            is_written = self._graph.write_application(application_id, claim, graph)
        except GraphDataError:
            self._incomplete[application_id] = version  # these data can never be written
            raise
        if is_written:
            logger.info(
                "%s: %s records and %s flows are in the graph",
                application_id,
                f"{graph.records:,}",
                f"{len(graph.targets):,}",
            )
        return is_written
