"""The in-memory twin of `Queries`: lineages given as plain values, queried like the real ones.

Promises the same results as the tracing over the flow store for what it was given: backward and forward are
symmetric, totals are never the truncated counts. Knows nothing of stores and keeps everything in memory, so
it is for tests, demonstrations and the page's development.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lineage_service.conditions.column_types import LOOSE_TEXT
from lineage_service.conditions.columns import delimited
from lineage_service.conditions.filters import Where
from lineage_service.datasets.catalogue import Catalogue
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.datasets.pages import CatalogueState, dataset_page, datasets_page
from lineage_service.datasets.uses import ApplicationDetails, ApplicationUses, Use, UseDetails
from lineage_service.errors import (
    InvalidQueryError,
    NotFoundError,
    NothingMatchesError,
    UnknownApplicationError,
)
from lineage_service.lineage import (
    Application,
    Choice,
    Choices,
    Column,
    ComparedRow,
    ComparedRun,
    Comparison,
    DatasetPage,
    Datasets,
    Direction,
    Flow,
    Graph,
    Node,
    Record,
    RecordPage,
    Remark,
    Trace,
    TracedNode,
    TraceStart,
    Values,
    ValueStep,
)
from lineage_service.newest_application import LAST
from lineage_service.outcomes import NodeOutcome, Outcome
from lineage_service.queries import (
    ALL_COLUMNS,
    CompareQuery,
    DatasetQuery,
    DatasetsQuery,
    RecordQuery,
    RowQuery,
    TraceQuery,
)
from lineage_service.tracing.files.file_nodes import FileHolder, nodes_meant
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.query.remarks import remarks_on
from lineage_service.tracing.query.row_order import ordered
from spark_agent.contract.dataset_names import normal_name

__all__ = ["MemoryLineage", "MemoryQueries"]

_HOW_TO_CAPTURE = "Run the job again with spark.lineage.detailed=true to capture values."


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLineage:
    """All that is known of one application.

    `records` are by node id, in order. `flows` need not be sorted. `values` are the captured ones; a record's
    own `value` is ignored, because a result carries it only when it was asked for.
    """

    application: Application
    graph: Graph
    records: Mapping[str, tuple[Record, ...]]
    flows: tuple[Flow, ...] = ()
    values: tuple[ValueStep, ...] = ()


@dataclass(slots=True)
class _Index:
    """One lineage, prepared for queries. A record is known by its hash, NODE_ID#RECORD_ID."""

    lineage: MemoryLineage
    nodes: dict[str, Node] = field(init=False)
    records: dict[str, tuple[Node, Record]] = field(init=False)
    values: dict[str, ValueStep] = field(init=False)
    inputs: dict[str, list[Flow]] = field(init=False)
    outputs: dict[str, list[Flow]] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = {node.node_id: node for node in self.lineage.graph.nodes}
        self.records = {
            _hash(node_id, record.record_id): (self.nodes[node_id], replace(record, value=None))
            for node_id, records in self.lineage.records.items()
            for record in records
        }
        self.values = {_hash(step.node_id, step.record_id): step for step in self.lineage.values}
        self.inputs, self.outputs = {}, {}
        for flow in self.lineage.flows:
            self.inputs.setdefault(flow.hash_out, []).append(flow)
            self.outputs.setdefault(flow.hash_in, []).append(flow)

    def node(self, name: str) -> Node:
        """The node with this id or number."""
        for node in self.nodes.values():
            if name in (node.node_id, str(node.node)):
                return node
        application_id = self.lineage.application.application_id
        raise NotFoundError(f"application {application_id} has no node {name}")

    def of_node(self, node: Node) -> list[Record]:
        return [record for of, record in self.records.values() if of is node]

    def with_value(self, hash_: str, record: Record) -> Record:
        step = self.values.get(hash_)
        return record if step is None else replace(record, value=step.value, value_type=step.type)


class MemoryQueries:
    """Answers `Queries` (lineage_service.queries) from the lineages that it was given."""

    def __init__(self, lineages: Iterable[MemoryLineage] = ()) -> None:
        self._indexes = {lineage.application.application_id: _Index(lineage) for lineage in lineages}

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
        catalogue = Catalogue(_uses(index.lineage) for index in self._indexes.values())
        return CatalogueState(
            catalogue=catalogue,
            neighbours=Neighbours(catalogue),
            details_of=lambda application_id: _details(self._index(application_id).lineage),
            now_ms=0,
        )

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        """The cursor is the number of records that the pages before have shown."""
        index = self._index(application_id)
        node = index.node(query.node)
        if query.offset is not None and query.partition is None:
            raise InvalidQueryError("offset needs partition: offsets count from 0 in each")
        records = [
            index.with_value(_hash(node.node_id, record.record_id), record) for record in index.of_node(node)
        ]
        records = [record for record in records if _matches(record, query)]
        if query.where is not None:
            hashes = [_hash(node.node_id, record.record_id) for record in records]
            records = [index.records[hash_][1] for hash_ in _fulfilling(index, hashes, query.where)]
        first = _skipped(query.cursor)
        last = first + query.limit
        return RecordPage(
            node_id=node.node_id,
            total=len(records),
            records=_listed(records[first:last], query.columns),
            next=str(last) if last < len(records) else None,
            schema=_schema(records[first:last], query.columns),
        )

    def rows(self, query: RowQuery) -> Choices:
        """Of sinks, or of sources where no sink has the dataset. The cursor is as that of records."""
        application_id = query.application or self._user_of(query.dataset or "")
        if application_id == LAST and LAST not in self._indexes:
            application_id = self.applications()[0].application_id
        index = self._index(application_id)
        hashes = _rows_of(index, query.dataset, query.node)
        is_written = any(index.records[hash_][0].kind == "sink" for hash_ in hashes)
        direction = query.direction or ("backward" if is_written else "forward")
        kind = "sink" if is_written else "source"
        hashes = [hash_ for hash_ in hashes if index.records[hash_][0].kind == kind]
        nodes = {index.records[hash_][0].node_id for hash_ in hashes}
        if query.where is not None:
            hashes = _fulfilling(index, hashes, query.where)
            if not hashes:
                raise NothingMatchesError(f"no row fulfils {query.where}")
        first = _skipped((query.cursor or "0:0:0").rpartition(":")[2])
        page = hashes[first : first + query.limit] if query.where is not None else []
        if query.row is not None:
            page = [hash_ for hash_ in hashes if _row_of(index, hash_) == query.row]
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
            choices=tuple(_choice(index, hash_) for hash_ in page),
            next=None if is_last else f"0:0:{first + query.limit}",
        )

    def compare(self, query: CompareQuery) -> Comparison:
        """Of all sinks of two applications; equal rows are the same, and none are paired otherwise."""
        if query.before is None or query.after is None:
            raise NotFoundError("two runs of one dataset are not known here")
        if query.before == query.after:
            raise InvalidQueryError(f"{query.before} is one run: give two runs of a job")
        indexes = self._index(query.before), self._index(query.after)
        before, after = map(_sink_rows, indexes)
        common = Counter(text for _, text in before) & Counter(text for _, text in after)
        gone, new = _others(before, common), _others(after, common)
        return Comparison(
            runs=tuple(map(_compared_run, indexes, (before, after))),
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

    def _user_of(self, dataset: str) -> str:
        for application in self.applications():
            if _rows_of(self._indexes[application.application_id], dataset, None):
                return application.application_id
        raise NotFoundError(f"no application wrote or read {dataset}")

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        """Each page lists the next `limit` records of every node, and the flows between those."""
        index = self._index(application_id)
        start_node, start = _start(index, query)
        to = None if query.to is None else index.node(query.to)
        only = None if query.only is None else index.node(query.only)
        path, reached = _reach(index, start_node, start, query, to)

        first = _skipped(query.cursor)
        last = first + query.limit
        shown: set[str] = set()
        nodes = []
        for node in path:
            hashes = sorted(reached[node.node_id], key=lambda hash_: _position(index, hash_))
            listed = _selected(index, hashes, query) if only is node else hashes
            page = listed[first:last] if only in (None, node) else []
            shown.update(page)
            records = [index.records[hash_][1] for hash_ in page]
            remarks = _remarks(index, node, hashes, query)
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
                        for hash_, record in zip(page, _listed(records, query.columns), strict=True)
                    ),
                    reason=node.reason,
                    state=node.state,
                    schema=_schema(records, query.columns),
                    matches=len(listed) if query.filter is not None and only is node else None,
                    warnings=() if query.filter is not None and only is node else None,
                    remarks=remarks,
                    remarks_of=None if remarks is None else len(hashes),
                )
            )
        sizes = (
            node.total if node.matches is None else node.matches
            for node in nodes
            if only is None or node.node_id == only.node_id
        )
        more = any(size > last for size in sizes)
        starts = tuple(_trace_starts(index, start_node, start, query))
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

    def values(self, application_id: str, record: str, node: str | None) -> Values:
        """The captured values on the record's lineage path, its origins first."""
        index = self._index(application_id)
        query = TraceQuery(direction="backward", record=record, node=node)
        start_node, start = _start(index, query)
        on_path: set[str] = set()
        for direction in ("backward", "forward"):
            _, reached = _reach(index, start_node, start, replace(query, direction=direction), None)
            on_path.update(*reached.values())
        order = {node_id: place for place, node_id in enumerate(_topological(index.lineage.graph))}
        steps = [step for hash_, step in index.values.items() if hash_ in on_path]
        return Values(
            node_id=start_node.node_id,
            record_id=index.records[start[0]][1].record_id,
            captured=bool(steps),
            how="" if steps else _HOW_TO_CAPTURE,
            steps=tuple(sorted(steps, key=lambda step: order[step.node_id])),
        )

    def _index(self, application_id: str) -> _Index:
        try:
            return self._indexes[application_id]
        except KeyError:
            raise UnknownApplicationError(application_id) from None


def _uses(lineage: MemoryLineage) -> ApplicationUses:
    """What an application wrote and read, by its graph: what ended is known of it, not when."""
    application, nodes = lineage.application, {node.node_id: node for node in lineage.graph.nodes}
    parents: dict[str, list[str]] = {}
    for edge in lineage.graph.edges:
        parents.setdefault(edge.target, []).append(edge.source)

    def behind(node_id: str) -> Iterator[tuple[int, bool]]:
        reached, stack = set[str](), [node_id]
        while stack:
            node = nodes[stack.pop()]
            if node.node_id not in reached:
                reached.add(node.node_id)
                stack += parents.get(node.node_id, ())
                if node.kind == "source":
                    yield node.node, True

    return ApplicationUses(
        application_id=application.application_id,
        name=application.name,
        began=application.started,
        outcome=Outcome(
            state=application.state, ended=application.ended, error=application.error, last_seen=None
        ),
        uses=tuple(
            Use(
                node=node.node,
                operation=node.name,
                call_site=node.call_site,
                is_write=node.kind == "sink",
                place=normal_name(node.dataset.namespace, node.dataset.name, node.dataset.format),
                format=node.dataset.format,
                at=application.ended or application.started if node.kind == "sink" else application.started,
                outcome=None if node.state is None else NodeOutcome(state=node.state, error=node.error),
                reason=node.reason,
                behind=tuple(behind(node.node_id)) if node.kind == "sink" else (),
            )
            for node in lineage.graph.nodes
            if node.dataset is not None
        ),
    )


def _details(lineage: MemoryLineage) -> ApplicationDetails:
    uses = {node.node: UseDetails(node.records, node.exact, node.reason) for node in lineage.graph.nodes}
    return ApplicationDetails(complete=lineage.application.complete, uses=uses)


def _hash(node_id: str, record_id: str) -> str:
    return f"{node_id}#{record_id}"


def _position(index: _Index, hash_: str) -> tuple[int, int]:
    record = index.records[hash_][1]
    return record.partition, record.offset


def _listed(records: Iterable[Record], columns: Sequence[str] | None) -> tuple[Record, ...]:
    """With the columns that are asked for."""
    return tuple(
        record
        if record.source is None
        else replace(record, source=replace(record.source, columns=_chosen(record, columns)))
        for record in records
    )


def _chosen(record: Record, columns: Sequence[str] | None) -> dict[str, Any] | None:
    every = record.source.columns if record.source is not None else None
    if every is None or columns is None:
        return None
    return {name: value for name, value in every.items() if name in columns or ALL_COLUMNS in columns}


def _schema(records: Iterable[Record], columns: Sequence[str] | None) -> tuple[Column, ...] | None:
    if columns is None:
        return None
    names = dict.fromkeys(name for record in records for name in _chosen(record, columns) or ())
    return tuple(Column(name=name, type="") for name in names)


def _selected(index: _Index, hashes: Sequence[str], query: TraceQuery) -> list[str]:
    """Those that fulfil the condition of the query, by the column that it sorts by."""
    if query.filter is not None:
        hashes = _fulfilling(index, hashes, query.filter)
    if query.sort is None:
        return list(hashes)
    sources = {_position(index, hash_): index.records[hash_][1].source for hash_ in hashes}
    values = {place: (source.columns or {}).get(query.sort) for place, source in sources.items() if source}
    by_place = {_position(index, hash_): hash_ for hash_ in hashes}
    return [by_place[place] for place in ordered(list(by_place), values, desc=query.desc)]


def _remarks(
    index: _Index, node: Node, hashes: Iterable[str], query: TraceQuery
) -> tuple[Remark, ...] | None:
    end = "source" if query.direction == "backward" else "sink"
    if not query.remarks or node.kind != end:
        return None
    records = (index.records[hash_][1] for hash_ in hashes)
    return remarks_on([(record.record_id, record.source) for record in records if record.source], {})


def _skipped(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidQueryError("the cursor is not one that this service gave out")
    return int(cursor)


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


def _start(index: _Index, query: TraceQuery) -> tuple[Node, list[str]]:
    """The node and the hashes of the records that the query begins at."""
    hashes = [hash_ for hash_, (node, record) in index.records.items() if _begins(index, query, node, record)]
    if query.where is not None:
        kind = "sink" if query.direction == "backward" else "source"
        hashes = _rows_of(index, query.path, query.node)
        hashes = [hash_ for hash_ in hashes if query.node or index.records[hash_][0].kind == kind]
        hashes = _fulfilling(index, hashes, query.where)
    if not hashes:
        raise NotFoundError("there is no such record")
    if query.path is not None:
        nodes = (index.records[hash_][0] for hash_ in hashes)
        meant = nodes_meant({node.node: FileHolder(node.kind) for node in nodes}, query.direction)
        meant = meant[:1] if query.direction == "backward" else meant
        hashes = [hash_ for hash_ in hashes if index.records[hash_][0].node in meant]
        return index.node(str(meant[0])), hashes
    node_ids = {index.records[hash_][0].node_id for hash_ in hashes}
    if len(node_ids) > 1:
        raise InvalidQueryError(
            f"the record is in several nodes ({', '.join(sorted(node_ids))}): say which node"
        )
    return index.nodes[node_ids.pop()], hashes


def _rows_of(index: _Index, dataset: str | None, node: str | None) -> list[str]:
    """The records that are rows of a file, or of a folder."""
    pattern = PathPattern(dataset or "/")
    return [
        hash_
        for hash_, (of, record) in index.records.items()
        if record.source is not None
        and pattern.fits(record.source.path)
        and (node is None or index.node(node) is of)
    ]


def _row_of(index: _Index, hash_: str) -> int | None:
    source = index.records[hash_][1].source
    return None if source is None else source.row


def _fulfilling(index: _Index, hashes: Sequence[str], where: str) -> list[str]:
    """Records have one column, `value`: the row of the file, else the captured value."""
    compiled = Where(where).on(delimited({"value": LOOSE_TEXT}))
    records = [index.with_value(hash_, index.records[hash_][1]) for hash_ in hashes]
    texts = [record.value if record.source is None else record.source.text for record in records]
    database = searched_database(())
    try:
        rows = pa.table({"record": range(len(texts)), "c0": pa.array(texts, pa.string())})
        database.register("rows", rows)
        query = f"SELECT record FROM rows WHERE {compiled.sql} ORDER BY record"
        matches = database.execute(query, list(compiled.parameters)).fetchall()
    finally:
        database.close()
    return [hashes[at] for (at,) in matches]


def _choice(index: _Index, hash_: str) -> Choice:
    node, record = index.records[hash_]
    source = record.source
    return Choice(
        node_id=node.node_id,
        record_id=record.record_id,
        path=None if source is None else source.path,
        row=None if source is None else source.row,
        line=None if source is None else source.line,
        columns=None if source is None else {"value": source.text},
        text=record.value if source is None else source.text,
    )


def _trace_starts(
    index: _Index, start_node: Node, start: Sequence[str], query: TraceQuery
) -> Iterator[TraceStart]:
    """The nodes of the records `start`, `start_node` first."""
    by_node: dict[str, list[Record]] = {start_node.node_id: []}
    for node, record in (index.records[hash_] for hash_ in start):
        by_node.setdefault(node.node_id, []).append(record)
    for node_id, records in by_node.items():
        node = index.nodes[node_id]
        yield TraceStart(
            node_id=node_id,
            application_id=index.lineage.application.application_id,
            application_name=index.lineage.application.name,
            name=node.name,
            kind=node.kind,
            total=len(records),
            records=_listed(records[: query.limit], query.columns),
        )


def _begins(index: _Index, query: TraceQuery, node: Node, record: Record) -> bool:
    if query.node is not None and index.node(query.node) is not node:
        return False
    if query.record is not None:
        names = ("", f"{node.node}#", f"{node.node_id}#")
        return query.record in (f"{name}{record.record_id}" for name in names)
    if query.path is not None:
        source = record.source
        return source is not None and (source.path, source.row) == (query.path, query.row)
    if query.key is not None:
        return record.key == query.key
    return (record.partition, record.offset) == (query.partition, query.offset)


def _reach(
    index: _Index, start_node: Node, start: list[str], query: TraceQuery, to: Node | None
) -> tuple[list[Node], dict[str, set[str]]]:
    """The nodes of the trace, the start's first, and the hashes that were reached at each.

    With `to`, only what lies between the start and that node stays: it is what the start reaches and what
    reaches a record of `to` in turn.
    """
    seen = _spread(index, set(start), query.direction, query.depth)
    if to is not None:
        goal = {hash_ for hash_ in seen if index.records[hash_][0] is to}
        back: Direction = "forward" if query.direction == "backward" else "backward"
        seen &= _spread(index, goal, back, None) | set(start)
    reached: dict[str, set[str]] = {start_node.node_id: set()}
    for hash_ in seen:
        reached.setdefault(index.records[hash_][0].node_id, set()).add(hash_)
    order = _topological(index.lineage.graph)
    if query.direction == "backward":
        order.reverse()
    return [index.nodes[node_id] for node_id in order if node_id in reached], reached


def _spread(index: _Index, start: set[str], direction: Direction, depth: int | None) -> set[str]:
    """All hashes within `depth` flows of the start, the start among them."""
    seen, frontier = set(start), set(start)
    while frontier and (depth is None or depth > 0):
        if direction == "backward":
            frontier = {flow.hash_in for hash_ in frontier for flow in index.inputs.get(hash_, ())}
        else:
            frontier = {flow.hash_out for hash_ in frontier for flow in index.outputs.get(hash_, ())}
        frontier -= seen
        seen |= frontier
        depth = None if depth is None else depth - 1
    return seen


def _topological(graph: Graph) -> list[str]:
    """Node ids, each after all that send records to it; in the graph's order otherwise."""
    waiting = {node.node_id: 0 for node in graph.nodes}
    for edge in graph.edges:
        waiting[edge.target] += 1
    order: list[str] = []
    while waiting:
        ready = [node_id for node_id, count in waiting.items() if count == 0]
        if not ready:
            raise ValueError(f"the graph of {graph.application_id} has a cycle")
        for node_id in ready:
            del waiting[node_id]
            for edge in graph.edges:
                if edge.source == node_id:
                    waiting[edge.target] -= 1
        order += ready
    return order


def _sink_rows(index: _Index) -> list[tuple[ComparedRow, str]]:
    rows = []
    for hash_, (node, record) in index.records.items():
        if node.kind == "sink" and record.source is not None and record.source.text is not None:
            source = record.source
            row = ComparedRow(
                key=None, record=hash_, path=source.path, row=source.row, columns={"value": source.text}
            )
            rows.append((row, record.source.text))
    return rows


def _others(rows: Iterable[tuple[ComparedRow, str]], common: Counter[str]) -> list[ComparedRow]:
    """Those that are not among these texts, each as often as it is there."""
    todo = Counter(common)
    others = []
    for row, text in rows:
        if todo[text]:
            todo[text] -= 1
        else:
            others.append(row)
    return others


def _compared_run(index: _Index, rows: Sequence[object]) -> ComparedRun:
    application = index.lineage.application
    sink = next(node for node in index.nodes.values() if node.kind == "sink")
    return ComparedRun(
        application_id=application.application_id,
        name=application.name,
        started=application.started,
        node_id=sink.node_id,
        dataset="" if sink.dataset is None else sink.dataset.name,
        rows=len(rows),
        complete=application.complete,
    )
