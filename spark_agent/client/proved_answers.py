"""An explanation of the session that running its operations has proved, in the shape of the API's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_agent.client.application import Application
from spark_agent.client.asked_records import asked_records
from spark_agent.client.http import PAGE
from spark_agent.client.input_rows import InputRows, NamedRow, input_rows
from spark_agent.client.lineage_records import LineageRecords
from spark_agent.client.outputs_again import OutputsAgain
from spark_agent.client.recorded_checks import record_check
from spark_agent.client.sufficient_rows import GivenValue, Proved, SufficientRows
from spark_agent.client.trace_starts import batches_of, query_of, start_of

__all__ = ["proved"]

_OF_TASK = "Not verified: they were seen to be enough in one task, and Spark has not run on them."


def proved(
    records: LineageRecords,
    dataset: Any,
    answer: Mapping[str, Any],
    including: Sequence[tuple[str, int]],
    *,
    runs: int,
    seconds: float,
    is_minimal: bool,
    by_spark: bool,
) -> dict[str, Any]:
    """`answer` with the rows that are enough, and `verified`; as it is, with a reason, where none were found.

    Raises TraceError.
    """
    application, chosen = records.application, records.of_one_operation()
    starts = records.chosen_starts("the records to explain")
    chosen_records = [record for _, record in records.collect()]
    asked = asked_records(chosen, dataset, chosen_records)
    concise = input_rows(application.client, application.id, starts, concise=True)
    needed: list[NamedRow] = []
    if including:
        named = [start_of(path=path, row=row) for path, row in including]
        included = input_rows(application.client, application.id, named)
        needed = included.named
        concise = concise.joined(included)
    outputs = OutputsAgain(chosen)
    search = SufficientRows(
        chosen, asked, concise, needed, outputs, most_runs=runs, seconds=seconds, by_spark=by_spark
    )
    result = search.proved(is_minimal=is_minimal)
    answer = _unchecked(answer)
    notes = [_sentence(note) for note in result.notes]
    if result.pins:
        return _pinned(application, answer, result, notes)
    if result.why_not:
        why_not = _sentence(f"Not verified: {result.why_not}")
        return {**answer, "reasons": [why_not, *notes, *answer["reasons"]]}
    shown = {"runs": result.runs, "added": result.added, "minimal": result.is_minimal}
    if result.is_of_task:
        notes = [_OF_TASK, *notes]
    record_check(chosen, chosen_records, result, answer["given"], notes)
    return {
        **answer,
        "kind": "bound" if result.is_of_task else "verified",
        "verified": None if result.is_of_task else shown,
        "in_one_task": shown,
        "rows": _listed(application, result.rows),
        "total": result.rows.count,
        "next": None,
        "given": [*answer["given"], *map(_given, result.values)],
        "reasons": [*notes, *answer["reasons"]],
    }


def _pinned(
    application: Application, answer: Mapping[str, Any], result: Proved, notes: Sequence[str]
) -> dict[str, Any]:
    """With the rows that are enough with the decisions of the original run, and not verified."""
    why_not = _sentence(f"Not verified: {result.why_not}")
    return {
        **answer,
        "kind": "bound" if result.added else answer["kind"],
        "pins": list(result.pins),
        "pinned": {"runs": result.runs, "added": result.added, "minimal": result.is_minimal},
        "rows": _listed(application, result.rows),
        "total": result.rows.count,
        "next": None,
        "given": [*answer["given"], *map(_given, result.values)],
        "reasons": [why_not, *notes, *answer["reasons"]],
    }


def _given(value: GivenValue) -> dict[str, Any]:
    """A value of a function as an explanation lists what a program had of Spark."""
    name = f"{value.name} as it was then, in {value.operation}"
    return {"name": name, "call_site": value.call_site, "path": None, "results": None}


def _unchecked(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without what others have recorded before: it is no answer to what has run now."""
    is_concise = answer["exact"] and not answer["reasons"]
    kind = answer["kind"] if answer["kind"] != "verified" else "concise" if is_concise else "bound"
    return {**answer, "kind": kind, "verified": None, "checks": []}


def _listed(application: Application, rows: InputRows) -> list[dict[str, Any]]:
    """The rows as an explanation lists them."""
    starts = [
        start_of(node=f"{application.id}#{row.source}", partition=row.split, offset=row.position)
        for row in rows.named
    ]
    listed: list[dict[str, Any]] = []
    for batch in batches_of(starts):
        cursor = None
        while True:
            page = application.client.get(
                "applications",
                application.id,
                "explanation",
                **query_of(batch),
                limit=PAGE,
                cursor=cursor,
                plain="false",
            )
            listed += page["rows"]
            cursor = page["next"]
            if cursor is None:
                break
    return listed


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
