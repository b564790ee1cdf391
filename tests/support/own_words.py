"""A job of which the lineage alone reproduces nothing: words that one document only has.

The job and its lineage are computed by loops, for any rows, so no Spark is needed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from lineage_service.lineage import (
    Application,
    Flow,
    Graph,
    Node,
    Record,
    RecordPage,
    RowSet,
    RowSetFile,
    RowSetSource,
    RowSetSplit,
    SourceRow,
    Trace,
    TracedNode,
)
from lineage_service.queries import RecordQuery, RowSetQuery, TraceQuery
from spark_agent.contract.row_sets import ranges_of
from tests.support.record_ways import NoTexts, reached

NAMES = ("textFile", "flatMap", "distinct", "map", "reduceByKey", "filter", "map", "reduceByKey", "save")
SOURCE, SINK = 0, 8
ORIGINAL, REPLAY = "original", "replay"
Line = tuple[int, str]
RecordId = tuple[int, str]


class Run:
    """The job on some rows of the input: (row, (document, words))."""

    def __init__(self, rows: Sequence[tuple[int, Line]]) -> None:
        self.keys: dict[RecordId, str] = {}
        self.rows: dict[RecordId, int] = {}
        self.parents: dict[RecordId, list[RecordId]] = defaultdict(list)
        self.texts: dict[str, RecordId] = {}
        self.values: dict[RecordId, str] = {}
        self._numbers: Counter[int] = Counter()
        pairs = defaultdict(list)
        for number, (document, words) in rows:
            line = self._new(0, value=f"{document}|{words}")
            self.rows[line] = number
            for word in words.split():
                pairs[word, document].append(self._new(1, line, value=f"{word},{document}"))
        by_word = defaultdict(list)
        for (word, document), members in pairs.items():
            pair = f"{word},{document}"
            by_word[word].append(
                (document, self._new(3, self._new(2, *members, value=pair), value=pair)),
            )
        by_document = defaultdict(list)
        for word, parts in by_word.items():
            documents = f"{word},{[document for document, _ in parts]}"
            group = self._new(4, *(part for _, part in parts), value=documents)
            if len(parts) == 1:
                alone = self._new(5, group, value=documents)
                by_document[parts[0][0]].append(self._new(6, alone, value=f"{parts[0][0]},1"))
        for document, members in by_document.items():
            text = f"{document},{len(members)}"
            total = self._new(7, *members, key=str(document), value=text)
            self.texts[text] = self._new(8, total, value=text)

    def _new(self, node: int, *parents: RecordId, value: str, key: str | None = None) -> RecordId:
        offset = self._numbers[node]
        self._numbers[node] += 1
        record = node, f"{'read#' if node == 0 else 'write#' if node == 8 else ''}0#{offset}"
        self.parents[record] = list(parents)
        self.values[record] = value
        if key is not None:
            self.keys[record] = key
        return record

    def reached(self, starts: Iterable[RecordId], *, forward: bool) -> set[RecordId]:
        return reached(self.parents, starts, forward=forward)


def _offset(record: RecordId) -> int:
    return int(record[1].rpartition("#")[2])


def _row(run: Run, record: RecordId) -> SourceRow | None:
    """Of a source or a sink."""
    if record[0] not in (SOURCE, SINK):
        return None
    path, row = ("/in", run.rows[record]) if record[0] == SOURCE else ("/out", _offset(record))
    return SourceRow(path=path, row=row, line=row + 1, text=run.values[record], warning=None)


def record_of(run: Run, record: RecordId, *, has_values: bool) -> Record:
    return Record(
        record_id=record[1],
        partition=0,
        offset=_offset(record),
        key=run.keys.get(record),
        value=run.values[record] if has_values and record[0] not in (SOURCE, SINK) else None,
        source=_row(run, record),
    )


def trace_of(application: str, run: Run, records: set[RecordId], query: TraceQuery) -> Trace:
    nodes = []
    for number, name in enumerate(NAMES):
        listed = sorted((record for record in records if record[0] == number), key=_offset)
        nodes.append(
            TracedNode(
                node_id=f"{application}#{number}",
                application_id=application,
                application_name="",
                name=name,
                kind="source" if number == SOURCE else "sink" if number == SINK else "operator",
                exact=True,
                total=len(listed),
                records=tuple(record_of(run, record, has_values=query.values) for record in listed),
            )
        )
    if query.direction == "backward":
        nodes.reverse()
    flows = tuple(
        Flow(
            hash_in=f"{application}#{parent[0]}#{parent[1]}",
            hash_out=f"{application}#{record[0]}#{record[1]}",
            node_id=f"{application}#{record[0]}",
        )
        for record in records
        for parent in run.parents[record]
        if parent in records
    )
    return Trace(
        direction=query.direction,
        start=(),
        start_node="",
        starts=(),
        complete=True,
        exact=True,
        truncated=False,
        nodes=tuple(nodes),
        flows=flows,
        next=None,
    )


class Lineages:
    """`Queries` of both runs, as far as repair asks; and the texts of rows."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.runs = {ORIGINAL: Run(list(enumerate(lines)))}

    def application(self, application_id: str) -> Application:
        return Application(
            application_id=application_id,
            name="",
            state="ended",
            started=0,
            ended=1,
            complete=True,
            missing_blocks=0,
            counters={},
        )

    def graph(self, application_id: str) -> Graph:
        nodes = tuple(
            Node(
                node_id=f"{application_id}#{number}",
                node=number,
                name=name,
                description="",
                kind="operator",
                call_site=f"job.py:{number}",
                exact=True,
                reason="",
                dataset=None,
                records=None,
                has_values=False,
            )
            for number, name in enumerate(NAMES)
        )
        return Graph(application_id=application_id, nodes=nodes, edges=())

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        run = self.runs[application_id]
        starts = []
        for start in query.starts or (query,):
            if start.record is None:
                starts.append((SOURCE, f"read#0#{start.offset}"))
            else:
                starts.append((int(start.node or 0), start.record))
        reached = run.reached(starts, forward=query.direction == "forward")
        return trace_of(application_id, run, reached, query)

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet:
        """Nothing of it says what decided."""
        run = self.runs[application_id]
        starts = [
            record
            for start in query.starts
            for record in run.parents
            if (str(record[0]), run.keys.get(record)) == (start.node, start.key)
        ]
        rows = [run.rows[record] for record in run.reached(starts, forward=False) if record in run.rows]
        positions = tuple((first, count) for first, count in ranges_of(rows))
        source = RowSetSource(
            node=SOURCE,
            name=NAMES[SOURCE],
            call_site=None,
            path="/in",
            whole=False,
            why=None,
            partitions=1,
            total=len(self.lines),
            files=(RowSetFile(path="/in", size=None, modified=None, rows=positions),),
            splits=(RowSetSplit(split=0, positions=positions),),
            listed=(),
        )
        return RowSet(
            application=application_id, sources=(source,), asked=(), exact=True, complete=True, how=None
        )

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        run = self.runs[application_id]
        records = sorted(record for record in run.parents if str(record[0]) == query.node)
        return RecordPage(
            node_id=f"{application_id}#{query.node}",
            total=None,
            records=tuple(
                record_of(run, record, has_values=False)
                for record in records
                if (query.text or "").lower() in run.values[record].lower()
            ),
            next=None,
        )

    def blocks(self, application_id: str, source: Any) -> None:
        """Its sources are RDDs."""

    def texts(self, application_id: str, sources: Iterable[Any]) -> dict[int, Any]:
        return {source["node"]: NoTexts() for source in sources}


def source_of(rows: Iterable[int], total: int) -> dict[str, Any]:
    positions = ranges_of(rows)
    return {
        "node": SOURCE,
        "name": "textFile",
        "whole": False,
        "total": total,
        "splits": [{"split": 0, "positions": positions}],
        "files": [{"path": "/in", "rows": positions}],
    }


LINES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from("abcdefgh"), max_size=4).map(" ".join)),
    min_size=1,
    max_size=25,
)
