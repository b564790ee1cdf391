"""The input rows behind output rows of two runs, by backward traces, until time is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from lineage_service.comparison.inputs import Input, changed_inputs
from lineage_service.errors import LineageError
from lineage_service.lineage import ChangedInput, Trace
from lineage_service.queries import TraceQuery

__all__ = ["MOST_CHANGED", "NO_TIME", "ChangedSources", "SourceRecord", "Sources", "TraceOf", "because"]

#: Input rows of one output row that are looked at, of each source.
MOST_SOURCES = 10_000
MOST_CHANGED = 100
NO_TIME = "the time was spent before its input rows were looked up"

TraceOf = Callable[[str, TraceQuery], Trace]


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A row of a source, and the record that it is."""

    input: Input
    node: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Of one output row; `note` says why they are not all, or too many; empty if they are exact."""

    records: tuple[SourceRecord, ...]
    note: str = ""
    is_cut: bool = False

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(record.input for record in self.records)


class ChangedSources:
    """Of one comparison. `until` is monotonic time."""

    def __init__(self, trace: TraceOf, until: float) -> None:
        self._trace, self.until = trace, until
        self._sources: dict[tuple[str, int, int, int], Sources | None] = {}

    def of(self, application_id: str, node: int, partition: int, offset: int) -> Sources | None:
        """None where there is no time any more."""
        record = application_id, node, partition, offset
        if record not in self._sources:
            self._sources[record] = self._traced(*record) if monotonic() < self.until else None
        return self._sources[record]

    def _traced(self, application_id: str, node: int, partition: int, offset: int) -> Sources:
        query = TraceQuery(
            direction="backward",
            node=str(node),
            partition=partition,
            offset=offset,
            limit=MOST_SOURCES,
            across=False,
        )
        try:
            trace = self._trace(application_id, query)
        except LineageError as error:
            return Sources((), f"its trace failed: {error}")
        return _sources_of(trace)


def _sources_of(trace: Trace) -> Sources:
    records: list[SourceRecord] = []
    notes: dict[str, None] = {}
    is_cut = False
    for node in trace.nodes:
        if node.kind != "source":
            continue
        number = int(node.node_id.rpartition("#")[2])
        if node.total > len(node.records):
            is_cut = True
            notes[f"only {len(node.records):,} of its {node.total:,} rows of {node.name} were compared"] = (
                None
            )
        for record in node.records:
            row = record.source
            if row is not None and row.text is not None:
                source = Input(row.path, row.row, row.text)
                records.append(SourceRecord(source, number, record.partition, record.offset))
            if row is None or row.warning is not None:
                why = "they are no rows of files" if row is None else f"{row.path}: {row.warning}"
                notes[f"input rows cannot be compared: {why}"] = None
    if not trace.complete:
        notes["the lineage is not complete"] = None
    if not trace.exact:
        notes["the trace is an upper bound"] = None
    if not records and not notes:
        notes["it was made of no rows of files"] = None
    return Sources(tuple(records), "; ".join(notes), is_cut)


def because(was: Sources | None, now: Sources | None) -> tuple[tuple[ChangedInput, ...] | None, str]:
    """The input rows that differ, and a note; None where they were not looked up."""
    if was is None or now is None:
        return None, NO_TIME
    note = "; ".join(dict.fromkeys(source.note for source in (was, now) if source.note))
    pairs = changed_inputs(was.inputs, now.inputs)
    if was.is_cut or now.is_cut:  # what only one of them lists, the other one may have, too
        pairs = [pair for pair in pairs if None not in pair]
    rows = []
    for before, after in pairs[:MOST_CHANGED]:
        at = after or before
        assert at is not None
        rows.append(
            ChangedInput(
                path=at.path,
                row=at.row,
                line=at.row + 1,
                was=None if before is None else before.text,
                is_=None if after is None else after.text,
            )
        )
    if len(pairs) > MOST_CHANGED:
        note = "; ".join(filter(None, (note, f"{len(pairs):,} input rows differ, {MOST_CHANGED} are listed")))
    return tuple(rows), note
