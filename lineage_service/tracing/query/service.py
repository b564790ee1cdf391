"""All of `Queries`, over the flow store: finds the start, walks, shows.

Queries of several threads run side by side, each on a cursor of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lineage_service.conditions.filters import Where
from lineage_service.datasets.catalogue_cache import StoredDatasets
from lineage_service.datasets.pages import dataset_page, datasets_page
from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import (
    Absence,
    Application,
    Choices,
    Comparison,
    Contrast,
    DatasetPage,
    Datasets,
    Edge,
    Explanation,
    Failures,
    Graph,
    Missing,
    Node,
    RecordPage,
    RowHistory,
    RowSet,
    Slow,
    Suspects,
    Trace,
    TracedNode,
    Values,
)
from lineage_service.newest_application import application_named
from lineage_service.queries import (
    AbsenceQuery,
    CompareQuery,
    ContrastQuery,
    DatasetQuery,
    DatasetsQuery,
    ExplanationQuery,
    MissingQuery,
    RecordQuery,
    RowQuery,
    RowSetQuery,
    SlowQuery,
    StartQuery,
    SuspectsQuery,
    TraceQuery,
)
from lineage_service.tracing.columns.application import (
    StoreReader,
)
from lineage_service.tracing.columns.snapshot import CachedRows
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.edges import public_edges, record_count
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.summaries import Receipts, Summaries
from lineage_service.tracing.query.absent_keys import AbsentKeys
from lineage_service.tracing.query.compared_explanations import ComparedExplanations
from lineage_service.tracing.query.comparisons import Comparisons
from lineage_service.tracing.query.contrasts import ContrastReader
from lineage_service.tracing.query.dataset_users import DatasetUsers
from lineage_service.tracing.query.earlier_runs import earlier_runs
from lineage_service.tracing.query.explanations import ExplanationReader
from lineage_service.tracing.query.failures import FailureReader
from lineage_service.tracing.query.local_traces import LocalTraces
from lineage_service.tracing.query.missing_rows import MissingRows
from lineage_service.tracing.query.missing_values import how_to_see, value_steps
from lineage_service.tracing.query.open_applications import OpenApplications, Opened
from lineage_service.tracing.query.records import RecordPages
from lineage_service.tracing.query.requested_columns import RequestedColumns
from lineage_service.tracing.query.row_choices import RowChoices
from lineage_service.tracing.query.row_extraction import RowExtraction
from lineage_service.tracing.query.row_histories import RowHistories
from lineage_service.tracing.query.row_holders import RowHolders
from lineage_service.tracing.query.row_set_reader import RowSetReader
from lineage_service.tracing.query.shown_records import shown_by
from lineage_service.tracing.query.shown_starts import shown_starts
from lineage_service.tracing.query.slow_records import SlowRecordReader
from lineage_service.tracing.query.source_files import SourceFiles
from lineage_service.tracing.query.suspects import SuspectReader
from lineage_service.tracing.query.table_rows import TableRows
from lineage_service.tracing.query.trace_page import TracePage
from lineage_service.tracing.query.trace_results import (
    ShownRecords,
    nodes_of,
    reason_of,
    state_of,
    trace_of,
)
from lineage_service.tracing.query.trace_starts import TraceStarts
from lineage_service.tracing.tables.table_versions import TableVersions
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.cursors import Page
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.result import Position, Walked
from lineage_service.tracing.walk.starts import end_named, node_id_named, record_named
from lineage_service.tracing.walk.walk_cache import LocalTrace, WalkCache
from spark_agent import contract


class LineageQueries:
    """`Queries` over a flow store."""

    def __init__(self, store: StoreReader, *, time_budget_s: float, cache_bytes: int | None = None) -> None:
        """`cache_bytes`: for what was read of flows and records. None: the bounds of each cache."""
        self._time_budget_s = time_budget_s
        self._locations = RecordLocations()
        self._show = shown_by(self._locations)
        self._pages = RecordPages(self._locations, self._show, time_budget_s=time_budget_s)
        self._walks = WalkCache()
        self._files = FilesOfApplications(store)
        self._choices = RowChoices(self._locations, self._show, time_budget_s=time_budget_s)
        receipts = Receipts()
        self._summaries = Summaries(store, receipts)
        self._applications = OpenApplications(store, receipts, CachedRows.within(cache_bytes))
        self._datasets = StoredDatasets(
            store, lambda application_id: self._summaries.of(application_id).complete
        )
        self._users = DatasetUsers(self._files, self._datasets)
        files = self._locations.file_rows.files
        holders = RowHolders(self._applications.open, self._files, self._locations)
        versions = TableVersions(files)
        self._tables = TableRows(files, versions, holders, time_budget_s=time_budget_s)
        self._histories = RowHistories(files, versions, holders, self._trace_within)
        self._missing = MissingRows(
            self._applications.open,
            self._locations,
            self._show,
            self._files,
            versions,
            self._choices.page,
            time_budget_s=time_budget_s,
        )
        self._failures = FailureReader(self._trace_at, self._locations, time_budget_s=time_budget_s)
        self._starts = TraceStarts(self._applications, self._locations, self._choices, self._failures)
        self._traces = LocalTraces(self._applications.open, self._files, self._locations)
        self._row_sets = RowSetReader(
            self._starts,
            self._traces,
            self._failures,
            self._walks,
            self._locations,
            self._show,
            time_budget_s=time_budget_s,
        )
        self._explanations = ExplanationReader(
            self._starts,
            self._traces,
            self._failures,
            self._walks,
            self._show,
            time_budget_s=time_budget_s,
        )
        self._compared = ComparedExplanations(
            self._applications.open, self._explanations.explanation, self._pages.page
        )
        self._absent_keys = AbsentKeys(
            self._applications.open, self._locations, versions, self._show, time_budget_s=time_budget_s
        )
        #: The input files of applications, for row sets of them.
        self.source_files = SourceFiles(self._applications.open, self._locations, self._row_sets.sets)
        self.extraction = RowExtraction(self._applications.open, self._locations)
        self._suspects = SuspectReader(
            self._locations,
            self._positions_named,
            lambda opened: earlier_runs(opened, self.newest_applications(), self._applications),
            time_budget_s=time_budget_s,
        )
        self._slow = SlowRecordReader(self._trace_at, time_budget_s=time_budget_s)
        self._contrasts = ContrastReader(
            self._traced,
            self._positions_named,
            self._failures,
            lambda application_id: self._applications.open(application_id, has_failed=True),
            time_budget_s=time_budget_s,
        )
        self._comparisons = Comparisons(
            self._applications,
            self._datasets,
            self._locations,
            self._show,
            self.trace,
            time_budget_s=time_budget_s,
        )

    # -- applications and graphs ---------------------------------------------------------------------

    def newest_applications(self) -> Iterator[Application]:
        return self._summaries.newest_first()

    def applications(self) -> tuple[Application, ...]:
        return tuple(self.newest_applications())

    def application(self, application_id: str) -> Application:
        return self._summaries.of(application_id)

    def graph(self, application_id: str) -> Graph:
        opened = self._applications.open(application_id)
        public = [node for node in opened.graph.topology.nodes.values() if node.is_public]
        nodes = tuple(self._node(opened, node) for node in sorted(public, key=lambda node: node.number))
        edges = [
            Edge(
                source=contract.node_id(application_id, edge.source),
                target=contract.node_id(application_id, edge.target),
                flows=edge.flows,
                shuffle=edge.is_shuffle,
            )
            for edge in public_edges(opened.graph)
        ]
        return Graph(application_id=application_id, nodes=nodes, edges=tuple(edges))

    def _node(self, opened: Opened, node: TopologyNode) -> Node:
        application_id = opened.application.application_id
        return Node(
            node_id=contract.node_id(application_id, node.number),
            node=node.number,
            name=node.name,
            description=node.description,
            kind="source" if node.kind == "source" else "sink" if node.kind == "sink" else "operator",
            call_site=node.call_site,
            exact=opened.graph.is_exact(node.number),
            reason=reason_of(opened.graph, node),
            dataset=node.dataset,
            records=record_count(opened.graph, node.number),
            has_values=node.number in opened.graph.blocks.valued,
            state=state_of(node),
            error=None if node.outcome is None else node.outcome.error,
            schema=node.schema,
            schema_note=node.schema_note,
        )

    # -- datasets -----------------------------------------------------------------------------------

    def datasets(self, query: DatasetsQuery) -> Datasets:
        return datasets_page(self._datasets.state(), query)

    def dataset(self, query: DatasetQuery) -> DatasetPage:
        return dataset_page(self._datasets.state(), query)

    # -- records -------------------------------------------------------------------------------------

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        return self._pages.page(self._applications.open(application_id), query)

    # -- traces --------------------------------------------------------------------------------------

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        opened, begin = self._starts.opened(application_id, query)
        return self._traced(opened, query, begin)

    def _trace_within(self, application_id: str, query: TraceQuery, seconds: float) -> Trace:
        opened, begin = self._starts.opened(application_id, query)
        return self._traced(opened, query, begin, seconds)

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet:
        return self._row_sets.row_set(application_id, query)

    def explanation(self, application_id: str, query: ExplanationQuery) -> Explanation:
        explanation = self._explanations.explanation(application_id, query)
        if query.compare is None or query.cursor is not None:
            return explanation
        other = application_named(self, query.compare)
        return replace(explanation, compared=self._compared.compared(explanation, query, other))

    def absence(self, application_id: str, query: AbsenceQuery) -> Absence:
        return self._absent_keys.absence(application_id, query)

    def failures(self, application_id: str) -> Failures:
        opened = self._applications.open(application_id)
        if opened.graph.topology.failed:
            opened = self._applications.open(application_id, has_failed=True)
        return self._failures.failures(opened)

    def slow(self, application_id: str, query: SlowQuery) -> Slow:
        return self._slow.slow(self._applications.open(application_id), query)

    def suspects(self, application_id: str, query: SuspectsQuery) -> Suspects:
        return self._suspects.suspects(self._applications.open(application_id), query)

    def contrast(self, application_id: str, query: ContrastQuery) -> Contrast:
        return self._contrasts.contrast(self._applications.open(application_id), query)

    def positions(self, application_id: str, starts: Sequence[StartQuery]) -> list[Position]:
        """The records of these starts, in the runs that hold them. Raises NotFoundError, TimeBudgetError."""
        query = TraceQuery(direction="backward", starts=tuple(starts), across=False)
        opened, begin = self._starts.opened(application_id, query)
        cursor = opened.snapshot.cursor()
        with time_budget(cursor, self._time_budget_s) as check:
            return [*begin, *self._starts.named(opened, cursor, query, check)]

    def _positions_named(self, opened: Opened, query: TraceQuery, check: Check) -> list[Position]:
        return self._starts.named(opened, None, query, check)

    def _trace_at(self, opened: Opened, start: Position, query: TraceQuery) -> Trace:
        return self._traced(opened, query, [start])

    def _traced(
        self,
        opened: Opened,
        query: TraceQuery,
        begin: Sequence[Position] = (),
        seconds: float | None = None,
    ) -> Trace:
        """From `begin`, and from the records that the query names. `seconds`: less time than others have."""
        seconds = self._time_budget_s if seconds is None else seconds
        application_id = opened.application.application_id
        digest = cursors.digest(application_id, query)
        page = cursors.decode(query.cursor, digest)
        # Whatever is listed of it, the walk is the same.
        walk = cursors.digest(application_id, replace(query, only=None, sort=None, desc=False, filter=None))
        walk += repr(begin or "")
        to = end_named(opened.graph, query.to)
        only = node_id_named(opened.graph, query.only) if query.only else None
        trace: LocalTrace | None = None
        cursor = opened.snapshot.cursor()
        try:
            with time_budget(cursor, seconds) as check:
                starts = list(begin)
                if not begin or query.starts:
                    starts += self._starts.named(opened, cursor, query, check)
                trace = self._walks.take(walk)
                if trace is None:
                    trace = self._traces.new(opened, query, to, starts)
                if not (page.so_far and trace.has_results):
                    trace.advance(check)
                columns = RequestedColumns(query.columns)
                named = shown_starts(self._show, opened, cursor, starts, query, check, columns)
                listed = TracePage(self._locations, trace, query, only, seconds)
                segments = listed.page(page.after, check)
                shown = [self._segment(*segment, query, check, columns, listed) for segment in segments]
                columns.check()
                return trace_of(query, named, trace, segments, shown)
        except TimeBudgetError as error:
            if trace is not None and trace.has_results:
                error.next = cursors.encode(digest, Page(so_far=True))
            raise
        finally:
            if trace is not None:
                self._walks.put(walk, trace)

    def rows(self, query: RowQuery) -> Choices:
        where = None if query.where is None else Where(query.where)  # what is wrong there is said first
        application_id = None if query.application is None else application_named(self, query.application)
        is_of_table = query.node is None and (query.version is not None or application_id is None)
        if where is not None and query.dataset is not None and is_of_table:
            table = self._users.table(query.dataset)
            if table is not None:
                query = replace(query, application=application_id)
                return self._tables.page(table, query, where)
        if query.version is not None:
            raise InvalidQueryError(_no_versions(query))
        if query.dataset is not None:
            meant = self._users.meant(query.dataset, query.at, application_id, as_input=query.as_input)
            application_id = meant.application_id
            query = replace(query, dataset=meant.dataset, node=query.node or meant.node)
        if application_id is None:
            raise InvalidQueryError("say which dataset, or which application")
        return self._choices.page(self._applications.open(application_id), query, where)

    def history(self, query: RowQuery) -> RowHistory | Choices:
        if query.where is None or query.dataset is None:
            raise InvalidQueryError("say which row of which table: a condition that only one fulfils")
        where = Where(query.where)
        table = self._users.table(query.dataset)
        if table is None:
            self._users.meant(query.dataset)  # which says that nobody used it
            raise InvalidQueryError(_no_versions(query))
        with time_budget(None, self._time_budget_s) as budget:
            row = self._tables.row(table, query, where, budget)
            return row if isinstance(row, Choices) else self._histories.of(row, query, budget)

    def _segment(
        self,
        opened: Opened,
        walked: Walked,
        query: TraceQuery,
        check: Check,
        columns: RequestedColumns,
        listed: TracePage,
    ) -> tuple[TracedNode, ...]:
        """What one application has on a page."""
        cursor = opened.snapshot.cursor()

        def show(node: TopologyNode, positions: Sequence[Position]) -> ShownRecords:
            request = columns.of(node)
            records = self._show(
                opened, cursor, node, positions, values=query.values, check=check, columns=request
            )
            schema = None if request is None else columns.shown(request, records)
            remarks, remarks_of = listed.remarks(opened, node, check)
            selection = listed.matches(opened, node, check)
            return ShownRecords(
                records,
                schema,
                remarks,
                remarks_of,
                listed.sample(opened, node),
                matches=None if selection is None else len(selection.places),
                warnings=None if selection is None else selection.warnings,
            )

        return nodes_of(opened, walked, query.direction, show, listed.unknown_beyond)

    # -- comparisons ---------------------------------------------------------------------------------

    def compare(self, query: CompareQuery) -> Comparison:
        return self._comparisons.compare(
            replace(
                query,
                before=None if query.before is None else application_named(self, query.before),
                after=None if query.after is None else application_named(self, query.after),
            )
        )

    # -- rows that are in no output -------------------------------------------------------------------

    def missing(self, application_id: str, query: MissingQuery) -> Missing:
        return self._missing.missing(application_id, query)

    # -- values --------------------------------------------------------------------------------------

    def values(self, application_id: str, record: str, node: str | None) -> Values:
        opened = self._applications.open(application_id)
        start_node, partition, offset = record_named(opened.graph, record, node)
        query = TraceQuery(
            direction="backward",
            node=str(start_node.number),
            partition=partition,
            offset=offset,
            limit=20,
            values=True,
        )
        backward = self.trace(application_id, query)
        forward = self.trace(application_id, replace(query, direction="forward"))
        path = (*reversed(backward.nodes), *forward.nodes[1:])
        return Values(
            node_id=contract.node_id(application_id, start_node.number),
            record_id=contract.record_id(start_node.kind, partition, offset),
            captured=bool(opened.graph.blocks.valued),
            how=how_to_see(opened, path),
            steps=tuple(value_steps(opened, path)),
        )


def _no_versions(query: RowQuery) -> str:
    if query.where is None:
        return "a version needs where: the rows of that version that fulfil it"
    if query.node is not None or query.dataset is None:
        return "a version is one of a table: name the table, and no node"
    return (
        f"{query.dataset} is no table of Delta Lake, nor one of Iceberg with files of Parquet, that an "
        "application wrote or read: it has no versions"
    )
