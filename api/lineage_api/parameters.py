"""The parameters of each endpoint, their limits, and the queries that they become.

Every text has a maximum length and every number a range, so that nothing unbounded reaches a store. Names
contain no control characters. Unknown parameters are refused: a misspelt filter must not be ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lineage_service.lineage import Application, Applications, ApplicationState, Direction
from lineage_service.queries import (
    CompareQuery,
    DatasetQuery,
    DatasetsQuery,
    RecordQuery,
    RowQuery,
    TraceQuery,
    column_names,
)

__all__ = [
    "MAX_LIMIT",
    "ApplicationId",
    "ApplicationParameters",
    "CompareParameters",
    "DatasetParameters",
    "DatasetTraceParameters",
    "DatasetsParameters",
    "NodeName",
    "RecordParameters",
    "TraceParameters",
    "ValueParameters",
]

MAX_LIMIT = 10_000
_MAX_DEPTH = 10_000
_MAX_PARTITION = (1 << 31) - 1
_MAX_POSITION = (1 << 53) - 1  # what JSON readers keep whole
_MAX_ID = 512
_MAX_TEXT = 4096  # also the longest path of Linux
_MAX_CURSOR = 16_384  # of a trace of some 2,000 nodes
_MAX_RECORD = _MAX_ID + _MAX_TEXT  # NODE_ID#KEY
#: No control characters. A searched text may contain any, and a path all but NUL.
_NAME = r"[^\x00-\x1f\x7f]+"
_PATH = r"^[^\x00]+$"
_NODE = rf"^({_NAME}#)?[0-9]{{1,10}}$"
_RECORD = rf"^(({_NAME}#)?[0-9]{{1,10}}#)?((read|write)#)?[0-9]{{1,18}}#[0-9]{{1,18}}$"
_CURSOR = r"^[\x21-\x7e]+$"
_NODE_HELP = "a node id (`APPLICATION_ID#NUMBER`, `#` written as `%23`) or the node's number"

ApplicationId = Annotated[
    str,
    Path(
        examples=["sums-of-orders"],
        description="Spark's `applicationId`, or `last`: the newest application, unless one has that id.",
        min_length=1,
        max_length=_MAX_ID,
        pattern=f"^{_NAME}$",
    ),
]
NodeName = Annotated[
    str,
    Path(
        examples=["sums-of-orders#3", "3"],
        description=f"{_NODE_HELP[0].upper()}{_NODE_HELP[1:]}.",
        max_length=_MAX_ID,
        pattern=_NODE,
    ),
]


def _columns_field() -> Any:
    return Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="List rows of files by these columns, too: `a,b`, or `*` for every column.",
        examples=["*"],
    )


def _names(columns: str | None) -> tuple[str, ...] | None:
    return None if columns is None else column_names(columns)


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ApplicationParameters(_Parameters):
    limit: int = Field(
        default=1000, ge=1, le=MAX_LIMIT, description="At most this many applications a page.", examples=[100]
    )
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        pattern=rf"^-?[0-9]{{1,18}}:{_NAME}$",
        description="`next` of the page before.",
        examples=["1732183200000:sums-of-orders"],
    )
    text: str | None = Field(
        default=None,
        max_length=_MAX_TEXT,
        description="Only applications whose name or id contains this text, ignoring case.",
        examples=["orders"],
    )
    state: ApplicationState | None = Field(
        default=None, description="Only applications in this state.", examples=["ended"]
    )
    complete: bool | None = Field(
        default=None, description="`true`: only complete applications. `false`: only others.", examples=[True]
    )

    def page(self, newest_first: Sequence[Application]) -> Applications:
        """The matching applications behind the cursor. One that starts meanwhile moves no page."""
        matches = [application for application in newest_first if self._matches(application)]
        if self.cursor is not None:
            started, _, name = self.cursor.partition(":")
            last = (-int(started), name)
            matches = [
                application
                for application in matches
                if (-application.started, application.application_id) > last
            ]
        page = tuple(matches[: self.limit])
        is_last = len(matches) <= self.limit
        cursor = None if is_last else f"{page[-1].started}:{page[-1].application_id}"
        return Applications(applications=page, next=cursor)

    def _matches(self, application: Application) -> bool:
        text = (self.text or "").casefold()
        return (
            (text in application.name.casefold() or text in application.application_id.casefold())
            and self.state in (None, application.state)
            and self.complete in (None, application.complete)
        )


class DatasetsParameters(_Parameters):
    text: str | None = Field(
        default=None,
        max_length=_MAX_TEXT,
        description="Only datasets whose name contains this text, ignoring case.",
        examples=["orders"],
    )
    limit: int = Field(
        default=100, ge=1, le=MAX_LIMIT, description="At most this many datasets a page.", examples=[100]
    )
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_CURSOR,
        pattern=_CURSOR,
        description="`next` of the page before.",
        examples=["WyI4ZjZiMmMxZDNlNGEiLDAsLTE3MzIxODMyMDI1MDAsIi9kYXRhL3N1bXMuY3N2IiwiZmlsZSJd"],
    )

    def query(self) -> DatasetsQuery:
        return DatasetsQuery(**dict(self))


class DatasetParameters(_Parameters):
    name: str = Field(
        min_length=1,
        max_length=_MAX_TEXT,
        pattern=_PATH,
        description="A path, `s3a://BUCKET/...`, `db.table`, or an ending of it that is unique.",
        examples=["/data/orders.csv"],
    )
    namespace: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_ID,
        pattern=f"^{_NAME}$",
        description="Where it is, if several have that name: `file`, `s3://BUCKET`.",
        examples=["file"],
    )
    direction: Direction | None = Field(
        default=None,
        description="Of the graph: `backward`, only what is before it; `forward`, only what is behind it.",
        examples=["backward"],
    )
    depth: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_DEPTH,
        description="Of the graph: at most this many jobs in each direction.",
        examples=[2],
    )
    limit: int = Field(
        default=100,
        ge=1,
        le=MAX_LIMIT,
        description="At most this many writes and reads a page.",
        examples=[100],
    )
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_CURSOR,
        pattern=_CURSOR,
        description="`next` of the page before.",
        examples=["WyI4ZjZiMmMxZDNlNGEiLDE3MzIxODMyMDI1MDAsInN1bXMtb2Ytb3JkZXJzIiwwLCJyZWFkIl0"],
    )

    def query(self) -> DatasetQuery:
        return DatasetQuery(**dict(self))


class RecordParameters(_Parameters):
    text: str | None = Field(
        default=None,
        max_length=_MAX_TEXT,
        description="Only records that contain this text, ignoring case.",
        examples=["paid"],
    )
    where: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="Only records whose columns fulfil this condition; not with `text` or `key`.",
        examples=["value like '%paid%'"],
    )
    key: str | None = Field(
        default=None, max_length=_MAX_TEXT, description="Only records with this key.", examples=["North"]
    )
    partition: int | None = Field(
        default=None, ge=0, le=_MAX_PARTITION, description="Only records of this partition.", examples=[0]
    )
    limit: int = Field(
        default=100, ge=1, le=MAX_LIMIT, description="At most this many records a page.", examples=[100]
    )
    offset: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_POSITION,
        description="Only records from this offset of `partition` on, from 0.",
        examples=[1],
    )
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        pattern=_CURSOR,
        description="`next` of the page before.",
        examples=["0:1"],
    )

    columns: str | None = _columns_field()

    def query(self, node: str) -> RecordQuery:
        """Raises InvalidQueryError."""
        return RecordQuery(node=node, **{**dict(self), "columns": _names(self.columns)})


class TraceParameters(_Parameters):
    direction: Direction = Field(
        description="`backward`: what it came from. `forward`: what became of it.", examples=["backward"]
    )
    record: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_RECORD,
        pattern=_RECORD,
        description="Start: a record id (with `node` if it is ambiguous), or one with its node's id or "
        "number before it: `NODE_ID#RECORD_ID`, `NUMBER#RECORD_ID`.",
        examples=["write#0#0"],
    )
    node: str | None = Field(
        default=None,
        max_length=_MAX_ID,
        pattern=_NODE,
        description=f"Start: {_NODE_HELP}; with `partition` and `offset`, or `key`, or `record`, or `path`.",
        examples=["3"],
    )
    partition: int | None = Field(
        default=None, ge=0, le=_MAX_PARTITION, description="Start: partition of `node`.", examples=[0]
    )
    offset: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_POSITION,
        description="Start: offset in `partition`, from 0.",
        examples=[0],
    )
    key: str | None = Field(
        default=None,
        max_length=_MAX_TEXT,
        description="Start: all records of `node` with this key.",
        examples=["North"],
    )
    path: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        pattern=_PATH,
        description="Start: an input or output file.",
        examples=["/data/sums.csv"],
    )
    row: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_POSITION,
        description="Start: row of `path`, from 0, header lines included.",
        examples=[0],
    )
    where: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="Start: all rows that fulfil this condition on columns, 10,000 at most; of `path` (a "
        "file, folder or glob), of `node`, or of the application's one output.",
        examples=["value like '%paid%'"],
    )
    to: str | None = Field(
        default=None,
        max_length=_MAX_ID,
        pattern=_NODE,
        description=f"Only nodes between the start and this node: {_NODE_HELP}.",
        examples=["0"],
    )
    depth: int | None = Field(
        default=None, ge=1, le=_MAX_DEPTH, description="Follow at most this many operations.", examples=[3]
    )
    only: str | None = Field(
        default=None,
        max_length=_MAX_ID,
        pattern=_NODE,
        description=f"List records of this node only and count the others: {_NODE_HELP}.",
        examples=["3"],
    )
    limit: int = Field(
        default=100, ge=1, le=MAX_LIMIT, description="At most this many records of each node.", examples=[100]
    )
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_CURSOR,
        pattern=_CURSOR,
        description="`next` of the page before, or of a 504.",
        examples=["eJyLVjI0MrZQ0lEy"],
    )
    values: bool = Field(
        default=False, description="List captured values of intermediate records, too.", examples=[True]
    )
    sort: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="With `only`: order all of its rows by this column, the smallest value first.",
        examples=["amount"],
    )
    filter: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="With `only`: list only its records that fulfil this condition.",
        examples=["value like '%paid%'"],
    )
    desc: bool = Field(default=False, description="With `sort`: the largest value first.", examples=[True])
    columns: str | None = _columns_field()
    remarks: bool = Field(
        default=False,
        description="Say which rows at the ends of the trace stand out, with its first page.",
        examples=[True],
    )
    across: bool = Field(
        default=True,
        description="Continue in applications that wrote the input files, or read the output files. With "
        "`to` or `depth` a trace stays in its application.",
        examples=[False],
    )

    @model_validator(mode="after")
    def _has_one_start(self) -> TraceParameters:
        starts = {"record", "node", "partition", "offset", "key", "path", "row", "where"}
        names = frozenset(name for name in starts if getattr(self, name) is not None)
        if names not in _STARTS:
            raise ValueError(
                "name one start: record (and node), or node with partition and offset, or node with key, or "
                "path with row (and node), or where (with path and node); the request has "
                f"{', '.join(sorted(names)) or 'none'}"
            )
        return self

    def query(self) -> TraceQuery:
        """Raises InvalidQueryError."""
        return TraceQuery(**{**dict(self), "columns": _names(self.columns)})


_STARTS = frozenset(
    {
        frozenset({"record"}),
        frozenset({"record", "node"}),
        frozenset({"node", "partition", "offset"}),
        frozenset({"node", "key"}),
        frozenset({"path", "row"}),
        frozenset({"path", "row", "node"}),
        frozenset({"where"}),
        frozenset({"where", "path"}),
        frozenset({"where", "node"}),
        frozenset({"where", "path", "node"}),
    }
)


class DatasetTraceParameters(_Parameters):
    dataset: str = Field(
        min_length=1,
        max_length=_MAX_TEXT,
        pattern=_PATH,
        description="A file, folder, glob or URI that an application wrote or read.",
        examples=["/data/sums.csv"],
    )
    where: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="Start: the row whose columns fulfil this condition.",
        examples=["value like '%North%'"],
    )
    row: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_POSITION,
        description="Start: the row of this number, from 0, if `dataset` is one file.",
        examples=[0],
    )
    key: str | None = Field(
        default=None,
        max_length=_MAX_TEXT,
        description="Start: all records with this key.",
        examples=["North"],
    )
    all: bool = Field(
        default=False, description="Start at all rows that fulfil `where`, 10,000 at most.", examples=[True]
    )
    direction: Direction | None = Field(
        default=None,
        description="`backward`: what it came from. `forward`: what became of it. By default backward from "
        "what was written, forward from what was only read.",
        examples=["backward"],
    )
    app: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_ID,
        pattern=f"^{_NAME}$",
        description="The application, or `last`. By default the newest that wrote the dataset, else "
        "the newest that read it.",
        examples=["sums-of-orders"],
    )
    at: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_POSITION,
        description="Only applications that began until then, in Unix milliseconds.",
        examples=[1732183200000],
    )
    node: str | None = Field(
        default=None, max_length=_MAX_ID, pattern=_NODE, description=f"Only {_NODE_HELP}.", examples=["3"]
    )
    limit: int = Field(
        default=100,
        ge=1,
        le=MAX_LIMIT,
        description="At most this many records of each node, or rows to choose from.",
        examples=[100],
    )
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_CURSOR,
        pattern=_CURSOR,
        description="`next` of the page before, or of a 504.",
        examples=["3:0:1"],
    )
    values: bool = Field(
        default=False, description="List captured values of intermediate records, too.", examples=[True]
    )
    across: bool = Field(
        default=True,
        description="Continue in applications that wrote the input files, or read the output files.",
        examples=[False],
    )

    columns: str | None = _columns_field()
    remarks: bool = Field(
        default=False,
        description="Say which rows at the ends of the trace stand out, with its first page.",
        examples=[True],
    )

    @model_validator(mode="after")
    def _has_one_start(self) -> DatasetTraceParameters:
        names = [name for name in ("where", "row", "key") if getattr(self, name) is not None]
        if len(names) != 1:
            raise ValueError(
                f"name one start: where, row or key; the request has {', '.join(names) or 'none'}"
            )
        if self.all and self.where is None:
            raise ValueError("all needs where: all rows that fulfil it")
        return self

    def queries(self) -> tuple[RowQuery, TraceQuery]:
        """The rows that are meant, and the trace that starts there. Raises InvalidQueryError."""
        is_of_rows = self.cursor is not None and self.cursor.replace(":", "").isdigit()
        rows = RowQuery(
            dataset=self.dataset,
            where=self.where,
            row=self.row,
            application=self.app,
            at=self.at,
            node=self.node,
            direction=self.direction,
            limit=self.limit,
            cursor=self.cursor if is_of_rows else None,
        )
        trace = TraceQuery(
            direction=self.direction or "backward",
            key=self.key,
            limit=self.limit,
            cursor=None if is_of_rows else self.cursor,
            values=self.values,
            columns=_names(self.columns),
            remarks=self.remarks,
            across=self.across,
        )
        return rows, trace


class CompareParameters(_Parameters):
    before: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_ID,
        pattern=f"^{_NAME}$",
        description="The application of the earlier run.",
        examples=["yesterday"],
    )
    after: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_ID,
        pattern=f"^{_NAME}$",
        description="The application of the later run, or `last`.",
        examples=["today"],
    )
    dataset: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        pattern=_PATH,
        description="The output that is compared. Without applications: what the last two complete runs "
        "wrote there.",
        examples=["/data/monthly"],
    )
    key: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description="The columns that name a row: `a,b`. Without, rows of equal input rows are paired.",
        examples=["value"],
    )
    limit: int = Field(
        default=100, ge=1, le=MAX_LIMIT, description="At most this many rows of each kind.", examples=[100]
    )

    @model_validator(mode="after")
    def _names_two_runs(self) -> CompareParameters:
        if (self.before is None) != (self.after is None):
            raise ValueError("before and after belong together: the applications of the two runs")
        if self.before is None and self.dataset is None:
            raise ValueError("name two applications (before and after), or a dataset")
        return self

    def query(self) -> CompareQuery:
        """Raises InvalidQueryError."""
        return CompareQuery(**{**dict(self), "key": _names(self.key) or ()})


class ValueParameters(_Parameters):
    record: str = Field(
        min_length=1,
        max_length=_MAX_RECORD,
        pattern=_RECORD,
        description="A record id, or one with its node's id or number before it: `NODE_ID#RECORD_ID`, "
        "`NUMBER#RECORD_ID`.",
        examples=["write#0#0"],
    )
    node: str | None = Field(
        default=None,
        max_length=_MAX_ID,
        pattern=_NODE,
        description=f"If the record id alone is ambiguous: {_NODE_HELP}.",
        examples=["3"],
    )
