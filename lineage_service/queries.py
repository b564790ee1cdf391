"""The queries that the service answers: their parameters, and the methods.

Knows nothing of HTTP, of stores or of how a trace is found.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import (
    Absence,
    Application,
    Choices,
    Comparison,
    Contrast,
    DatasetPage,
    Datasets,
    Direction,
    Explanation,
    Failures,
    Graph,
    Missing,
    RecordPage,
    RowHistory,
    RowSet,
    Slow,
    Suspects,
    SuspectsMethod,
    Trace,
    Values,
)

#: In place of the names of columns: every column.
ALL_COLUMNS = "*"
#: Records at which one trace may start.
MOST_STARTS = 10_000


def column_names(text: str) -> tuple[str, ...]:
    """The names in `a,b,"c, d"`. Raises InvalidQueryError."""
    try:
        (names,) = csv.reader([text], strict=True)
    except (csv.Error, ValueError):
        names = []
    if not names or not all(names):
        raise InvalidQueryError(
            f"{text[:80]!r} is no list of columns: write a,b (with quotes round a name that has a comma)"
        )
    return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartQuery:
    """One start of several: the fields of a TraceQuery that name one."""

    record: str | None = None
    node: str | None = None
    partition: int | None = None
    offset: int | None = None
    key: str | None = None
    path: str | None = None
    row: int | None = None
    failure: int | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """A trace from one start: record, or node with partition and offset, or node with key, or path with row,
    or failure. Or from all of `starts`.

    `node` also resolves an ambiguous record or path.
    """

    direction: Direction
    record: str | None = None
    node: str | None = None
    partition: int | None = None
    offset: int | None = None
    key: str | None = None
    path: str | None = None
    row: int | None = None
    #: Start at the record that made a task fail: the number of the failure. Backward only.
    failure: int | None = None
    #: With `path`, a file, folder or glob, or with `node`: start at all rows that fulfil this condition.
    where: str | None = None
    #: Start at all of these; then none of the fields above is given.
    starts: tuple[StartQuery, ...] | None = None
    to: str | None = None
    depth: int | None = None
    #: List records of this node only; the others are counted.
    only: str | None = None
    #: Order the records of `only` by this column of their rows; `desc`: the largest first.
    sort: str | None = None
    desc: bool = False
    #: List only those records of `only` that fulfil this condition.
    filter: str | None = None
    #: Columns of the rows of files that are listed; `*` is every column, None: the texts alone.
    columns: tuple[str, ...] | None = None
    #: Say which rows of sources (forward: of sinks) stand out.
    remarks: bool = False
    limit: int = 100
    cursor: str | None = None
    values: bool = False
    #: Continue in applications that wrote the input files or read the output files; not with `to` or `depth`.
    across: bool = True

    @property
    def crosses_applications(self) -> bool:
        """Whether the trace continues in other applications."""
        return self.across and self.to is None and self.depth is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSetQuery:
    """The rows of an application's sources that some of its records were made of."""

    starts: tuple[StartQuery, ...]
    #: Only the rows that decided what the records are, as of an explanation.
    concise: bool = False
    #: List the texts of at most this many rows of each source.
    limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationQuery:
    """The few rows of an application's sources that decided what some of its records are."""

    starts: tuple[StartQuery, ...]
    #: Rows of inputs that are to be in the explanation, with what is joined with them.
    demanded: tuple[StartQuery, ...] = ()
    #: Also say what the two records of `starts` share, and which of them each row counts for.
    same: bool = False
    #: Also compare with the same records of this application, or with `compare_starts` of it.
    compare: str | None = None
    compare_starts: tuple[StartQuery, ...] = ()
    #: Also give the rows as an expression: which are needed together, and which are alternatives.
    how: bool = False
    #: Also count the rows of a plain trace, if that does not take long. With the first page only.
    plain: bool = True
    #: List at most this many rows, and as many records of each turn of a loop.
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsenceQuery:
    """Why an operation has no record with a key. `node` is a node id or its number."""

    node: str
    key: str
    #: Follow at most this many records with the key, of each operation that has it.
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordQuery:
    """Records of a node. `node` is a node id or its number; `text` is a case-insensitive substring; `offset`
    is the first one in `partition`."""

    node: str
    text: str | None = None
    #: A condition on the columns of the rows.
    where: str | None = None
    key: str | None = None
    partition: int | None = None
    offset: int | None = None
    #: Columns of the rows of files; `*` is every column, None: the texts alone.
    columns: tuple[str, ...] | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetsQuery:
    """Datasets of all applications. `text` is a case-insensitive substring of their names."""

    text: str | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetQuery:
    """One dataset. `name` is a path, `s3a://...`, `db.table`, or an ending of it that is unique.

    `direction` and `depth` (in jobs) are those of its graph, `limit` and `cursor` those of its history.
    """

    name: str
    namespace: str | None = None
    direction: Direction | None = None
    depth: int | None = None
    limit: int = 100
    cursor: str | None = None


def version_named(text: str) -> int | str:
    """The version of a table that a person names: by its number, or by a branch or tag."""
    return int(text) if text.isascii() and text.isdigit() else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """Rows by a condition, or one by its number: of `dataset`, of `node`, or of an application's one output.

    Without either, the result says which application and which of its nodes the dataset is.
    `dataset` is a file, a folder, a glob or a URI. Without `application`, the newest one that wrote it is
    meant, else the newest that read it; with `at`, Unix milliseconds, of those that began until then.
    """

    where: str | None = None
    row: int | None = None
    dataset: str | None = None
    #: Of a table: the version in which rows are looked for, or the branch or tag that names it. None: the
    #: newest, or the newest until `at`.
    version: int | str | None = None
    application: str | None = None
    at: int | None = None
    node: str | None = None
    #: Without `application`, the newest that read the dataset is meant, else the newest that wrote it.
    as_input: bool = False
    #: None: backward from what was written, forward from what was only read.
    direction: Direction | None = None
    limit: int = 20
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareQuery:
    """What one run wrote, compared with what another one did: `before` and `after` are application ids.

    With `dataset` it is that output of theirs; without applications, of the last two runs that wrote it.
    `key` are the columns that name a row; without, equal rows are paired, and then those of equal input rows.
    """

    before: str | None = None
    after: str | None = None
    dataset: str | None = None
    key: tuple[str, ...] = ()
    #: At most this many rows that are gone, as many that are new, and that changed.
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingQuery:
    """What became of rows that are not in an output.

    A row of an input: record, or node with partition and offset, or path with row. Or all rows of `path`, a
    file, folder or glob, or of `node`, that fulfil `where`. If that is an output, or nothing is named, the
    rows of its inputs are meant that fulfil it as far as they have its columns.
    """

    record: str | None = None
    node: str | None = None
    partition: int | None = None
    offset: int | None = None
    path: str | None = None
    row: int | None = None
    where: str | None = None
    #: Only on the way to this output: a node, or what was written.
    output: str | None = None
    #: `forward`: `path` is meant as an input, also if the application wrote it.
    direction: Direction | None = None
    #: Follow rows that are in an output into applications that read it.
    across: bool = True
    #: At most this many rows, of each input.
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectsQuery:
    """Which tasks behave oddly. With bad outputs, those on their way; with good ones, unlike on theirs."""

    bad: tuple[StartQuery, ...] = ()
    good: tuple[StartQuery, ...] = ()
    method: SuspectsMethod = "graded"
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastQuery:
    """What the sources of bad outputs share. Without good ones, others of the same outputs are compared."""

    bad: tuple[StartQuery, ...] = ()
    good: tuple[StartQuery, ...] = ()
    #: The records that made tasks fail are bad, too.
    failures: bool = False
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowQuery:
    """Which records took long."""

    #: At most this many records, and as many input rows, operations and partitions.
    limit: int = 20


class Queries(Protocol):
    """All queries. `lineage_service.tracing` answers them; the API and the commands ask.

    Each method raises NotFoundError, InvalidQueryError, TimeBudgetError or UnavailableError.
    """

    def newest_applications(self) -> Iterator[Application]:
        """All of them, newest first. They are read as they are taken."""

    def applications(self) -> tuple[Application, ...]: ...

    def application(self, application_id: str) -> Application: ...

    def graph(self, application_id: str) -> Graph: ...

    def records(self, application_id: str, query: RecordQuery) -> RecordPage: ...

    def rows(self, query: RowQuery) -> Choices: ...

    def history(self, query: RowQuery) -> RowHistory | Choices:
        """Of the one row of a table that fulfils the condition; else those to choose from."""

    def trace(self, application_id: str, query: TraceQuery) -> Trace: ...

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet: ...

    def explanation(self, application_id: str, query: ExplanationQuery) -> Explanation: ...

    def absence(self, application_id: str, query: AbsenceQuery) -> Absence: ...

    def values(self, application_id: str, record: str, node: str | None) -> Values: ...

    def datasets(self, query: DatasetsQuery) -> Datasets: ...

    def dataset(self, query: DatasetQuery) -> DatasetPage: ...

    def failures(self, application_id: str) -> Failures: ...

    def slow(self, application_id: str, query: SlowQuery) -> Slow: ...

    def suspects(self, application_id: str, query: SuspectsQuery) -> Suspects: ...

    def contrast(self, application_id: str, query: ContrastQuery) -> Contrast: ...

    def missing(self, application_id: str, query: MissingQuery) -> Missing: ...

    def compare(self, query: CompareQuery) -> Comparison: ...
