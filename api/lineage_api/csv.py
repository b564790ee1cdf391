"""Results as CSV (RFC 4180, UTF-8, with a header line), for requests with `Accept: text/csv`.

A table has no place for properties of the whole result, so these go into headers: an incomplete, inexact or
truncated result says so in CSV, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.responses import Response

from lineage_service.lineage import (
    Absence,
    Choices,
    Comparison,
    Contrast,
    DatasetPage,
    Datasets,
    Explanation,
    Failures,
    Missing,
    RecordPage,
    RowHistory,
    RowSet,
    Slow,
    Suspects,
    Trace,
    Waves,
)
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.result_tables import (
    ABSENCE_COLUMNS,
    CHOICE_COLUMNS,
    COMPARE_COLUMNS,
    CONTRAST_COLUMNS,
    DATASET_COLUMNS,
    EXPLANATION_COLUMNS,
    FAILURE_COLUMNS,
    HISTORY_COLUMNS,
    MISSING_COLUMNS,
    RECORD_COLUMNS,
    ROW_HISTORY_COLUMNS,
    ROW_SET_COLUMNS,
    SLOW_COLUMNS,
    SUSPECT_COLUMNS,
    TRACE_COLUMNS,
    TRIGGER_COLUMNS,
    absence_lines,
    choice_lines,
    claim,
    comparison_lines,
    contrast_lines,
    csv_text,
    dataset_lines,
    explanation_lines,
    failure_lines,
    history_lines,
    missing_lines,
    record_table,
    row_history_lines,
    row_set_lines,
    slow_lines,
    suspect_lines,
    trace_table,
    trigger_lines,
)

__all__ = [
    "CHOICE_COLUMNS",
    "COMPARE_COLUMNS",
    "MEDIA_TYPE",
    "MISSING_COLUMNS",
    "RECORD_COLUMNS",
    "TRACE_COLUMNS",
    "absence_as_csv",
    "choices_as_csv",
    "comparison_as_csv",
    "contrast_as_csv",
    "dataset_as_csv",
    "datasets_as_csv",
    "explanation_as_csv",
    "failures_as_csv",
    "missing_as_csv",
    "prefers_csv",
    "records_as_csv",
    "row_set_as_csv",
    "slow_as_csv",
    "suspects_as_csv",
    "trace_as_csv",
    "waves_as_csv",
]

MEDIA_TYPE = "text/csv"
_MAX_HEADER = 2_000


def prefers_csv(accept: str | None) -> bool:
    """Whether an Accept header (RFC 9110, section 12.5.1) ranks CSV above JSON. JSON wins a tie."""
    return _quality(accept, MEDIA_TYPE) > _quality(accept, "application/json")


def trace_as_csv(trace: Trace, query: TraceQuery) -> Response:
    """One line for each listed record, node by node, without flows."""
    claims = {
        "Lineage-Complete": claim(trace.complete),
        "Lineage-Exact": claim(trace.exact),
        "Lineage-Truncated": claim(trace.truncated),
    }
    return _response(*trace_table(trace, query), claims, trace.next)


def choices_as_csv(choices: Choices) -> Response:
    """One line for each row to choose from."""
    claims = {} if choices.total is None else {"Lineage-Total": str(choices.total)}
    if choices.warnings:
        claims["Lineage-Warning"] = _in_header("; ".join(choices.warnings))
    return _response(CHOICE_COLUMNS, choice_lines(choices), claims, choices.next)


def row_set_as_csv(row_set: RowSet) -> Response:
    """One line for each range of rows."""
    claims = {"Lineage-Complete": claim(row_set.complete), "Lineage-Exact": claim(row_set.exact)}
    if row_set.how:
        claims["Lineage-Warning"] = _in_header(row_set.how)
    return _response(ROW_SET_COLUMNS, row_set_lines(row_set), claims, None)


def absence_as_csv(absence: Absence) -> Response:
    """One line for each end of each record with the key."""
    claims = {"Lineage-Complete": claim(absence.complete), "Lineage-Exact": claim(absence.exact)}
    if absence.reasons:
        claims["Lineage-Warning"] = _in_header(" ".join(absence.reasons))
    return _response(ABSENCE_COLUMNS, absence_lines(absence), claims, None)


def explanation_as_csv(explanation: Explanation) -> Response:
    """One line for each input row of the page."""
    claims = {
        "Lineage-Complete": claim(explanation.complete),
        "Lineage-Exact": claim(explanation.exact),
        "Lineage-Truncated": claim(explanation.total > len(explanation.rows)),
        "Lineage-Total": str(explanation.total),
    }
    bound = ("This is an upper bound.",) if explanation.kind == "bound" else ()
    if warnings := (*bound, *explanation.reasons):
        claims["Lineage-Warning"] = _in_header(" ".join(warnings))
    return _response(EXPLANATION_COLUMNS, explanation_lines(explanation), claims, explanation.next)


def failures_as_csv(failures: Failures) -> Response:
    claims = {
        "Lineage-Complete": claim(failures.complete),
        "Lineage-Exact": claim(all(failure.exact for failure in failures.failures)),
        "Lineage-Truncated": claim(
            any(failure.sources_total > len(failure.sources) for failure in failures.failures)
        ),
    }
    if failures.how:
        claims["Lineage-Warning"] = _in_header(failures.how)
    return _response(FAILURE_COLUMNS, failure_lines(failures), claims, None)


def suspects_as_csv(suspects: Suspects) -> Response:
    claims = {
        "Lineage-Complete": claim(suspects.complete),
        "Lineage-Truncated": claim(suspects.total > len(suspects.suspects)),
        "Lineage-Warning": _in_header(" ".join(suspects.how)),
    }
    return _response(SUSPECT_COLUMNS, suspect_lines(suspects), claims, None)


def slow_as_csv(slow: Slow) -> Response:
    claims = {
        "Lineage-Complete": claim(slow.complete),
        "Lineage-Exact": claim(all(record.exact for record in slow.records)),
        "Lineage-Truncated": claim(slow.total > len(slow.records)),
    }
    if slow.how:
        claims["Lineage-Warning"] = _in_header(slow.how)
    return _response(SLOW_COLUMNS, slow_lines(slow), claims, None)


def contrast_as_csv(contrast: Contrast) -> Response:
    claims = {"Lineage-Complete": claim(contrast.complete)}
    if contrast.how:
        claims["Lineage-Warning"] = _in_header(" ".join(contrast.how))
    return _response(CONTRAST_COLUMNS, contrast_lines(contrast), claims, None)


def missing_as_csv(missing: Missing) -> Response:
    """One line for each end of a row, or candidate for it."""
    claims = {
        "Lineage-Complete": claim(missing.complete),
        "Lineage-Exact": claim(all(row.exact for row in missing.rows)),
        "Lineage-Truncated": claim(missing.truncated),
    }
    if missing.warnings:
        claims["Lineage-Warning"] = _in_header("; ".join(missing.warnings))
    return _response(MISSING_COLUMNS, missing_lines(missing), claims, None)


def history_as_csv(history: RowHistory) -> Response:
    """One line for each version."""
    claims = {"Lineage-Complete": claim(history.complete)}
    if history.warnings:
        claims["Lineage-Warning"] = _in_header("; ".join(history.warnings))
    return _response(ROW_HISTORY_COLUMNS, row_history_lines(history), claims, None)


def comparison_as_csv(comparison: Comparison) -> Response:
    """One line for each listed row."""
    claims = {
        "Lineage-Complete": claim(comparison.complete),
        "Lineage-Exact": claim(comparison.exact),
        "Lineage-Truncated": claim(comparison.truncated),
    }
    if comparison.warnings:
        claims["Lineage-Warning"] = _in_header("; ".join(comparison.warnings))
    return _response(COMPARE_COLUMNS, comparison_lines(comparison), claims, None)


def records_as_csv(page: RecordPage, query: RecordQuery) -> Response:
    """One line for each record of the page."""
    claims = {} if page.total is None else {"Lineage-Total": str(page.total)}
    if page.warnings:
        claims["Lineage-Warning"] = _in_header("; ".join(page.warnings))
    return _response(*record_table(page, query), claims, page.next)


def datasets_as_csv(page: Datasets) -> Response:
    """One line for each dataset of the page."""
    return _response(DATASET_COLUMNS, dataset_lines(page), {"Lineage-Total": str(page.total)}, page.next)


def dataset_as_csv(page: DatasetPage) -> Response:
    """One line for each write and read of the page, without the graph."""
    return _response(HISTORY_COLUMNS, history_lines(page), {"Lineage-Total": str(page.total)}, page.next)


def waves_as_csv(waves: Waves) -> Response:
    """One line for each answer."""
    return _response(TRIGGER_COLUMNS, trigger_lines(waves), {}, None)


def _response(
    columns: Sequence[str], lines: Iterable[Sequence[object]], headers: dict[str, str], cursor: str | None
) -> Response:
    if cursor is not None:
        headers["Lineage-Next"] = cursor
    headers["Vary"] = "Accept"
    return Response(
        csv_text(columns, lines), headers=headers, media_type="text/csv; charset=utf-8; header=present"
    )


def _in_header(text: str) -> str:
    """A header holds printable ASCII only; other characters of paths are escaped as in Python."""
    return ascii(text)[1:-1][:_MAX_HEADER].strip()


def _quality(accept: str | None, media_type: str) -> float:
    """The quality of the type by the most specific range of the header; 0 if none matches."""
    ranges = {}
    for part in (accept or "*/*").split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        try:
            ranges[name] = float(quality)
        except ValueError:
            ranges[name] = 0.0
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0
