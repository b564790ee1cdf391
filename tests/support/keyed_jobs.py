"""Jobs of operations by record and by key, run by loops, with their lineage; and `Queries` over several runs.

A record is (key, number). No Spark is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lineage_service.lineage import (
    Application,
    Edge,
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
from lineage_service.queries import RecordQuery, RowSetQuery, StartQuery, TraceQuery
from spark_agent.contract.row_sets import ranges_of
from tests.support.record_ways import NoTexts, reached

Pair = tuple[str, int]
RecordId = tuple[int, int]
"""Node and offset."""

#: Name -> what a record becomes.
BY_RECORD: dict[str, tuple[str, Callable[[Pair], list[Pair]]]] = {
    "twice": ("flatMap", lambda pair: [pair, (pair[0], pair[1] + 1)]),
    "odd": ("filter", lambda pair: [pair] if pair[1] % 2 else []),
    "small": ("filter", lambda pair: [pair] if pair[1] < 6 else []),
    "by number": ("map", lambda pair: [(str(pair[1]), 1)]),
    "by rest": ("map", lambda pair: [(str(pair[1] % 4), pair[1])]),
}
#: Name -> what the numbers of a key become.
BY_KEY: dict[str, tuple[str, Callable[[list[int]], int]]] = {
    "sum": ("reduceByKey", sum),
    "most": ("reduceByKey", max),
    "count": ("groupByKey", len),
}


@dataclass
class JobRun:
    """One run of the operations on some rows of the input: (row, record)."""

    operations: Sequence[str]
    rows: Sequence[tuple[int, Pair]]
    values: dict[RecordId, Pair] = field(default_factory=dict)
    parents: dict[RecordId, list[RecordId]] = field(default_factory=dict)
    keys: dict[RecordId, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for offset, (_, pair) in enumerate(self.rows):
            self._add(0, offset, pair, [])
        for node, name in enumerate(self.operations, 1):
            before = sorted(record for record in self.values if record[0] == node - 1)
            if name in BY_RECORD:
                made = [(pair, [one]) for one in before for pair in BY_RECORD[name][1](self.values[one])]
            else:
                groups = defaultdict(list)
                for record in before:
                    groups[self.values[record][0]].append(record)
                merge = BY_KEY[name][1]
                made = [((key, merge([self.values[one][1] for one in of])), of) for key, of in groups.items()]
            for offset, (pair, of) in enumerate(made):
                self._add(node, offset, pair, of)
                if name in BY_KEY:
                    self.keys[node, offset] = pair[0]
        for record in sorted(record for record in self.values if record[0] == self.sink - 1):
            self._add(self.sink, record[1], self.values[record], [record])

    def _add(self, node: int, offset: int, pair: Pair, parents: list[RecordId]) -> None:
        self.values[node, offset] = pair
        self.parents[node, offset] = parents

    @property
    def sink(self) -> int:
        return len(self.operations) + 1

    def outputs(self) -> list[str]:
        return [f"{pair[0]},{pair[1]}" for record, pair in self.values.items() if record[0] == self.sink]

    def reached(self, starts: Iterable[RecordId], *, forward: bool) -> set[RecordId]:
        return reached(self.parents, starts, forward=forward)


class JobQueries:
    """`Queries` of runs of one job, and the texts of no rows."""

    def __init__(self, operations: Sequence[str]) -> None:
        names = [(BY_RECORD | BY_KEY)[name][0] for name in operations]  # type: ignore[operator]
        self.names = ["textFile", *names, "saveAsTextFile"]
        self.runs: dict[str, JobRun] = {}

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
        run = self.runs[application_id]
        nodes = tuple(
            Node(
                node_id=f"{application_id}#{number}",
                node=number,
                name=name,
                description="",
                kind=self._kind(number),
                call_site=f"job.py:{number}",
                exact=True,
                reason="",
                dataset=None,
                records=sum(record[0] == number for record in run.values),
                has_values=False,
            )
            for number, name in enumerate(self.names)
        )
        edges = tuple(
            Edge(source=f"{application_id}#{number}", target=f"{application_id}#{number + 1}", flows=None)
            for number in range(len(self.names) - 1)
        )
        return Graph(application_id=application_id, nodes=nodes, edges=edges)

    def _kind(self, number: int) -> Any:
        return "source" if number == 0 else "sink" if number == len(self.names) - 1 else "operator"

    def _id(self, record: RecordId) -> str:
        prefix = {"source": "read#", "sink": "write#"}.get(self._kind(record[0]), "")
        return f"{prefix}0#{record[1]}"

    def _start(self, start: StartQuery) -> RecordId:
        offset = start.offset if start.record is None else int(start.record.rpartition("#")[2])
        assert offset is not None
        return int(start.node or 0), offset

    def _record(self, run: JobRun, record: RecordId) -> Record:
        pair, kind = run.values[record], self._kind(record[0])
        row = run.rows[record[1]][0] if kind == "source" else record[1]
        source = SourceRow(path=f"/{kind}", row=row, line=row + 1, text=f"{pair[0]},{pair[1]}", warning=None)
        return Record(
            record_id=self._id(record),
            partition=0,
            offset=record[1],
            key=run.keys.get(record),
            source=None if kind == "operator" else source,
        )

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        run = self.runs[application_id]
        assert query.direction == "forward"
        records = run.reached(map(self._start, query.starts or ()), forward=True)
        nodes = tuple(
            TracedNode(
                node_id=f"{application_id}#{number}",
                application_id=application_id,
                application_name="",
                name=name,
                kind=self._kind(number),
                exact=True,
                total=0,
                records=tuple(self._record(run, record) for record in sorted(records) if record[0] == number),
            )
            for number, name in enumerate(self.names)
        )
        flows = tuple(
            Flow(
                hash_in=f"{application_id}#{parent[0]}#{self._id(parent)}",
                hash_out=f"{application_id}#{record[0]}#{self._id(record)}",
                node_id="",
            )
            for record in records
            for parent in run.parents[record]
            if parent in records
        )
        return Trace(
            direction="forward",
            start=(),
            start_node="",
            starts=(),
            complete=True,
            exact=True,
            truncated=False,
            nodes=nodes,
            flows=flows,
            next=None,
        )

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet:
        run = self.runs[application_id]
        records = run.reached(map(self._start, query.starts), forward=False)
        ranges = tuple((first, count) for first, count in ranges_of(at for node, at in records if node == 0))
        return RowSet(
            application=application_id,
            sources=(
                RowSetSource(
                    node=0,
                    name="textFile",
                    call_site=None,
                    path="/source",
                    whole=False,
                    why=None,
                    partitions=1,
                    total=len(run.rows),
                    files=(RowSetFile(path="/source", size=None, modified=None, rows=ranges),),
                    splits=(RowSetSplit(split=0, positions=ranges),),
                    listed=(),
                ),
            ),
            asked=(),
            exact=True,
            complete=True,
            how=None,
        )

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        run = self.runs[application_id]
        records = [
            self._record(run, record)
            for record, key in sorted(run.keys.items())
            if str(record[0]) == query.node and key == query.key
        ]
        return RecordPage(node_id="", total=None, records=tuple(records[: query.limit]), next=None)

    def blocks(self, application_id: str, source: Any) -> None:
        """Its sources are RDDs."""

    def texts(self, application_id: str, sources: Iterable[Any]) -> dict[int, Any]:
        return {source["node"]: NoTexts() for source in sources}
