"""What the input rows of bad outputs have in common, and those of good ones have not.

The rows of each output are read by themselves, some hundred of each source. Without good outputs, others of
the same sinks are taken for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Contrast, Record, SharedProperty, Trace, TracedNode
from lineage_service.queries import ALL_COLUMNS, ContrastQuery, TraceQuery
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.debugging.associations import associations
from lineage_service.tracing.debugging.evidence import operation_in_words
from lineage_service.tracing.debugging.properties import ComparedRow, properties_of
from lineage_service.tracing.files.partition_folders import short_place
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.query.failures import FailureReader
from lineage_service.tracing.query.named_outputs import MOST_OUTPUTS, StartsOf, outputs_named
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position

__all__ = ["ContrastReader"]

#: Rows of each source that are looked at of an output.
_MOST_ROWS = 200
#: Outputs that are taken for good where none are named.
_OTHERS = 50
#: Keys that are compared of an output at one operation, and how much is shown of one.
_MOST_KEYS, _LONGEST_KEY = 20, 60
#: Of the time of a query, what reading rows may take.
_SHARE = 0.8

TraceFrom = Callable[[Opened, TraceQuery, Sequence[Position]], Trace]
OpenFailed = Callable[[str], Opened]

_Trait = tuple[str, str]
_Output = tuple[Opened, tuple[Position, ...]]


@dataclass(slots=True)
class _Read:
    """The rows of the outputs whose traces were read."""

    rows: list[ComparedRow]
    first_rows: list[int]
    is_bad: list[bool]
    is_whole: bool = True
    is_exact: bool = True


class ContrastReader:
    """Reads them from open applications."""

    def __init__(
        self,
        trace_from: TraceFrom,
        starts_of: StartsOf,
        failures: FailureReader,
        open_failed: OpenFailed,
        *,
        time_budget_s: float,
    ) -> None:
        """`open_failed` opens an application with the runs that an error has ended."""
        self._trace_from, self._starts_of, self._failures = trace_from, starts_of, failures
        self._open_failed, self._time_budget_s = open_failed, time_budget_s

    def contrast(self, opened: Opened, query: ContrastQuery) -> Contrast:
        """Raises InvalidQueryError, NotFoundError, TimeBudgetError."""
        if not (query.bad or query.failures):
            raise InvalidQueryError("name a bad output, or say --failures")
        until = monotonic() + _SHARE * self._time_budget_s
        with time_budget(opened.snapshot.cursor(), self._time_budget_s) as check:
            bad = outputs_named(opened, query.bad, self._starts_of, check)
            good = outputs_named(opened, query.good, self._starts_of, check)
        culprits = self._culprits(opened) if query.failures else []
        if not bad.outputs and not culprits:
            raise InvalidQueryError("no failure of this application has a record: name a bad output")
        taken = None if query.good else _others(opened.graph, bad.nodes, set(bad.outputs))
        outputs = [(opened, output) for output in (good.outputs if taken is None else taken)]
        if not outputs:
            raise InvalidQueryError("there are no other outputs to compare with: name good ones")
        read = self._read([*((opened, output) for output in bad.outputs), *culprits], outputs, until)
        compared = associations(properties_of(read.rows), read.first_rows, read.is_bad)
        of_bad = sum(read.is_bad)
        of_good = len(read.is_bad) - of_bad
        return Contrast(
            application_id=opened.application.application_id,
            name=opened.application.name,
            properties=tuple(
                SharedProperty(
                    property=one.words,
                    bad=one.bad,
                    of_bad=of_bad,
                    good=one.good,
                    of_good=of_good,
                    score=round(one.ochiai, 4),
                    g=round(one.g, 4),
                    unusual=one.is_unusual,
                )
                for one in compared.associations[: query.limit]
            ),
            compared=compared.compared,
            complete=opened.application.complete and read.is_whole,
            how=tuple(_limits(opened, read, (bad.total, good.total), taken)),
        )

    def _culprits(self, opened: Opened) -> list[_Output]:
        """The records that made tasks fail, as far as they are known."""
        failed = self._open_failed(opened.application.application_id)
        numbers = [one.failure for one in self._failures.failures(failed).failures if one.record is not None]
        starts = [
            self._failures.start(failed, TraceQuery(direction="backward", failure=number))
            for number in numbers[:MOST_OUTPUTS]
        ]
        return [(failed, (start,)) for start in starts]

    def _read(self, bad: Sequence[_Output], good: Sequence[_Output], until: float) -> _Read:
        """Bad and good ones in turn, so that of both something is known when time ends."""
        read = _Read([], [], [])
        for output, is_bad in _in_turn(bad, good):
            if monotonic() > until and len(set(read.is_bad)) == 2:
                read.is_whole = False
                break
            of_application, positions = output
            query = TraceQuery(
                direction="backward", across=False, limit=_MOST_ROWS, columns=(ALL_COLUMNS,), values=False
            )
            trace = self._trace_from(of_application, query, positions)
            read.is_exact &= trace.exact
            read.first_rows.append(len(read.rows))
            read.is_bad.append(is_bad)
            read.rows += _rows_of(of_application.graph, trace, is_bad=is_bad)
            read.is_whole &= not any(node.total > _MOST_ROWS for node in trace.nodes if node.kind == "source")
        return read


def _in_turn(bad: Sequence[_Output], good: Sequence[_Output]) -> Iterator[tuple[_Output, bool]]:
    for at in range(max(len(bad), len(good))):
        for outputs, is_bad in ((bad, True), (good, False)):
            if at < len(outputs):
                yield outputs[at], is_bad


def _rows_of(graph: LineageGraph, trace: Trace, *, is_bad: bool) -> list[ComparedRow]:
    """The input rows of an output; of one without, a row of which only the way is known."""
    topology = graph.topology
    reached = [
        node
        for node in trace.nodes
        if node.total and (node.kind == "source" or node.node_id != trace.start_node)
    ]
    way = {
        trait
        for traced in reached
        if traced.kind != "source"
        for trait in _way_of(topology.nodes[_number(traced)], traced)
    }
    rows = [
        _row(topology.nodes[_number(traced)], record, way, is_bad=is_bad)
        for traced in reached
        if traced.kind == "source"
        for record in traced.records
    ]
    return rows or [ComparedRow(is_bad, traits=frozenset(way))]


def _number(traced: TracedNode) -> int:
    return int(traced.node_id.rpartition("#")[2])


def _way_of(node: TopologyNode, traced: TracedNode) -> Iterator[_Trait]:
    """That the output's way leads through an operation, in which partition if in one, with which keys."""
    operation = operation_in_words(node, None)
    yield f"operation {node.number}", f"it passed {operation}"
    partitions = {record.partition for record in traced.records}
    if len(partitions) == 1 and traced.total == len(traced.records):
        yield f"partition of {node.number}", f"partition {min(partitions)} of {operation}"
    for key in sorted({record.key for record in traced.records if record.key is not None})[:_MOST_KEYS]:
        yield f"key of {node.number}", f"key of {operation} = {key[:_LONGEST_KEY]}"


def _place(node: TopologyNode, record: Record) -> set[_Trait]:
    """The file and the partition of an input row."""
    partition = f"partition {record.partition} of {operation_in_words(node, None)}"
    place = {(f"partition of {node.number}", partition)}
    return place if record.source is None else place | {("file", f"file = {short_place(record.source.path)}")}


def _row(node: TopologyNode, record: Record, way: set[_Trait], *, is_bad: bool) -> ComparedRow:
    row = record.source
    return ComparedRow(
        is_bad,
        operation_in_words(node, None) if node.dataset is None else short_place(node.dataset.name),
        frozenset(way | _place(node, record)),
        None if row is None else row.columns,
        record.value if row is None else row.text,
    )


def _others(
    graph: LineageGraph, nodes: frozenset[int], bad: set[tuple[Position, ...]]
) -> list[tuple[Position, ...]]:
    """Other records of the same nodes, evenly spread. Without nodes, of all sinks, else of all sources."""
    for kind in ("sink", "source"):
        of_kind = [node.number for node in graph.topology.nodes.values() if node.kind == kind]
        numbers = sorted(nodes) or sorted(of_kind)
        places = [
            (node, run, graph.count(node, run.number)) for node in numbers for run in graph.holders(node)
        ]
        total = sum(count for _, _, count in places)
        taken = min(total, _OTHERS + len(bad))
        chosen = [at * total // taken for at in range(taken)]
        others: list[tuple[Position, ...]] = []
        before = 0
        for node, run, count in places:
            others += [
                (Position(node, run.partition, at - before, run.number),)
                for at in chosen
                if before <= at < before + count
            ]
            before += count
        named = {position for output in bad for position in output}
        others = [output for output in others if output[0] not in named]
        if others or nodes:
            return others[:_OTHERS]
    return []


def _limits(
    opened: Opened, read: _Read, named: tuple[int, int], taken: Sequence[object] | None
) -> Iterator[str]:
    """What was compared, and what could not be."""
    if taken is not None:
        yield f"No good outputs were named: {len(taken)} others were taken for good."
    for kind, total in zip(("bad", "good"), named, strict=True):
        if total > MOST_OUTPUTS:
            yield f"Of {total:,} {kind} outputs, {MOST_OUTPUTS} were looked at."
    if not read.is_whole:
        yield f"Not all input rows were looked at: at most {_MOST_ROWS} of each source of an output."
    if not read.is_exact:
        yield "Some of these lineages are an upper bound: they may name rows that did not take part."
    if not opened.application.complete:
        yield "The lineage of the application is not complete: rows may be missing."
