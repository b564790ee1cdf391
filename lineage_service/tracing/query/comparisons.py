"""Compares what two runs wrote: reads both outputs, finds the rows that differ, and traces these back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from time import monotonic

import duckdb

from lineage_service.comparison.differences import Differences, differences
from lineage_service.comparison.outputs import Output, chosen_outputs
from lineage_service.datasets.catalogue_cache import StoredDatasets
from lineage_service.datasets.summaries import state_of
from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import ChangedRow, ComparedRow, ComparedRun, Comparison
from lineage_service.queries import CompareQuery
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_tables import FileTable
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.query.changed_sources import ChangedSources, TraceOf
from lineage_service.tracing.query.compared_outputs import ComparedOutput
from lineage_service.tracing.query.compared_rows import RowListing
from lineage_service.tracing.query.input_differences import InputDifferences
from lineage_service.tracing.query.open_applications import OpenApplications
from lineage_service.tracing.query.shown_records import Show

__all__ = ["Comparisons"]

#: Of one output.
MOST_ROWS = 5_000_000
#: Rows that are gone or new, without a key, whose traces are compared to pair them.
MOST_PAIRED = 100
#: The part of the time in which traces begin.
_TRACE_SHARE = 0.7


class Comparisons:
    """Of one flow store."""

    def __init__(
        self,
        applications: OpenApplications,
        datasets: StoredDatasets,
        locations: RecordLocations,
        show: Show,
        trace: TraceOf,
        *,
        time_budget_s: float,
    ) -> None:
        self._applications, self._datasets = applications, datasets
        self._locations, self._show, self._trace = locations, show, trace
        self._time_budget_s = time_budget_s

    def compare(self, query: CompareQuery) -> Comparison:
        """Raises NotFoundError, InvalidQueryError, TimeBudgetError."""
        until = monotonic() + _TRACE_SHARE * self._time_budget_s
        was, now = self._sides(query)
        for side in (was, now):
            if side.rows > MOST_ROWS:
                raise InvalidQueryError(
                    f"{side.output.entry.path} has {side.rows:,} rows; a comparison reads {MOST_ROWS:,} "
                    "at most"
                )
        try:
            with (
                closing(searched_database(())) as database,
                time_budget(database, self._time_budget_s) as check,
            ):
                return self._compared(query, was, now, database, ChangedSources(self._trace, until), check)
        except TimeBudgetError:
            raise TimeBudgetError(
                f"the comparison took longer than its {self._time_budget_s:g} s: give the service more time "
                "(LINEAGE_TRACE_SECONDS)"
            ) from None

    # -- the two outputs ----------------------------------------------------------------------------

    def _sides(self, query: CompareQuery) -> tuple[ComparedOutput, ComparedOutput]:
        for application_id in filter(None, (query.before, query.after)):
            self._applications.open(application_id)  # says that it is not known
        state = self._datasets.state()
        before, after = chosen_outputs(
            state.catalogue,
            lambda write: state_of(write, state.now_ms) == "complete",
            before=query.before,
            after=query.after,
            dataset=query.dataset,
        )
        return self._side(before), self._side(after)

    def _side(self, output: Output) -> ComparedOutput:
        return ComparedOutput.of(output, self._applications.open(output.application_id))

    # -- their rows ---------------------------------------------------------------------------------

    def _compared(
        self,
        query: CompareQuery,
        was: ComparedOutput,
        now: ComparedOutput,
        database: duckdb.DuckDBPyConnection,
        sources: ChangedSources,
        check: Check,
    ) -> Comparison:
        tables: list[FileTable] = []
        warnings: dict[str, None] = {}
        for name, side in (("was_rows", was), ("now_rows", now)):
            try:
                ended = side.opened.application.ended
                tables.append(
                    self._locations.tables(database).read(name, side.node, side.counts, ended, check)
                )
                warnings.update(dict.fromkeys(tables[-1].warnings))
            except UnreadableError as error:
                warnings[side.unreadable(error)] = None
        if len(tables) < 2:
            return _result(query, was, now, None, warnings)
        before, after = tables
        names = was.opened.application.application_id, now.opened.application.application_id
        if before.table.rows and after.table.rows:
            warnings.update(dict.fromkeys(_other_columns(before, after, names)))
        limit = query.limit if query.key else max(query.limit, MOST_PAIRED)
        differing = differences(before.table, after.table, query.key, limit, names)
        shared = [column for column in before.table.columns if column in after.table.columns]
        inputs = InputDifferences(self._locations, database, was, now, sources.until, check)
        listing = RowListing(self._show, sources, inputs, query.key, shared, check)
        gone = listing.shown(was, before, differing.gone)
        new = listing.shown(now, after, differing.new)
        pairs = list(
            zip(
                listing.shown(was, before, [pair[0] for pair in differing.changed]),
                listing.shown(now, after, [pair[1] for pair in differing.changed]),
                strict=True,
            )
        )
        if not query.key and differing.gone_total and differing.new_total:
            if max(differing.gone_total, differing.new_total) > MOST_PAIRED:
                warnings[
                    f"more than {MOST_PAIRED} rows differ, so they were not paired by their input rows, and "
                    "none is called changed: give a key"
                ] = None
            else:
                pairs, gone, new, note = listing.paired(was, now, gone, new)
                if note:
                    warnings[note] = None
        changed = [listing.changed(was, now, *pair) for pair in pairs[: query.limit]]
        moved = len(pairs) if not query.key else 0
        counted = Differences(
            gone=differing.gone,
            new=differing.new,
            changed=differing.changed,
            gone_total=differing.gone_total - moved,
            new_total=differing.new_total - moved,
            changed_total=differing.changed_total + moved,
            same=differing.same,
        )
        return _result(
            query,
            was,
            now,
            counted,
            warnings,
            gone=[listing.row(was, row) for row in gone[: query.limit]],
            new=[listing.row(now, row) for row in new[: query.limit]],
            changed=changed,
        )


def _other_columns(before: FileTable, after: FileTable, names: tuple[str, str]) -> list[str]:
    warnings = []
    for one, other, name in ((before, after, names[0]), (after, before, names[1])):
        only = [column for column in one.table.columns if column not in other.table.columns]
        if only:
            warnings.append(f"only {name} has {', '.join(only)}: not compared")
    return warnings


def _result(
    query: CompareQuery,
    was: ComparedOutput,
    now: ComparedOutput,
    differing: Differences | None,
    warnings: dict[str, None],
    *,
    gone: Sequence[ComparedRow] = (),
    new: Sequence[ComparedRow] = (),
    changed: Sequence[ChangedRow] = (),
) -> Comparison:
    sides = was, now
    listed = len(gone) + len(new) + len(changed)
    total = 0 if differing is None else differing.gone_total + differing.new_total + differing.changed_total
    return Comparison(
        runs=tuple(
            ComparedRun(
                application_id=side.opened.application.application_id,
                name=side.opened.application.name,
                started=side.opened.application.started,
                node_id=side.node_id,
                dataset=side.output.entry.path,
                rows=side.rows,
                complete=side.opened.application.complete,
            )
            for side in sides
        ),
        key=query.key,
        gone=tuple(gone),
        new=tuple(new),
        changed=tuple(changed),
        same=None if differing is None else differing.same,
        gone_total=None if differing is None else differing.gone_total,
        new_total=None if differing is None else differing.new_total,
        changed_total=None if differing is None else differing.changed_total,
        complete=not warnings and all(side.opened.application.complete for side in sides),
        exact=not any(row.because_note for rows in (changed, gone, new) for row in rows),
        truncated=total > listed,
        warnings=tuple(warnings),
    )
