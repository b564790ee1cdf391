"""Which rows to run again to know what is otherwise without some rows: those that they meet in a group.

Rows that share a record of the original, and the rows that these share one with, are run together; no other
row can change with them, but by a group that a changed record enters in the replay and did not in the
original. The keys of groups tell: then the rows of that group are added. What this does not hold for is
refused by name: operations that look at places or at other records without a flow, joins, whose keys are not
captured, and values that the program takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from lineage_service.lineage import Graph, Node, Trace
from lineage_service.queries import Queries, RecordQuery, RowSetQuery, StartQuery, TraceQuery
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.specification import Plan, RowTexts, Source, row_set_json, with_places
from lineage_service.replays.ways import RecordId, ways_of
from lineage_service.tracing.query.dataset_rows import MOST_STARTS
from spark_agent.contract.row_sets import ranges_of, rows_in

__all__ = ["Affected", "AffectedRequest", "AffectedRows", "check_operations"]

#: Records of each operation that are looked at, and groups whose keys are looked for in the original.
_MOST_RECORDS, _MOST_GROUPS = 50_000, 2_000
#: A record is made of one record, whatever others there are.
_NARROW = frozenset(
    ("map", "filter", "flatMap", "mapValues", "flatMapValues", "keyBy", "keys", "values", "union")
)
#: Records are moved, and stay what they are.
_MOVING = frozenset(("repartition", "coalesce", "partitionBy", "sortBy", "sortByKey", "cache", "persist"))
_GROUPING = frozenset(
    (
        "reduceByKey",
        "foldByKey",
        "aggregateByKey",
        "combineByKey",
        "groupByKey",
        "groupBy",
        "distinct",
    )
)
_SOURCE, _SINK = "textFile", "saveAsTextFile"

Rows = set[tuple[int, int, int]]
"""(node, partition, position) of rows of sources."""


@dataclass(frozen=True, slots=True)
class AffectedRequest:
    """What is to be left out, and the first rows to run instead of all."""

    reader: AffectedRows
    left_out: Plan
    first: Affected


@dataclass(frozen=True, slots=True)
class Affected:
    """The rows that are run, and the texts that the original wrote of them, by sink.

    `rows` and `groups` are those of the original, rows that are left out included.
    """

    plan: Plan
    outputs: Mapping[int, tuple[str, ...]]
    #: By sink, how many rows the original wrote in all.
    totals: Mapping[int, int]
    rows: frozenset[tuple[int, int, int]]
    groups: frozenset[RecordId]


class AffectedRows:
    """Of one application. What cannot be known is refused with a ReplayError."""

    def __init__(self, queries: Queries, original: str, texts: RowTexts, arrival: Arrival) -> None:
        self._queries, self._original, self._texts = queries, original, texts
        self._arrival = arrival

    def begin(self, left_out: Plan) -> Affected:
        """For a plan `without` some rows."""
        if not self._queries.application(self._original).complete:
            _refuse("the lineage of the application is not complete")
        return self._closed(left_out, _rows_of(left_out.restricted))

    def more(self, left_out: Plan, affected: Affected, replayed: str | None) -> Affected | None:
        """After a run: with the groups that changed records have entered; None if there are no such."""
        if replayed is None:
            _refuse("no application ran, so it is not known which groups changed records enter")
        why_not = self._arrival.why_not(replayed)
        if why_not:
            _refuse(why_not)
        graph = self._queries.graph(self._original)
        if _signatures(graph) != _signatures(self._queries.graph(replayed)):
            _refuse("the replay has other operations than the original")
        entered = self._entered(replayed, affected, {node.node: node for node in graph.nodes})
        if not entered:
            return None
        row_set = self._queries.row_set(self._original, RowSetQuery(starts=_starts(entered)))
        return self._closed(left_out, affected.rows | _rows_of(row_set_json(row_set)["sources"]))

    # -- rows that share records in the original ---------------------------------------------------------

    def _closed(self, left_out: Plan, begin: Iterable[tuple[int, int, int]]) -> Affected:
        """With all rows that share a record with these."""
        nodes = check_operations(
            self._queries.graph(self._original), [source["node"] for source in left_out.restricted]
        )
        rows = set(begin)
        while True:
            trace = self._forward(rows)
            ends = _ends(trace)
            if len(ends) > MOST_STARTS:
                _refuse(f"more than {MOST_STARTS:,} records are affected")
            row_set = self._queries.row_set(self._original, RowSetQuery(starts=_starts(ends)))
            sources = row_set_json(row_set)["sources"]
            more = _rows_of(sources) - rows
            if not more:
                break
            rows |= more
        plan = self._plan(left_out, sources, nodes)
        totals = {number: node.records or 0 for number, node in nodes.items() if node.kind == "sink"}
        outputs = {**dict.fromkeys(totals, ()), **_outputs(trace)}
        return Affected(plan, outputs, totals, frozenset(rows), _groups(trace, nodes))

    def _forward(self, rows: Rows) -> Trace:
        if len(rows) > MOST_STARTS:
            _refuse(f"more than {MOST_STARTS:,} rows are affected")
        starts = tuple(
            StartQuery(node=str(node), partition=split, offset=position)
            for node, split, position in sorted(rows)
        )
        query = TraceQuery(direction="forward", starts=starts, across=False, limit=_MOST_RECORDS)
        trace = self._queries.trace(self._original, query)
        if trace.truncated:
            _refuse(f"more than {_MOST_RECORDS:,} records of one operation are affected")
        if not (trace.exact and trace.complete):
            _refuse("the lineage of these rows is not exact")
        return trace

    def _plan(
        self, left_out: Plan, sources: Iterable[Mapping[str, Any]], related: Mapping[int, Node]
    ) -> Plan:
        """These rows but for those that are left out; of related sources nothing else."""
        gone = {source["node"]: source for source in left_out.restricted}
        listed = [
            _less({**source, "whole": False, "why": None}, gone.get(source["node"]))
            if source["node"] in related
            else dict(source)
            for source in sources
        ]
        texts = with_places(self._original, listed, self._texts)
        return replace(left_out, mode="only", sources=texts)

    # -- groups that changed records enter ----------------------------------------------------------------

    def _entered(self, replayed: str, affected: Affected, nodes: Mapping[int, Node]) -> set[RecordId]:
        """The groups of the original that the replay has and the affected rows have not."""
        starts = tuple(
            StartQuery(node=str(source["node"]), partition=split["split"], offset=offset)
            for source in affected.plan.restricted
            for split in source.get("splits", ())
            for offset in affected.plan.places(source, split)
        )
        if not starts:
            return set()
        query = TraceQuery(direction="forward", starts=starts, across=False, limit=_MOST_RECORDS)
        trace = self._queries.trace(replayed, query)
        if trace.truncated or not trace.exact:
            _refuse("the lineage of the replay is too long, or not exact")
        keys = _keys(trace, nodes)
        if len(keys) > _MOST_GROUPS:
            _refuse(f"more than {_MOST_GROUPS:,} groups are affected")
        entered: set[RecordId] = set()
        for number, key in keys:
            page = self._queries.records(self._original, RecordQuery(node=str(number), key=key, limit=2))
            if len(page.records) > 1:
                _refuse(f"{_in_words(nodes[number])} has several groups with the key {key[:80]!r}")
            entered |= {(number, record.record_id) for record in page.records}
        return entered - affected.groups


def check_operations(graph: Graph, sources: Iterable[int]) -> dict[int, Node]:
    """The operations that may be affected by these sources, with all sources that feed them.

    Raises ReplayError where one of them may change records without a flow.
    """
    after, before = defaultdict(set), defaultdict(set)
    for edge in graph.edges:
        after[edge.source].add(edge.target)
        before[edge.target].add(edge.source)
    nodes = {node.node_id: node for node in graph.nodes}
    by_number = {node.node: node.node_id for node in graph.nodes}
    related = {by_number[number] for number in sources}
    while True:
        behind = _reached(related, after)
        feeding = _reached(behind, before)
        more = {name for name in feeding if nodes[name].kind == "source"} - related
        if not more:
            break
        related |= more
    for node in sorted((nodes[name] for name in behind), key=lambda node: node.node):
        _check(node)
    _check_files(graph)
    return {nodes[name].node: nodes[name] for name in behind}


def _reached(begin: Iterable[str], steps: Mapping[str, set[str]]) -> set[str]:
    seen = set(begin)
    pending = list(seen)
    while pending:
        for other in steps.get(pending.pop(), ()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return seen


def _check(node: Node) -> None:
    if node.kind == "sink" and node.name != _SINK:
        _refuse(f"{_in_words(node)} gives the program values, and what it does with them is not known")
    allowed = {"source": {_SOURCE}, "sink": {_SINK}}.get(node.kind, _NARROW | _MOVING | _GROUPING)
    if node.kind == "sink" and node.records is None:
        _refuse(f"it is not known how many rows {_in_words(node)} wrote")
    if node.name not in allowed:
        _refuse(f"{_in_words(node)} may change what no flow leads to")
    if not node.exact:
        _refuse(f"{_in_words(node)} is not exact")


def _check_files(graph: Graph) -> None:
    """What is read of what was written has no flow."""
    written = [node.dataset.name for node in graph.nodes if node.kind == "sink" and node.dataset]
    for node in graph.nodes:
        if node.kind != "source" or node.dataset is None:
            continue
        if any(f"{node.dataset.name}/".startswith(f"{name}/") for name in written):
            _refuse(f"{_in_words(node)} reads what the job wrote before")


def _refuse(why: str) -> NoReturn:
    raise ReplayError(f"--affected cannot be used: {why}. Leave it out, and the whole job is run")


def _signatures(graph: Graph) -> dict[int, tuple[str, str]]:
    return {node.node: (node.name, node.call_site.rpartition("/")[2]) for node in graph.nodes}


def _in_words(node: Node) -> str:
    return f"{node.name} ({node.call_site.rpartition('/')[2]})"


def _number(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


def _starts(records: Iterable[RecordId]) -> tuple[StartQuery, ...]:
    return tuple(StartQuery(node=str(node), record=record_id) for node, record_id in sorted(records))


def _ends(trace: Trace) -> set[RecordId]:
    """The records that went into no other one."""
    ways = ways_of(trace)
    return set(ways.steps) - {parent for made_of in ways.parents.values() for parent in made_of}


def _groups(trace: Trace, nodes: Mapping[int, Node]) -> frozenset[RecordId]:
    """Each has a key, or it is refused."""
    _keys(trace, nodes)
    return frozenset(
        (number, record.record_id)
        for traced in trace.nodes
        if nodes[number := _number(traced.node_id)].name in _GROUPING
        for record in traced.records
    )


def _keys(trace: Trace, nodes: Mapping[int, Node]) -> set[tuple[int, str]]:
    keys = set()
    for traced in trace.nodes:
        number = _number(traced.node_id)
        if nodes[number].name not in _GROUPING:
            continue
        for record in traced.records:
            if record.key is None:
                _refuse(f"the keys of {_in_words(nodes[number])} are not known")
            keys.add((number, record.key))
    return keys


def _outputs(trace: Trace) -> Mapping[int, tuple[str, ...]]:
    """The texts of what was written, by sink."""
    outputs: dict[int, tuple[str, ...]] = {}
    for traced in trace.nodes:
        if traced.kind != "sink":
            continue
        rows = [record.source for record in traced.records]
        texts = [row.text for row in rows if row is not None and row.text is not None and not row.warning]
        if len(texts) < len(rows):
            _refuse("not all output rows that are affected can be read as they were written")
        outputs[_number(traced.node_id)] = tuple(texts)
    return outputs


def _rows_of(sources: Iterable[Mapping[str, Any]]) -> Rows:
    return {
        (source["node"], split["split"], position)
        for source in sources
        for split in source.get("splits") or ()
        for position in rows_in(split["positions"])
    }


def _less(source: Source, gone: Mapping[str, Any] | None) -> Source:
    """A source without rows that are left out."""
    if gone is None:
        return source
    rows = {split["split"]: set(rows_in(split["positions"])) for split in gone.get("splits", ())}
    lines = {file["path"]: set(rows_in(file["rows"])) for file in gone.get("files", ())}
    splits = [
        {**split, "positions": ranges_of(set(rows_in(split["positions"])) - rows.get(split["split"], set()))}
        for split in source.get("splits", ())
    ]
    files = [
        {**file, "rows": ranges_of(set(rows_in(file["rows"])) - lines.get(file["path"], set()))}
        for file in source.get("files", ())
    ]
    return {
        **source,
        "splits": [split for split in splits if split["positions"]],
        "files": [file for file in files if file["rows"]],
    }
