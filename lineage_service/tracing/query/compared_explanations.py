"""Compares the explanation of a record with that of the same record in another run: by input and row text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import ComparedExplanation, ExplainedRow, Explanation, RecordPage, TraceStart
from lineage_service.queries import ExplanationQuery, RecordQuery, StartQuery
from lineage_service.tracing.model.corresponding_nodes import corresponding_node, corresponding_source
from lineage_service.tracing.model.elements import in_words
from lineage_service.tracing.query.open_applications import Opened

__all__ = ["ComparedExplanations"]

#: Rows of one explanation; beyond, it is not compared.
MOST_ROWS = 10_000
_Explain = Callable[[str, ExplanationQuery], Explanation]
_Pages = Callable[[Opened, RecordQuery], RecordPage]
_Rows = Sequence[tuple[tuple[int | str, str], ExplainedRow]]
"""((input, text), row)."""


class ComparedExplanations:
    """Of one flow store."""

    def __init__(self, open_application: Callable[[str], Opened], explain: _Explain, pages: _Pages) -> None:
        self._open, self._explain, self._pages = open_application, explain, pages

    def compared(self, first: Explanation, query: ExplanationQuery, other_id: str) -> ComparedExplanation:
        """`first` with that of another application. Raises LineageError."""
        if other_id == first.application_id:
            raise InvalidQueryError("a run is not compared with itself: name another application")
        if any(start.failure is not None for start in query.starts):
            raise InvalidQueryError("the record of a failure has none like it in another run to compare with")
        run, other_run = self._open(first.application_id), self._open(other_id)
        asked = ExplanationQuery(starts=query.starts, plain=False, limit=MOST_ROWS)
        own = self._explain(first.application_id, asked)
        starts = query.compare_starts or tuple(self._same_records(own, run, other_run))
        other = self._explain(other_id, replace(asked, starts=starts))
        for explanation in (own, other):
            if explanation.total > MOST_ROWS:
                raise InvalidQueryError(
                    f"{explanation.total:,} rows of {explanation.application_id} explain it, and up to "
                    f"{MOST_ROWS:,} are compared: name fewer records"
                )
        own_rows = [(_key(row, _number(row.node_id)), row) for row in own.rows]
        other_rows = [(_key(row, _input(row, other_run, run)), row) for row in other.rows]
        gone, new = _without(own_rows, other_rows), _without(other_rows, own_rows)
        reasons = list(_reasons(own, other))
        return ComparedExplanation(
            application_id=other.application_id,
            name=other.name,
            starts=other.starts,
            total=other.total,
            same=len(own_rows) - len(gone),
            gone=tuple(gone[: query.limit]),
            gone_total=len(gone),
            new=tuple(new[: query.limit]),
            new_total=len(new),
            exact=own.unchecked().kind == other.unchecked().kind == "concise" and not reasons,
            complete=own.complete and other.complete,
            reasons=tuple(reasons),
        )

    def _same_records(self, first: Explanation, run: Opened, other_run: Opened) -> Iterator[StartQuery]:
        """Names of the same records in the other run. Raises InvalidQueryError, NotFoundError."""
        for start in first.starts:
            number = int(start.node_id.rpartition("#")[2])
            same = corresponding_node(run.graph.topology.nodes, number, other_run.graph.topology.nodes)
            if same is None:
                raise NotFoundError(
                    f"application {other_run.application.application_id} has no operation like "
                    f"{in_words(run.graph.topology.nodes[number])}: {_NAME_IT}"
                )
            if start.total > len(start.records):
                raise InvalidQueryError(f"{start.total:,} records are too many to find again: {_NAME_IT}")
            yield from self._of_operation(start, other_run, same)

    def _of_operation(self, start: TraceStart, other_run: Opened, number: int) -> Iterator[StartQuery]:
        for record in start.records:
            if record.key is not None:
                yield StartQuery(node=str(number), key=record.key)
                continue
            text = record.value if record.source is None else record.source.text
            if text is None:
                raise InvalidQueryError(
                    f"neither a key nor a text of {start.name} {record.record_id} is known: {_NAME_IT}"
                )
            page = self._pages(other_run, RecordQuery(node=str(number), text=text, limit=100))
            equal = [
                one for one in page.records if (one.value if one.source is None else one.source.text) == text
            ]
            if not equal:
                raise NotFoundError(
                    f"application {other_run.application.application_id} has no record {text!r} at node "
                    f"{number} ({start.name}): {_NAME_IT}"
                )
            yield StartQuery(node=str(number), partition=equal[0].partition, offset=equal[0].offset)


_NAME_IT = "name the record of the other run, too"


def _number(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


def _input(row: ExplainedRow, other_run: Opened, run: Opened) -> int | str:
    """The source of the first run that is the source of a row of the other one; else its name."""
    number = _number(row.node_id)
    same = corresponding_source(other_run.graph.topology.nodes, number, run.graph.topology.nodes)
    return f"{row.name} {number}" if same is None else same


def _key(row: ExplainedRow, source: int | str) -> tuple[int | str, str]:
    """Without a text: by its place."""
    return source, f"text {row.text}" if row.text is not None else f"{row.path} {row.record_id}"


def _without(rows: _Rows, others: _Rows) -> list[ExplainedRow]:
    """Those beyond the equal ones of the others."""
    left = Counter(key for key, _ in others)
    alone = []
    for key, row in rows:
        if left[key]:
            left[key] -= 1
        else:
            alone.append(row)
    return alone


def _reasons(own: Explanation, other: Explanation) -> Iterator[str]:
    for explanation in (own, other):
        unknown = sum(row.text is None for row in explanation.rows)
        if unknown:
            yield (
                f"Texts of {unknown:,} rows of {explanation.application_id} are not known: these were "
                "compared by their places."
            )
        changed = sum(row.warning is not None and row.text is not None for row in explanation.rows)
        if changed:
            yield f"{changed:,} rows of {explanation.application_id} may not be what the job read."
        yield from (f"{explanation.application_id}: {reason}" for reason in explanation.reasons)
