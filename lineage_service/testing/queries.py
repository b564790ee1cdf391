"""The in-memory twin of `Queries`: lineages given as plain values, queried like the real ones.

Promises the same results as the tracing over the flow store for what it was given: backward and forward are
symmetric, totals are never the truncated counts. Knows nothing of stores and keeps everything in memory, so
it is for tests, demonstrations and the page's development.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lineage_service.datasets.catalogue import Catalogue
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.datasets.pages import CatalogueState, dataset_page, datasets_page
from lineage_service.errors import (
    InvalidQueryError,
    NotFoundError,
    NothingMatchesError,
    UnknownApplicationError,
)
from lineage_service.lineage import (
    Absence,
    Application,
    Choices,
    Comparison,
    Contrast,
    DatasetPage,
    Datasets,
    Explanation,
    Failures,
    Graph,
    Missing,
    MissingRow,
    Record,
    RecordPage,
    RowHistory,
    RowSet,
    Slow,
    Suspects,
    Trace,
    TracedNode,
    Values,
)
from lineage_service.newest_application import LAST, application_named
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
    SuspectsQuery,
    TraceQuery,
)
from lineage_service.testing.memory.absences import absence_of
from lineage_service.testing.memory.compared_explanations import compared_with
from lineage_service.testing.memory.compared_rows import compared_run, sink_rows, uncommon
from lineage_service.testing.memory.dataset_uses import details_of, uses_of
from lineage_service.testing.memory.explanations import explanation_of
from lineage_service.testing.memory.lineages import LineageIndex, MemoryLineage, hash_of, position_of, skipped
from lineage_service.testing.memory.missing_rows import sinks_of, what_became
from lineage_service.testing.memory.reach import reach, start_of, topological, trace_starts
from lineage_service.testing.memory.row_sets import row_set_of, starts_of
from lineage_service.testing.memory.rows import (
    choice_of,
    fulfilling,
    remarks_of,
    row_of,
    rows_of,
    sample_of,
    schema_of,
    selected,
    with_columns,
)
from lineage_service.testing.memory.suspects import contrast_of, slow_of, suspects_of

__all__ = ["MemoryQueries"]

_HOW_TO_CAPTURE = "Run the job again with spark.lineage.detailed=true to capture values."


class MemoryQueries:
    """Answers `Queries` (lineage_service.queries) from the lineages that it was given."""

    def __init__(self, lineages: Iterable[MemoryLineage] = ()) -> None:
        self._indexes = {lineage.application.application_id: LineageIndex(lineage) for lineage in lineages}

    def newest_applications(self) -> Iterator[Application]:
        return iter(self.applications())

    def applications(self) -> tuple[Application, ...]:
        """Newest first."""
        applications = (index.lineage.application for index in self._indexes.values())
        return tuple(sorted(applications, key=lambda app: (-app.started, app.application_id)))

    def application(self, application_id: str) -> Application:
        return self._index(application_id).lineage.application

    def graph(self, application_id: str) -> Graph:
        return self._index(application_id).lineage.graph

    def datasets(self, query: DatasetsQuery) -> Datasets:
        return datasets_page(self._catalogue(), query)

    def dataset(self, query: DatasetQuery) -> DatasetPage:
        return dataset_page(self._catalogue(), query)

    def _catalogue(self) -> CatalogueState:
        catalogue = Catalogue(uses_of(index.lineage) for index in self._indexes.values())
        return CatalogueState(
            catalogue=catalogue,
            neighbours=Neighbours(catalogue),
            details_of=lambda application_id: details_of(self._index(application_id).lineage),
            now_ms=0,
        )

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        """The cursor is the number of records that the pages before have shown."""
        index = self._index(application_id)
        node = index.node(query.node)
        if query.offset is not None and query.partition is None:
            raise InvalidQueryError("offset needs partition: offsets count from 0 in each")
        records = [
            index.with_value(hash_of(node.node_id, record.record_id), record)
            for record in index.of_node(node)
        ]
        records = [record for record in records if _matches(record, query)]
        if query.where is not None:
            hashes = [hash_of(node.node_id, record.record_id) for record in records]
            records = [index.records[hash_][1] for hash_ in fulfilling(index, hashes, query.where)]
        first = skipped(query.cursor)
        last = first + query.limit
        return RecordPage(
            node_id=node.node_id,
            total=len(records),
            records=with_columns(records[first:last], query.columns),
            next=str(last) if last < len(records) else None,
            schema=schema_of(records[first:last], query.columns),
        )

    def rows(self, query: RowQuery) -> Choices:
        """Of sinks, or of sources where no sink has the dataset. The cursor is as that of records."""
        application_id = query.application or self._user_of(query.dataset or "")
        if application_id == LAST and LAST not in self._indexes:
            application_id = self.applications()[0].application_id
        index = self._index(application_id)
        hashes = rows_of(index, query.dataset, query.node)
        is_written = any(index.records[hash_][0].kind == "sink" for hash_ in hashes)
        direction = query.direction or ("backward" if is_written else "forward")
        kind = "sink" if is_written else "source"
        hashes = [hash_ for hash_ in hashes if index.records[hash_][0].kind == kind]
        nodes = {index.records[hash_][0].node_id for hash_ in hashes}
        if query.where is not None:
            hashes = fulfilling(index, hashes, query.where)
            if not hashes:
                raise NothingMatchesError(f"no row fulfils {query.where}")
        first = skipped((query.cursor or "0:0:0").rpartition(":")[2])
        page = hashes[first : first + query.limit] if query.where is not None else []
        if query.row is not None:
            page = [hash_ for hash_ in hashes if row_of(index, hash_) == query.row]
            if not page:
                raise NotFoundError("there is no such row")
        is_last = query.where is None or len(hashes) <= first + query.limit
        application = index.lineage.application
        return Choices(
            application_id=application_id,
            name=application.name,
            started=application.started,
            direction=direction,
            dataset=query.dataset,
            where=query.where,
            nodes=tuple(sorted(nodes)),
            total=None if query.where is None else len(hashes),
            files=1,
            choices=tuple(choice_of(index, hash_) for hash_ in page),
            next=None if is_last else f"0:0:{first + query.limit}",
        )

    def compare(self, query: CompareQuery) -> Comparison:
        """Of all sinks of two applications; equal rows are the same, and none are paired otherwise."""
        if query.before is None or query.after is None:
            raise NotFoundError("two runs of one dataset are not known here")
        if query.before == query.after:
            raise InvalidQueryError(f"{query.before} is one run: give two runs of a job")
        indexes = self._index(query.before), self._index(query.after)
        before, after = map(sink_rows, indexes)
        common = Counter(text for _, text in before) & Counter(text for _, text in after)
        gone, new = uncommon(before, common), uncommon(after, common)
        return Comparison(
            runs=tuple(map(compared_run, indexes, (before, after))),
            key=(),
            gone=tuple(gone[: query.limit]),
            new=tuple(new[: query.limit]),
            changed=(),
            same=common.total(),
            gone_total=len(gone),
            new_total=len(new),
            changed_total=0,
            complete=all(index.lineage.application.complete for index in indexes),
            exact=True,
            truncated=max(len(gone), len(new)) > query.limit,
            warnings=(),
        )

    def failures(self, application_id: str) -> Failures:
        lineage = self._index(application_id).lineage
        return Failures(
            application_id=application_id,
            name=lineage.application.name,
            failures=lineage.failures,
            complete=all(failure.exact for failure in lineage.failures),
            how="",
        )

    def slow(self, application_id: str, query: SlowQuery) -> Slow:
        return slow_of(self._index(application_id).lineage, query)

    def suspects(self, application_id: str, query: SuspectsQuery) -> Suspects:
        return suspects_of(self._index(application_id).lineage, query)

    def contrast(self, application_id: str, query: ContrastQuery) -> Contrast:
        return contrast_of(self._index(application_id).lineage, query)

    def history(self, query: RowQuery) -> RowHistory | Choices:
        """It has no tables."""
        raise NotFoundError(f"{query.dataset} is no table that an application wrote or read")

    def missing(self, application_id: str, query: MissingQuery) -> Missing:
        """Of rows of inputs; what an output should have is looked for in no input."""
        index = self._index(application_id)
        present = None
        if query.where is None:
            fields = ("record", "node", "partition", "offset", "path", "row")
            named = {name: getattr(query, name) for name in fields}
            _, starts = start_of(index, TraceQuery(direction="forward", **named))
        else:
            hashes = rows_of(index, query.path, query.node)
            is_written = any(index.records[hash_][0].kind == "sink" for hash_ in hashes)
            starts = fulfilling(index, hashes, query.where)
            if is_written and query.direction != "forward":
                present, starts = tuple(choice_of(index, hash_) for hash_ in starts), []
            elif not starts:
                raise NothingMatchesError(f"no row of this input fulfils {query.where}")
        output = None if query.output is None else index.node(query.output)
        rows: list[MissingRow] = []
        reached = []
        for start in starts[: query.limit]:
            graph = index.lineage.graph
            behind = sinks_of(graph, index.records[start][0].node_id)
            sinks = [sink for sink in behind if output in (None, sink)]
            missing, passed = what_became(graph, index.records, index.outputs, start, sinks)
            rows += missing
            reached += [] if passed is None else [passed]
        application = index.lineage.application
        return Missing(
            application_id=application_id,
            name=application.name,
            rows=tuple(rows),
            reached=tuple(reached),
            complete=application.complete,
            inputs=None if present is None else (),
            present=present,
            truncated=len(starts) > query.limit,
        )

    def _user_of(self, dataset: str) -> str:
        for application in self.applications():
            if rows_of(self._indexes[application.application_id], dataset, None):
                return application.application_id
        raise NotFoundError(f"no application wrote or read {dataset}")

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        """Each page lists the next `limit` records of every node, and the flows between those."""
        index = self._index(application_id)
        start_node, start = starts_of(index, query)
        to = None if query.to is None else index.node(query.to)
        only = None if query.only is None else index.node(query.only)
        path, reached = reach(index, start_node, start, query, to)

        first = skipped(query.cursor)
        last = first + query.limit
        shown: set[str] = set()
        nodes = []
        for node in path:
            hashes = sorted(reached[node.node_id], key=lambda hash_: position_of(index, hash_))
            listed = selected(index, hashes, query) if only is node else hashes
            page = listed[first:last] if only in (None, node) else []
            shown.update(page)
            records = [index.records[hash_][1] for hash_ in page]
            remarks = remarks_of(index, node, hashes, query)
            nodes.append(
                TracedNode(
                    node_id=node.node_id,
                    application_id=application_id,
                    application_name=index.lineage.application.name,
                    name=node.name,
                    kind=node.kind,
                    exact=node.exact,
                    total=len(hashes),
                    records=tuple(
                        index.with_value(hash_, record) if query.values else record
                        for hash_, record in zip(page, with_columns(records, query.columns), strict=True)
                    ),
                    reason=node.reason,
                    state=node.state,
                    schema=schema_of(records, query.columns),
                    matches=len(listed) if query.filter is not None and only is node else None,
                    warnings=() if query.filter is not None and only is node else None,
                    remarks=remarks,
                    remarks_of=None if remarks is None else len(hashes),
                    sample=sample_of(index, node, hashes, query),
                )
            )
        sizes = (
            node.total if node.matches is None else node.matches
            for node in nodes
            if only is None or node.node_id == only.node_id
        )
        more = any(size > last for size in sizes)
        starts = tuple(trace_starts(index, start_node, start, query))
        return Trace(
            direction=query.direction,
            start=starts[0].records,
            start_node=start_node.node_id,
            starts=starts,
            complete=index.lineage.application.complete,
            # What the start came out of is in question backward; what it went into, forward.
            exact=all(node.exact for node in (path if query.direction == "backward" else path[1:])),
            truncated=any(node.total > len(node.records) for node in nodes),
            nodes=tuple(nodes),
            flows=tuple(
                flow for flow in index.lineage.flows if flow.hash_in in shown and flow.hash_out in shown
            ),
            next=str(last) if more else None,
        )

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet:
        return row_set_of(self._index(application_id), query)

    def absence(self, application_id: str, query: AbsenceQuery) -> Absence:
        return absence_of(self._index(application_id), query)

    def explanation(self, application_id: str, query: ExplanationQuery) -> Explanation:
        explanation = explanation_of(self._index(application_id), query)
        if query.compare is None or query.cursor is not None:
            return explanation
        other = self._index(application_named(self, query.compare))
        return replace(explanation, compared=compared_with(explanation, other, query))

    def values(self, application_id: str, record: str, node: str | None) -> Values:
        """The captured values on the record's lineage path, its origins first."""
        index = self._index(application_id)
        query = TraceQuery(direction="backward", record=record, node=node)
        start_node, start = start_of(index, query)
        on_path: set[str] = set()
        for direction in ("backward", "forward"):
            _, reached = reach(index, start_node, start, replace(query, direction=direction), None)
            on_path.update(*reached.values())
        order = {node_id: place for place, node_id in enumerate(topological(index.lineage.graph))}
        steps = [step for hash_, step in index.values.items() if hash_ in on_path]
        return Values(
            node_id=start_node.node_id,
            record_id=index.records[start[0]][1].record_id,
            captured=bool(steps),
            how="" if steps else _HOW_TO_CAPTURE,
            steps=tuple(sorted(steps, key=lambda step: order[step.node_id])),
        )

    def _index(self, application_id: str) -> LineageIndex:
        try:
            return self._indexes[application_id]
        except KeyError:
            raise UnknownApplicationError(application_id) from None


def _matches(record: Record, query: RecordQuery) -> bool:
    if query.partition is not None and record.partition != query.partition:
        return False
    if query.offset is not None and record.offset < query.offset:
        return False
    if query.key is not None and record.key != query.key:
        return False
    if query.text is None:
        return True
    texts = [record.record_id, record.key, record.value, record.source and record.source.text]
    return any(query.text.casefold() in text.casefold() for text in texts if text)
