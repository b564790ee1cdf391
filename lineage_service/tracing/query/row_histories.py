"""The versions of a row of a table: what inserted, changed and deleted it, and who wrote each.

Rows of several files are one row where the table says so (row ids). Else where a statement made one of the
other, as it was captured, and the version of the statement has removed the one and added the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from lineage_service.errors import NotFoundError, TimeBudgetError
from lineage_service.lineage import RowChange, RowHistory, RowVersion, Trace
from lineage_service.queries import RowQuery, TraceQuery
from lineage_service.tracing.columns.time_budget import TimeBudget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.files.json_values import bounded
from lineage_service.tracing.query.row_holders import RowHolders
from lineage_service.tracing.query.table_rows import TableRow
from lineage_service.tracing.tables.native_reads import awaited
from lineage_service.tracing.tables.row_ids import row_id_of, rows_with_id
from lineage_service.tracing.tables.row_lives import FileLife, Span, files_of, spans_of
from lineage_service.tracing.tables.table_log import Commit, TableLog
from lineage_service.tracing.tables.table_search import rows_of_file
from lineage_service.tracing.tables.table_version import TableVersion
from lineage_service.tracing.tables.table_versions import TableVersions

__all__ = ["RowHistories"]

#: Operations of Delta Lake and Iceberg that change no row.
_REWRITING = frozenset(("OPTIMIZE", "replace"))
#: Files that a row is followed through by links.
_MOST_FILES = 1_000
#: Records of one statement that are looked at.
_MOST_RECORDS = 1_000

Row = tuple[str, int]
"""(path, number of the row)."""
BoundedTrace = Callable[[str, TraceQuery, float], Trace]
"""Of an application, in at most so many seconds."""


class RowHistories:
    """Of the tables of one flow store."""

    def __init__(
        self,
        files: FileSystems,
        versions: TableVersions,
        holders: RowHolders,
        trace: BoundedTrace,
    ) -> None:
        self._files, self._of_tables, self._holders, self._trace = files, versions, holders, trace

    def of(self, row: TableRow, query: RowQuery, budget: TimeBudget) -> RowHistory:
        """Raises NotFoundError, TimeBudgetError, UnavailableError."""
        try:
            return self._of(row, query, budget)
        except TimeBudgetError:
            raise TimeBudgetError(
                f"the history of the row took longer than the {budget.seconds:g} s of a query: give the "
                "service more time (LINEAGE_TRACE_SECONDS)"
            ) from None

    def _of(self, row: TableRow, query: RowQuery, check: TimeBudget) -> RowHistory:
        log = _Log(self._of_tables.log(row.version, row.format, check), row, check)
        row_id = self._row_id(log, row, check)
        if row_id is not None:
            assert row.version.row_id_column is not None
            rows = rows_with_id(
                self._files, log.lives.values(), row_id, row.version.row_id_column, check, log.warnings
            )
            chosen = {(life.path, number) for life, number in rows}
        else:
            chosen = _Links(log, self._holders, self._trace).rows(row.file.path, row.number)
        versions = list(self._versions(log, chosen, check))
        return RowHistory(
            dataset=row.version.table,
            where=query.where,
            version=log.log.number,
            version_name=str(row.version.number),
            row_id=row_id,
            by="links" if row_id is None else "row_id",
            complete=not log.warnings,
            versions=tuple(versions),
            warnings=tuple(log.warnings),
        )

    def _row_id(self, log: _Log, row: TableRow, check: Check) -> int | None:
        column = row.version.row_id_column
        if column is None:
            return None
        try:
            return row_id_of(self._files, log.lives[row.file.path], row.number, column, check)
        except UnreadableError as error:
            log.warnings[f"{row.file.path}: {error}"] = None
            return None

    def _versions(self, log: _Log, rows: set[Row], check: Check) -> Iterator[RowVersion]:
        came: dict[int, Row] = {}
        went: dict[int, Row] = {}
        for path, number in sorted(rows):
            for span in log.spans(path, number):
                came[span.first] = path, number
                if span.end is not None:
                    went[span.end] = path, number
        before: Mapping[str, object] | None = None
        for version in sorted(came.keys() | went.keys()):
            check()
            columns, warning = None, None
            if version in came:
                columns, warning = self._columns(log, version, *came[version])
            yield self._version(log, version, came.get(version), version in went, before, columns, warning)
            before = columns

    def _version(
        self,
        log: _Log,
        version: int,
        row: Row | None,
        is_of_another: bool,
        before: Mapping[str, object] | None,
        columns: dict[str, object] | None,
        warning: str | None,
    ) -> RowVersion:
        commit = log.commits[version]
        change: RowChange = "inserted"
        if row is None:
            change = "deleted"
        elif is_of_another:
            is_same = before is not None and columns == before
            change = (
                "rewritten" if is_same or (columns is None and commit.operation in _REWRITING) else "changed"
            )
        record = None if row is None else self._holders.record_of(*row, log.check)
        application, node_id, record_id = (None, None, None) if record is None else record
        return RowVersion(
            version=version,
            version_name=commit.name,
            time=commit.time,
            change=change,
            operation=commit.operation,
            engine=commit.engine,
            path=None if row is None else row[0],
            row=None if row is None else row[1],
            line=None if row is None else row[1] + 1,
            columns=columns,
            application_id=None if application is None else application.application_id,
            application_name=None if application is None else application.name,
            node_id=node_id,
            record_id=record_id,
            warning=warning,
        )

    def _columns(
        self, log: _Log, number: int, path: str, row: int
    ) -> tuple[dict[str, object] | None, str | None]:
        """By the names of that version; and why they are not known."""
        version = log.version(number)
        try:
            [file] = [file for file in version.files if file.path == path]
            values = rows_of_file(self._files, version, file, [row], log.check)
        except UnreadableError as error:
            return None, f"{path}: {error}"
        return (bounded(values[row])[0], None) if row in values else (None, f"{path} has no such row")


@dataclass(slots=True)
class _Log:
    """The commits of a table, and what they say of its rows. `warnings` say what they do not."""

    log: TableLog
    row: TableRow
    check: TimeBudget
    commits: dict[int, Commit] = field(init=False)
    lives: dict[str, FileLife] = field(init=False)
    warnings: dict[str, None] = field(init=False)
    _versions: dict[int, TableVersion] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = self.row.file.path
        self.warnings = dict.fromkeys(self.log.warnings)
        self.commits = {commit.version: commit for commit in self.log.commits}
        self.lives = files_of(self.log.commits)
        first = min(self.commits, default=self.log.number)
        if not self.log.is_whole:
            self.warnings[
                f"the log has no commits before version {first}: what the row was until then is not known"
            ] = None
        if path not in self.lives:
            self.lives[path] = FileLife(path, self.row.file.rows, None, [(first, "?")])
            unknown = Commit(version=first, name=str(first), time=None, operation="", engine="")
            self.commits.setdefault(first, unknown)

    def version(self, number: int) -> TableVersion:
        if number not in self._versions:
            self._versions[number] = self.log.read(number)
        return self._versions[number]

    def spans(self, path: str, row: int) -> Sequence[Span]:
        life = self.lives.get(path)
        return () if life is None else spans_of(life, row, self._is_removed)

    def _is_removed(self, version: int, path: str, row: int) -> bool:
        self.check()
        removed = awaited(partial(self.version(version).removed, path, self.check), self.check)
        return bool(np.isin(row, removed))


class _Links:
    """Follows a row from file to file of its table, by what was captured."""

    def __init__(self, log: _Log, holders: RowHolders, trace: BoundedTrace) -> None:
        self._log, self._holders, self._trace = log, holders, trace

    def rows(self, path: str, number: int) -> set[Row]:
        """That row, what it was before, and what it became."""
        rows = {(path, number)}
        for step in (self._before, self._behind):
            at: Row | None = (path, number)
            while at is not None and len(rows) < _MOST_FILES:
                self._log.check()
                at = step(*at)
                if at in rows:
                    break
                rows |= set() if at is None else {at}
        return rows

    def _before(self, path: str, number: int) -> Row | None:
        """What the statement made it of that added its file."""
        spans = self._log.spans(path, number)
        if not spans or not self._removes_rows(spans[0].first):
            return None
        version = spans[0].first
        written, _ = self._holders.applications_of(path)
        if not written:
            self._log.warnings[_not_captured(self._log.commits[version])] = None
            return None
        rows = self._reached(written[0], path, number, is_backward=True)
        return self._only([row for row in rows if self._ends_at(row, version)], version)

    def _behind(self, path: str, number: int) -> Row | None:
        """What became of it in the version that has removed it."""
        spans = self._log.spans(path, number)
        if not spans or spans[-1].end is None:
            return None
        version = spans[-1].end
        new = {file for file in self._log.commits[version].added if self._begins_at(file, version)}
        if not new:
            return None
        writers = {application for file in new for application in self._holders.applications_of(file)[0]}
        if not writers:
            self._log.warnings[_not_captured(self._log.commits[version])] = None
            return None
        _, readers = self._holders.applications_of(path)
        rows = [
            row
            for application_id in readers
            if application_id in writers
            for row in self._reached(application_id, path, number, is_backward=False)
        ]
        return self._only([row for row in dict.fromkeys(rows) if row[0] in new], version)

    def _reached(self, application_id: str, path: str, number: int, *, is_backward: bool) -> list[Row]:
        """The rows of the table that statements of an application made it of, or of it."""
        query = TraceQuery(
            direction="backward" if is_backward else "forward",
            path=path,
            row=number,
            limit=_MOST_RECORDS,
            across=False,
        )
        try:
            trace = self._trace(application_id, query, self._log.check.left_s)
        except NotFoundError:  # it has read other rows of the file, and not this one
            if not self._holders.application(application_id).complete:
                self._warn_of(application_id)
            return []
        if not (trace.complete and trace.exact) or trace.next is not None:
            self._warn_of(application_id)
        return [
            (record.source.path, record.source.row)
            for node in trace.nodes
            if node.kind == ("source" if is_backward else "sink")
            for record in node.records
            if record.source is not None and record.source.path in self._log.lives
        ]

    def _warn_of(self, application_id: str) -> None:
        self._log.warnings[
            f"the lineage of {application_id} has not all records, or only an upper bound of them"
        ] = None

    def _removes_rows(self, version: int) -> bool:
        commit = self._log.commits[version]
        return bool(commit.removed)

    def _ends_at(self, row: Row, version: int) -> bool:
        return any(span.end == version for span in self._log.spans(*row))

    def _begins_at(self, path: str, version: int) -> bool:
        return self._log.lives[path].states[0][0] == version

    def _only(self, rows: Sequence[Row], version: int) -> Row | None:
        every = list(dict.fromkeys(rows))
        if len(every) > 1:
            self._log.warnings[
                f"version {version} has made several rows of the table of one, or one of several"
            ] = None
            return None
        return every[0] if every else None


def _not_captured(commit: Commit) -> str:
    return (
        f"no application that is known made version {commit.version} ({commit.operation or '?'}): "
        "what it made of the row is not known"
    )
