"""Makes of the ends of records what people see: which row, where it ended, why, and of which outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lineage_service.evaluation.values import Result
from lineage_service.lineage import Duplicate, MissedOutput, MissingRow, ReachedRow, Record, RowEnd
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET, format_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.missing.decision import Decision, EndedRecord, dropped_at
from lineage_service.tracing.missing.droppers import Candidate
from lineage_service.tracing.missing.duplicates import Duplicates, Merged
from lineage_service.tracing.missing.endings import Ending, Endings, RowStart, sinks_behind
from lineage_service.tracing.missing.other_sides import OtherSides, may_skip
from lineage_service.tracing.missing.reasons import CHOOSING, why
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.requested_columns import request_of
from lineage_service.tracing.query.row_choices import columns_of
from lineage_service.tracing.query.rows_of_versions import Belonging, RowsOfVersions
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.tables.table_versions import TableVersions
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["RowEndings"]

#: Of the last records that a row became.
_LISTED = 5
#: So many records are asked one by one at which of several operators they ended.
_DECIDED = 20
_NOT_READ = "no task is known to have read the row, and this operation may have let it pass"
_STATES = {"failed": "failed", "aborted": "was cancelled"}


@dataclass(frozen=True, slots=True)
class _Resolved:
    """An ending without its sink, so that equal ones of several sinks are one."""

    ending: Ending  # its sink is the first one
    candidates: tuple[Candidate, ...]
    reason: str


class RowEndings:
    """Of one application, for one query."""

    def __init__(
        self,
        opened: OpenedApplication[Snapshot],
        locations: RecordLocations,
        versions: TableVersions,
        show: Show,
        check: Check,
    ) -> None:
        self._opened, self._show, self._check = opened, show, check
        self._belongings = RowsOfVersions(versions, check)
        self._scan_rows = locations.scan_rows
        self._topology = opened.graph.topology
        self._endings = Endings(opened.snapshot)
        self._duplicates = Duplicates(opened.snapshot)
        self._sides = OtherSides(self._topology.nodes, locations.scan_rows, opened.application.ended, check)
        self._cursor = opened.snapshot.cursor()

    def of(
        self, start: RowStart, among: Iterable[int] | None = None
    ) -> tuple[list[MissingRow], ReachedRow | None]:
        """The ends of one record on its way to sinks (`among` them), and the sinks that it went into."""
        allowed = None if among is None else set(among)
        behind = sinks_behind(self._opened.snapshot, start.node.number)
        return self.before(start, [sink for sink in behind if allowed is None or sink in allowed])

    def before(self, start: RowStart, sinks: Sequence[int]) -> tuple[list[MissingRow], ReachedRow | None]:
        """The same on its way to some nodes, which need not be sinks."""
        row = self._row(start)
        passed, endings = self._endings.of(start, sinks, self._check)
        belonging = Belonging()
        if endings and not passed and all(ending.last_node == start.node for ending in endings):
            belonging = self._belongings.of(start.node, row["path"], row["row"])
            if belonging.why:
                endings = [_deleted(start, sink, belonging.why) for sink in sinks]
        resolved: list[tuple[_Resolved, list[int]]] = []
        for ending in endings:
            for one in self._decided(ending, start, row):
                key = self._resolved(one, belonging.doubt)
                same = next((sinks_of for other, sinks_of in resolved if _are_same(other, key)), None)
                if same is None:
                    resolved.append((key, [ending.sink]))
                else:
                    same.append(ending.sink)
        missing = [self._missing(row, key, sinks_of) for key, sinks_of in resolved]
        if not passed:
            return missing, None
        outputs = tuple(self._output(one.sink, is_exact=one.is_exact) for one in passed)
        merged = self._duplicates.of(start, [one.sink for one in passed], self._check)
        return missing, ReachedRow(**row, outputs=outputs, duplicates=tuple(map(self._duplicate, merged)))

    def _row(self, start: RowStart) -> dict[str, Any]:
        """The fields of a RowOfInput."""
        node, application_id, record = start.node, self._topology.application_id, None
        source = start.row
        if start.place is not None:
            run = start.runs[0].number if start.runs else 0
            (record,) = self._shown(node, [Position(node.number, *start.place, run)])
            source = record.source
        return {
            "application_id": application_id,
            "node_id": contract.node_id(application_id, node.number),
            "record_id": None if record is None else record.record_id,
            "path": None if source is None else source.path,
            "row": None if source is None else source.row,
            "line": None if source is None else source.line,
            "text": source.text if source is not None else record.value if record is not None else None,
            "columns": columns_of(record) if record is not None else source and source.columns,
        }

    def _shown(self, node: TopologyNode, positions: Sequence[Position]) -> tuple[Record, ...]:
        columns = request_of(node)
        return self._show(
            self._opened, self._cursor, node, positions, values=True, check=self._check, columns=columns
        )

    # -- which operator ----------------------------------------------------------------------------

    def _decided(self, ending: Ending, start: RowStart, row: Mapping[str, Any]) -> Iterator[Ending]:
        """By what is known beside flows; records that ended at different operators apart."""
        is_pushed = _is_pushed(ending)
        if not (len(ending.candidates) > 1 or is_pushed) or len(ending.last) > _DECIDED:
            yield ending
            return
        decided: list[tuple[Decision, list[Position]]] = []
        for position, record in self._ended_records(ending, start):
            values = self._values(record)
            one = dropped_at(self._topology.nodes, record, ending.candidates, self._sides, values)
            same = next((positions for other, positions in decided if other == one), None)
            if same is None:
                decided.append((one, same := []))
            same += () if position is None else (position,)
        for one, positions in decided:
            candidates = ending.candidates if one.candidate is None else (one.candidate,)
            doubt = one.reason + _hint(one.reason, row["path"], row["row"])
            if is_pushed:
                doubt = "" if self._was_left_out(ending, one) else _NOT_READ
            yield replace(ending, candidates=candidates, because=one.why, doubt=doubt, last=tuple(positions))

    def _was_left_out(self, ending: Ending, decision: Decision) -> bool:
        """By a filter that was pushed into its scan? Spark leaves out a whole scan, too: of an empty join."""
        has_run = bool(self._opened.graph.runs_of(ending.last_node.number))
        return decision.candidate is not None and (has_run or bool(decision.why))

    def _values(self, record: EndedRecord) -> dict[str, Result] | None:
        """Of a row of Parquet, with its types; None where its text has to do."""
        row = record.source
        if row is None or row.text is None or row.warning is not None or format_of(record.node) != PARQUET:
            return None
        try:
            return self._scan_rows.row(record.node, row.path, row.row, self._check)
        except UnreadableError:
            return {}

    def _ended_records(
        self, ending: Ending, start: RowStart
    ) -> Iterator[tuple[Position | None, EndedRecord]]:
        if not ending.last:
            is_unread = ending.cause == "unread"
            yield None, EndedRecord(start.node, start.row if is_unread else None, is_unread=is_unread)
            return
        records = self._shown(ending.last_node, ending.last)
        for position, record in zip(ending.last, records, strict=True):
            yield position, EndedRecord(ending.last_node, record.source)

    def _resolved(self, ending: Ending, doubt: str) -> _Resolved:
        """With the operator where no task took a record, and why it is not exact: a `doubt`, and others."""
        sink, candidates = self._topology.nodes[ending.sink], ending.candidates
        if ending.cause == "unread" and not candidates and (sink.limit is not None or sink.name in CHOOSING):
            candidates = (Candidate(sink),)
        doubts = filter(None, (doubt, *self._doubts(ending, sink, candidates)))
        return _Resolved(ending, candidates, "; ".join(doubts))

    def _doubts(self, ending: Ending, sink: TopologyNode, candidates: tuple[Candidate, ...]) -> Iterator[str]:
        if ending.cause == "deleted":
            return
        state = None if sink.outcome is None else sink.outcome.state
        if not self._opened.application.complete:
            yield "the lineage of the application is not complete"
        if state in _STATES:
            yield f"{sink.name} {_STATES[state]}: what its other tasks would have done is not known"
        if ending.cause == "unfollowed":
            yield sink.reason or "the query was not followed"
        elif ending.cause == "many":
            yield "it became more records than are looked at one by one"
        elif not ending.is_exact:
            yield "an operation before is an upper bound: it is not known which of its records the row became"
        if ending.cause == "unread" and may_skip(ending.last_node):
            yield "Spark was told to skip what it cannot read of files, so it may have skipped this row"
        yield from _doubts_about(ending, candidates)

    # -- as people see it --------------------------------------------------------------------------

    def _missing(self, row: dict[str, Any], resolved: _Resolved, sinks: Sequence[int]) -> MissingRow:
        ending = resolved.ending
        last_node = ending.last_node
        last = self._shown(last_node, ending.last[:_LISTED]) if ending.last else ()
        keys = set(map(_key_of, last))
        key = keys.pop() if len(keys) == 1 else None
        ends = tuple(self._end(ending, candidate, key) for candidate in resolved.candidates)
        return MissingRow(
            **row,
            ended=ends[0] if len(ends) == 1 else None,
            candidates=ends if len(ends) > 1 else (),
            last=last if last_node.is_public else (),
            last_node_id=contract.node_id(
                self._topology.application_id,
                last_node.number if last_node.operation is None else last_node.operation,
            ),
            last_total=len(ending.last),
            outputs=tuple(self._output(sink) for sink in dict.fromkeys(sinks)),
            exact=not resolved.reason,
            reason=resolved.reason,
        )

    def _end(self, ending: Ending, candidate: Candidate, key: str | None) -> RowEnd:
        node = candidate.node
        return RowEnd(
            node_id=contract.node_id(self._topology.application_id, node.number),
            name=node.name,
            description=node.description,
            call_site=node.call_site,
            why="; ".join(filter(None, (why(ending, candidate, key), ending.because))),
        )

    def _duplicate(self, merged: Merged) -> Duplicate:
        operation, others = merged.operation, merged.others
        node = None if not others else self._topology.nodes[others[0].node]
        return Duplicate(
            node_id=contract.node_id(self._topology.application_id, operation.number),
            name=operation.name,
            description=operation.description,
            call_site=operation.call_site,
            why=merged.why,
            total=merged.total,
            equal=() if node is None else self._shown(node, others),
            exact=merged.is_exact,
        )

    def _output(self, sink: int, *, is_exact: bool = True) -> MissedOutput:
        node = self._topology.nodes[sink]
        return MissedOutput(
            node_id=contract.node_id(self._topology.application_id, sink),
            name=node.name,
            description=node.description,
            call_site=node.call_site,
            exact=is_exact,
        )


def _doubts_about(ending: Ending, candidates: Sequence[Candidate]) -> Iterator[str]:
    """Why it is not known which operator it was."""
    if len(candidates) > 1:
        tell = "flows do not tell which of these operators it was"
        yield f"{tell}: {ending.doubt}" if ending.doubt else tell
    elif candidates:
        yield from filter(None, (ending.doubt,))
    elif ending.cause == "unread":
        yield "no task is known to have taken it"
    elif ending.cause in ("dropped", "cut"):
        yield "which operator it was is not known"


def _deleted(start: RowStart, sink: int, why_it_is_none: str) -> Ending:
    """Of a row that the version of its table which was read does not have."""
    candidates = (Candidate(start.node),)
    return Ending(sink, "deleted", candidates, start.node, (), is_exact=True, because=why_it_is_none)


def _is_pushed(ending: Ending) -> bool:
    """Is all that is known of the row that no record was made of it, and a filter right above its scan?"""
    names = [candidate.node.name for candidate in ending.candidates]
    return ending.cause == "unread" and names == ["Filter"]


def _hint(reason: str, path: str | None, row: int | None) -> str:
    """Who can compute it: Spark itself."""
    if not reason or path is None:
        return ""
    return f" (Spark can say it in a session that has run the query: trace({path!r}).missing({row}))"


def _key_of(record: Record) -> str | None:
    """Its key, or the first of the two things that its value is."""
    if record.key is not None or record.value is None or record.value_type != "json":
        return record.key
    try:
        pair = json.loads(record.value)
    except ValueError:  # it was cut
        return None
    return str(pair[0]) if isinstance(pair, list) and len(pair) == 2 else None


def _are_same(one: _Resolved, other: _Resolved) -> bool:
    """But for their sinks."""
    return (one.candidates, one.reason, one.ending.cause, one.ending.last, one.ending.because) == (
        other.candidates,
        other.reason,
        other.ending.cause,
        other.ending.last,
        other.ending.because,
    ) and one.ending.last_node is other.ending.last_node
