"""The rows of a version of a table that fulfil a condition, each with the record that it is.

Rows are looked for in the files that the table's own log names; the applications that wrote these files
follow from their paths. So nobody has to know files, and rows that were deleted are no answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic
from typing import NamedTuple

from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError, NotFoundError, NothingMatchesError, TimeBudgetError
from lineage_service.lineage import Choices
from lineage_service.queries import RowQuery
from lineage_service.tracing.columns.time_budget import TimeBudget, time_budget
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.query.dataset_users import MeantTable
from lineage_service.tracing.query.row_holders import RowHolders
from lineage_service.tracing.tables.table_search import TableSearch
from lineage_service.tracing.tables.table_version import DataFile, TableVersion, VersionAsked
from lineage_service.tracing.tables.table_versions import TableVersions

__all__ = ["TableRow", "TableRows"]

_MOST_WARNINGS = 10
#: The part of what is left of its time in which matches behind the page are counted.
_COUNT_SHARE = 0.5

Place = tuple[int, int]
"""(number of the file in the version, row in it)."""


class _Cursor(NamedTuple):
    """After which place of a version a page begins, and whether rows of pages before it were known."""

    version: int
    place: Place
    is_any_known: bool

    def __str__(self) -> str:
        file, row = self.place
        return f"{self.version}:{file}:{row}" + ("" if self.is_any_known else ":0")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a version of a table of a format, by its data file and its number there."""

    format: str
    version: TableVersion
    file: DataFile
    number: int


@dataclass(slots=True)
class _Matches:
    """`total` is None where not all files were looked at, or not all could be read."""

    places: list[Place] = field(default_factory=list)
    total: int | None = 0
    files: int = 0


class TableRows:
    """Of the tables that applications of one flow store wrote or read."""

    def __init__(
        self, files: FileSystems, versions: TableVersions, holders: RowHolders, *, time_budget_s: float
    ) -> None:
        self._files, self._versions, self._holders = files, versions, holders
        self._time_budget_s = time_budget_s

    def page(self, table: MeantTable, query: RowQuery, where: Where) -> Choices:
        """Raises NotFoundError, InvalidQueryError, TimeBudgetError, UnavailableError."""
        with time_budget(None, self._time_budget_s) as budget:
            choices = self._page(table, query, where, budget, is_for_history=False)
        assert isinstance(choices, Choices)
        return choices

    def row(self, table: MeantTable, query: RowQuery, where: Where, budget: TimeBudget) -> TableRow | Choices:
        """The only one, whoever wrote it; else those to choose from. Raises the same."""
        return self._page(table, query, where, budget, is_for_history=True)

    def _page(
        self,
        table: MeantTable,
        query: RowQuery,
        where: Where,
        budget: TimeBudget,
        *,
        is_for_history: bool,
    ) -> TableRow | Choices:
        after = _read_cursor(query.cursor)
        version: TableVersion | None = None
        try:
            page_of = None if after is None else after.version
            asked = VersionAsked(query.version, query.at, page_of)
            version = self._versions.of(table.path, table.format, budget, asked)
            if table.folder != table.path:
                version = _below(version, table.folder)
            with TableSearch(self._files, version, where) as search, budget.interrupting(search):
                matches = self._matches(search, query.limit, None if after is None else after.place, budget)
                if not matches.places and after is None:
                    raise _nothing(query, search, matches)
                if is_for_history and matches.total == 1 and after is None:
                    [(number, row)] = matches.places
                    return TableRow(table.format, version, version.files[number], row)
                listed = matches.places[: query.limit]
                rows = [(version.files[number], row) for number, row in listed]
                chosen = self._holders.of(version, rows, query, budget)
        except TimeBudgetError:
            raise _too_slow(table.path, version, budget.seconds) from None
        last = listed[-1] if len(matches.places) > query.limit else None
        is_first_known = after is None or not after.is_any_known
        if last is None and is_first_known and not chosen.choices:
            assert chosen.unknown is not None
            raise NotFoundError(
                chosen.unknown if after is None else f"on no page is a row known: {chosen.unknown}"
            )
        application = chosen.application or self._holders.application(
            query.application or table.application_id
        )
        return Choices(
            application_id=application.application_id,
            name=application.name,
            started=application.started,
            direction=chosen.direction,
            dataset=table.path,
            where=query.where,
            version=str(version.number),
            nodes=tuple(dict.fromkeys(choice.node_id for choice in chosen.choices)),
            total=matches.total,
            files=matches.files,
            choices=chosen.choices,
            next=None
            if last is None
            else str(_Cursor(version.number, last, not is_first_known or bool(chosen.choices))),
            warnings=(*filter(None, [chosen.unknown]), *search.warnings)[:_MOST_WARNINGS],
        )

    def _matches(self, search: TableSearch, limit: int, after: Place | None, budget: TimeBudget) -> _Matches:
        """The places of the page, one more if there is a next one."""
        numbers_of = {file.path: number for number, file in enumerate(search.version.files)}
        matches, until = _Matches(), monotonic() + _COUNT_SHARE * budget.left_s
        for file, rows in search.matches(budget):
            number = numbers_of[file.path]
            matches.files += 1
            if matches.total is not None:
                matches.total += rows.size
            for row in rows.tolist():
                if len(matches.places) > limit:
                    break
                if after is None or (number, row) > after:
                    matches.places.append((number, row))
            if len(matches.places) > limit and (after is not None or monotonic() >= until):
                matches.total = None
                break
        if after is not None or search.warnings:
            matches.total = None
        return matches


def _too_slow(table: str, version: TableVersion | None, seconds: float) -> TimeBudgetError:
    what, instead = f"reading the log of {table}", ""
    if version is not None:
        what = f"the search in the {len(version.files):,} files of {version.name}"
        instead = "name a folder of a partition, or "
    return TimeBudgetError(
        f"{what} took longer than its {seconds:g} s: {instead}give the service more time "
        "(LINEAGE_TRACE_SECONDS)"
    )


def _below(version: TableVersion, folder: str) -> TableVersion:
    files = tuple(file for file in version.files if file.path.startswith(f"{folder}/"))
    return replace(version, files=files)


def _nothing(query: RowQuery, search: TableSearch, matches: _Matches) -> NothingMatchesError:
    version = search.version
    records = [file.rows for file in version.files]
    rows = f" with {sum(count or 0 for count in records):,} rows" if None not in records else ""
    deleted = f"; {search.deleted:,} that did were deleted" if search.deleted else ""
    but = "".join(f"; {warning}" for warning in list(search.warnings)[:_MOST_WARNINGS])
    return NothingMatchesError(
        f"no row fulfils {query.where} in {version.name} of {version.table}: it has {len(version.files):,} "
        f"file{'' if len(version.files) == 1 else 's'}{rows}, and {matches.files:,} could hold such a row"
        f"{deleted}{but}"
    )


def _read_cursor(text: str | None) -> _Cursor | None:
    if text is None:
        return None
    numbers = text.split(":")
    if len(numbers) not in (3, 4) or not all(n.isascii() and n.isdigit() and len(n) < 20 for n in numbers):
        raise InvalidQueryError(f"cursor {text!r} was not given by this endpoint")
    version, file, row = map(int, numbers[:3])
    return _Cursor(version, (file, row), numbers[3:] != ["0"])
