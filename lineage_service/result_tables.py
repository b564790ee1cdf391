"""Results as the lines of a table: for CSV (RFC 4180), over HTTP and at a terminal.

What holds of a whole result (complete, exact, truncated, the next page) has no place in a table; who writes
one says it beside. Cells hold the data as it is, so control characters too.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence

from lineage_service.lineage import (
    Absence,
    Application,
    ChangedInput,
    Choices,
    Column,
    Comparison,
    Contrast,
    DatasetPage,
    Datasets,
    Explanation,
    Failures,
    Graph,
    Missing,
    MissingRow,
    ReachedRow,
    Record,
    RecordPage,
    RowEnd,
    RowHistory,
    RowSet,
    Slow,
    Suspects,
    Trace,
    TracedNode,
    Values,
    ValueStep,
    Waves,
)
from lineage_service.queries import RecordQuery, TraceQuery

__all__ = [
    "ABSENCE_COLUMNS",
    "APPLICATION_COLUMNS",
    "CHOICE_COLUMNS",
    "COMPARE_COLUMNS",
    "CONTRAST_COLUMNS",
    "DATASET_COLUMNS",
    "EXPLANATION_COLUMNS",
    "HISTORY_COLUMNS",
    "MISSING_COLUMNS",
    "NODE_COLUMNS",
    "RECORD_COLUMNS",
    "ROW_COLUMNS",
    "ROW_HISTORY_COLUMNS",
    "ROW_SET_COLUMNS",
    "SLOW_COLUMNS",
    "SUSPECT_COLUMNS",
    "TRACE_COLUMNS",
    "TRIGGER_COLUMNS",
    "VALUE_COLUMNS",
    "absence_lines",
    "application_lines",
    "choice_lines",
    "claim",
    "comparison_lines",
    "contrast_lines",
    "csv_text",
    "dataset_lines",
    "explanation_lines",
    "failure_lines",
    "history_lines",
    "missing_lines",
    "node_lines",
    "record_lines",
    "record_table",
    "row_history_lines",
    "row_set_lines",
    "row_table",
    "slow_lines",
    "suspect_lines",
    "trace_lines",
    "trace_table",
    "trigger_lines",
    "value_lines",
]

Line = Sequence[object]

APPLICATION_COLUMNS = (
    "application_id", "name", "state", "started", "ended", "complete", "flows", "missing", "failed_runs",
)  # fmt: skip
DATASET_COLUMNS = (
    "namespace", "name", "path", "format", "aliases", "columns", "application_id", "application_name",
    "written_at", "rows", "state", "complete", "read_at", "writers", "readers", "runs", "failed_runs",
    "remark",
)  # fmt: skip
HISTORY_COLUMNS = (
    "kind", "application_id", "application_name", "node_ids", "operation", "call_site", "at", "rows", "state",
    "complete", "exact", "reason", "error",
)  # fmt: skip
NODE_COLUMNS = (
    "node_id", "node", "name", "kind", "exact", "reason", "records", "from", "call_site", "path",
    "has_values", "description",
)  # fmt: skip
RECORD_COLUMNS = (
    "record_id", "partition", "offset", "key", "value", "path", "row", "line", "text", "warning"
)  # fmt: skip
CHOICE_COLUMNS = ("node_id", "record_id", "path", "row", "line", "text", "warning")
COMPARE_COLUMNS = ("change", "key", "was", "is", "was_record", "is_record", "because", "because_note")
#: Before the columns of the rows themselves.
ROW_COLUMNS = ("lineage.record_id", "lineage.path", "lineage.line", "lineage.warning")
_OPERATION = ("application_id", "application_name", "node_id", "name")
TRACE_COLUMNS = (*_OPERATION, "kind", "exact", "total", *RECORD_COLUMNS)
VALUE_COLUMNS = (*_OPERATION, "record_id", "type", "value")


def csv_text(columns: Sequence[str], lines: Iterable[Line]) -> str:
    """With a header line; lines end in CR LF."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(lines)
    return text.getvalue()


def application_lines(applications: Iterable[Application]) -> Iterator[Line]:
    """One for each application; times are Unix times in milliseconds."""
    for application in applications:
        yield (
            *(application.application_id, application.name, application.state),
            *(application.started, application.ended, claim(application.complete)),
            *(
                application.counters.get("flows"),
                application.missing,
                application.counters.get("failed_runs"),
            ),
        )


def dataset_lines(page: Datasets) -> Iterator[Line]:
    """One for each dataset; times are Unix times in milliseconds, and lists have spaces between."""
    for dataset in page.datasets:
        written = dataset.written
        write: Line = (None,) * 6
        if written is not None:
            write = (
                *(written.application_id, written.name, written.at, written.rows, written.state),
                claim(written.complete),
            )
        yield (
            *(dataset.namespace, dataset.name, dataset.path, dataset.format, " ".join(dataset.aliases)),
            *(" ".join(column.name for column in dataset.schema), *write, dataset.read_at),
            *(dataset.writers, dataset.readers, dataset.runs, dataset.failed_runs, dataset.remark),
        )


def history_lines(page: DatasetPage) -> Iterator[Line]:
    """One for each write and read."""
    for use in page.history:
        yield (
            *(use.kind, use.application_id, use.name, " ".join(use.node_ids), use.operation, use.call_site),
            *(use.at, use.rows, use.state, claim(use.complete), claim(use.exact), use.reason),
            None if use.error is None else ": ".join((use.error.type, use.error.message)),
        )


def node_lines(graph: Graph) -> Iterator[Line]:
    """One for each node; `from` has the numbers of the nodes that send it records, with spaces between."""
    for node in graph.nodes:
        path = node.dataset.name if node.dataset is not None else None
        yield (
            *(node.node_id, node.node, node.name, node.kind, claim(node.exact), node.reason, node.records),
            *(" ".join(sources_of(graph, node.node_id)), node.call_site, path, claim(node.has_values)),
            node.description,
        )


def sources_of(graph: Graph, node_id: str) -> list[str]:
    """The numbers of the nodes that send it records, as texts."""
    return [edge.source.rpartition("#")[2] for edge in graph.edges if edge.target == node_id]


def record_lines(page: RecordPage) -> Iterator[Line]:
    """One for each record of the page."""
    return map(_cells, page.records)


def trace_lines(trace: Trace) -> Iterator[Line]:
    """One for each listed record, node by node; flows have no place here."""
    for node in trace.nodes:
        for record in node.records:
            yield (*_operation(node), node.kind, claim(node.exact), node.total, *_cells(record))


def choice_lines(choices: Choices) -> Iterator[Line]:
    """One for each row of the page."""
    for choice in choices.choices:
        place = (choice.node_id, choice.record_id, choice.path, choice.row, choice.line)
        yield (*place, choice.text, choice.warning)


def trace_table(trace: Trace, query: TraceQuery) -> tuple[Sequence[str], Iterable[Line]]:
    """(header, lines): one operation with its columns has a table of its own, else all share one."""
    if query.only is None or query.columns is None:
        return TRACE_COLUMNS, trace_lines(trace)
    listed = [node for node in trace.nodes if node.records]
    if not listed:
        return ROW_COLUMNS, ()
    return row_table(listed[0].records, listed[0].schema)


def record_table(page: RecordPage, query: RecordQuery) -> tuple[Sequence[str], Iterable[Line]]:
    """(header, lines): with a column for each of the rows' if these are asked for."""
    if query.columns is None:
        return RECORD_COLUMNS, record_lines(page)
    return row_table(page.records, page.schema)


def row_table(
    records: Iterable[Record], schema: Sequence[Column] | None
) -> tuple[Sequence[str], Iterable[Line]]:
    """(header, lines) of rows of files. Null is an empty cell, what is nested its JSON."""
    names = [column.name for column in schema or ()]
    return (*ROW_COLUMNS, *names), (_row_cells(record, names) for record in records)


def _row_cells(record: Record, names: Sequence[str]) -> Line:
    source = record.source
    if source is None:
        return (record.record_id, None, None, None, *(None for _ in names))
    columns = source.columns or {}
    values = (_cell(columns.get(name)) for name in names)
    return (record.record_id, source.path, source.line, source.warning, *values)


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return claim(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def value_lines(values: Values) -> Iterator[Line]:
    """One for each step of the lineage path."""
    for step in values.steps:
        yield (*_operation(step), step.record_id, step.type, step.value)


def claim(holds: bool) -> str:
    """As JSON writes it."""
    return "true" if holds else "false"


def _operation(of: TracedNode | ValueStep) -> Line:
    return (of.application_id, of.application_name, of.node_id, of.name)


def _cells(record: Record) -> Line:
    source = record.source
    place = (
        (None,) * 5 if source is None else (source.path, source.row, source.line, source.text, source.warning)
    )
    return (record.record_id, record.partition, record.offset, record.key, record.value, *place)


def comparison_lines(comparison: Comparison) -> Iterator[Line]:
    """One for each listed row; rows, keys and input rows are JSON."""
    for row in comparison.gone:
        reason = _inputs(row.because), row.because_note
        yield "gone", _json(row.key), _json(row.columns), None, row.record, None, *reason
    for row in comparison.new:
        reason = _inputs(row.because), row.because_note
        yield "new", _json(row.key), None, _json(row.columns), None, row.record, *reason
    for pair in comparison.changed:
        yield (
            *("changed", _json(pair.key), _json(pair.was), _json(pair.is_)),
            *(pair.was_record, pair.is_record, _inputs(pair.because), pair.because_note),
        )


def _inputs(rows: Sequence[ChangedInput] | None) -> str | None:
    if rows is None:
        return None
    return _json([{"path": row.path, "row": row.row, "was": row.was, "is": row.is_} for row in rows])


ROW_HISTORY_COLUMNS = (
    *("version", "version_name", "time", "change", "operation", "engine", "path", "row", "line", "columns"),
    *("application_id", "application_name", "node_id", "record_id", "warning"),
)


def row_history_lines(history: RowHistory) -> Iterator[Line]:
    """One for each version that inserted, changed or deleted the row; the row is JSON."""
    for version in history.versions:
        yield (
            *(
                version.version,
                version.version_name,
                version.time,
                version.change,
                version.operation,
                version.engine,
            ),
            *(version.path, version.row, version.line, _json(version.columns)),
            *(version.application_id, version.application_name, version.node_id, version.record_id),
            version.warning,
        )


#: One line for each end of a row, and one for each row that is in an output.
MISSING_COLUMNS = (
    *("application_id", "path", "row", "line", "text", "node_id", "record_id", "outputs"),
    *("ended", "name", "call_site", "why", "exact", "reason"),
)


def missing_lines(missing: Missing) -> Iterator[Line]:
    """Of several candidates, each is a line that is not exact. A row that is in its outputs has no end."""
    for row in missing.rows:
        place = (row.application_id, row.path, row.row, row.line, row.text, row.node_id, row.record_id)
        outputs = " ".join(output.node_id for output in row.outputs)
        for end in _ends_of(row):
            at = (None,) * 4 if end is None else (end.node_id, end.name, end.call_site, end.why)
            yield (*place, outputs, *at, claim(row.exact), row.reason)
    for passed in missing.reached:
        yield (
            *(passed.application_id, passed.path, passed.row, passed.line, passed.text),
            *(passed.node_id, passed.record_id, " ".join(output.node_id for output in passed.outputs)),
            *(None, None, None, "; ".join(("it is in these outputs", *_merged(passed)))),
            claim(all(output.exact for output in passed.outputs)),
            "",
        )


def _merged(row: ReachedRow) -> Iterator[str]:
    for duplicate in row.duplicates:
        yield f"{duplicate.why} ({duplicate.node_id})"


def _ends_of(row: MissingRow) -> Sequence[RowEnd | None]:
    return row.candidates or (row.ended,)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


#: One line for each input row of a failure; of one without, the failure alone.
FAILURE_COLUMNS = (
    *("failure", "error", "message", "frame", "node_id", "name", "call_site", "stage", "partition"),
    *("attempts", "recovered", "record_id", "value", "path", "row", "line", "text", "exact", "reason"),
)


def failure_lines(failures: Failures) -> Iterator[Line]:
    """By the numbers of the failures."""
    for failure in failures.failures:
        record = failure.record
        place = (None, None) if record is None else (record.record_id, record.value)
        for row in failure.sources or (None,):
            source = (None,) * 4 if row is None else (row.path, row.row, row.line, row.text)
            yield (
                *(failure.failure, failure.error, failure.message, failure.frame, failure.node_id),
                *(failure.name, failure.call_site, failure.stage, failure.partition, failure.attempts),
                *(claim(failure.recovered), *place, *source, claim(failure.exact), failure.reason),
            )


ROW_SET_COLUMNS = (
    *("node_id", "name", "call_site", "whole", "why", "partition", "first_offset"),
    *("path", "first_row", "first_line", "count"),
)


def row_set_lines(row_set: RowSet) -> Iterator[Line]:
    """A line for each range of rows; of a source without files, for each range of records."""
    for source in row_set.sources:
        node_id = f"{row_set.application}#{source.node}"
        about = (node_id, source.name, source.call_site, claim(source.whole), source.why)
        ranges: list[Line] = [
            (None, None, file.path, first, first + 1, count)
            for file in source.files
            for first, count in file.rows
        ]
        ranges = ranges or [
            (split.split, first, None, None, None, count)
            for split in source.splits
            for first, count in split.positions
        ]
        for cells in ranges or [(None, None, None, None, None, None if source.whole else 0)]:
            yield (*about, *cells)


EXPLANATION_COLUMNS = ("node_id", "name", "record_id", "path", "row", "line", "text", "warning", "of")


def explanation_lines(explanation: Explanation) -> Iterator[Line]:
    """One for each input row of the page."""
    for row in explanation.rows:
        about = (row.node_id, row.name, row.record_id, row.path, row.row, row.line, row.text, row.warning)
        yield (*about, None if row.counts_for is None else " ".join(row.counts_for))


ABSENCE_COLUMNS = (
    *("node_id", "name", "call_site", "record_id", "key", "ended", "ended_name", "ended_call_site", "why"),
    *("exact", "reason"),
)


def absence_lines(absence: Absence) -> Iterator[Line]:
    """One for each end of each record with the key. Of several candidates, each is a line."""
    for holder in absence.holders:
        about = (holder.node_id, holder.name, holder.call_site)
        for row in holder.ended:
            for end in _ends_of(row):
                at = (None,) * 4 if end is None else (end.node_id, end.name, end.call_site, end.why)
                yield (*about, row.record_id, absence.key, *at, claim(row.exact), row.reason)


#: One line for each input row of a suspect; of one without, the suspect alone.
SUSPECT_COLUMNS = (
    *("rank", "node_id", "name", "call_site", "partition", "score", "unusual", "feature", "value", "low"),
    *("high", "others", "leads_to_bad", "follows_from", "why", "record_node_id", "record_id", "path", "row"),
    *("line", "text"),
)


def suspect_lines(suspects: Suspects) -> Iterator[Line]:
    """By score."""
    for suspect in suspects.suspects:
        record, bad = suspect.record, suspect.leads_to_bad
        place = (None, None) if record is None else (record.node_id, record.record_id)
        for row in suspect.sources or (None,):
            source = (None,) * 4 if row is None else (row.path, row.row, row.line, row.text)
            yield (
                *(suspect.rank, suspect.node_id, suspect.name, suspect.call_site, suspect.partition),
                *(suspect.score, claim(suspect.unusual), suspect.feature, suspect.value, suspect.low),
                *(suspect.high, suspect.others, None if bad is None else claim(bad)),
                *(suspect.follows_from, suspect.why, *place, *source),
            )


#: One line for each input row of a slow record; of one without, the record alone.
SLOW_COLUMNS = (
    *("ms", "node_id", "name", "call_site", "partition", "record_node_id", "record_id", "key", "value"),
    *("path", "row", "line", "text", "exact", "reason"),
)


def slow_lines(slow: Slow) -> Iterator[Line]:
    """The slowest first."""
    for one in slow.records:
        record = one.record
        place: Line = (None,) * 4
        if record is not None:
            place = (record.node_id, record.record_id, record.key, record.value)
        for row in one.sources or (None,):
            source = (None,) * 4 if row is None else (row.path, row.row, row.line, row.text)
            yield (
                *(one.ms, one.node_id, one.name, one.call_site, one.partition, *place, *source),
                *(claim(one.exact), one.reason),
            )


CONTRAST_COLUMNS = ("property", "bad", "of_bad", "good", "of_good", "score", "g", "unusual")


def contrast_lines(contrast: Contrast) -> Iterator[Line]:
    """By score."""
    for shared in contrast.properties:
        yield (
            *(shared.property, shared.bad, shared.of_bad, shared.good, shared.of_good),
            *(shared.score, shared.g, claim(shared.unusual)),
        )


TRIGGER_COLUMNS = (
    "job",
    "wave",
    "asked",
    "decision",
    "reason",
    "phase",
    "bound",
    "confidence",
    "probability",
    "threshold",
    "error",
    "compliance",
    "compliance_lower",
    "compliance_waves",
    "is_audit",
    "seconds",
    "application_id",
    "why",
)


def trigger_lines(waves: Waves) -> Iterator[Sequence[object]]:
    """One line for each wave, the latest first."""
    for wave in waves.waves:
        yield [getattr(wave, column) for column in TRIGGER_COLUMNS]
