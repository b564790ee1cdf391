"""Parameters of a trace: from a record of an application, or from a row of a dataset."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from lineage_api.parameters.fields import (
    NODE_HELP,
    Depth,
    Expression,
    Limit,
    Name,
    NodeNumber,
    PathName,
    Position,
    Text,
    TracePageParameters,
    Version,
    cursor_field,
    names,
)
from lineage_api.parameters.starts import StartParameters
from lineage_service.lineage import Direction
from lineage_service.queries import RowQuery, TraceQuery, version_named

__all__ = ["DatasetTraceParameters", "TraceParameters"]

_NEXT = "`next` of the page before, or of a 504."


class TraceParameters(TracePageParameters, StartParameters):
    cursor: str | None = cursor_field("eJyLVjI0MrZQ0lEy", description=_NEXT)
    direction: Direction = Field(
        description="`backward`: what it came from. `forward`: what became of it.", examples=["backward"]
    )
    to: NodeNumber | None = Field(
        default=None,
        description=f"Only nodes between the start and this node: {NODE_HELP}.",
        examples=["0"],
    )
    depth: Annotated[Depth, Field(ge=1)] | None = Field(
        default=None, description="Follow at most this many operations.", examples=[3]
    )
    only: NodeNumber | None = Field(
        default=None,
        description=f"List records of this node only and count the others: {NODE_HELP}.",
        examples=["3"],
    )
    sort: Expression | None = Field(
        default=None,
        description="With `only`: order all of its rows by this column, the smallest value first.",
        examples=["amount"],
    )
    filter: Expression | None = Field(
        default=None,
        description="With `only`: list only its records that fulfil this condition.",
        examples=["value like '%paid%'"],
    )
    desc: bool = Field(default=False, description="With `sort`: the largest value first.", examples=[True])
    across: bool = Field(
        default=True,
        description="Continue in applications that wrote the input files, or read the output files. With "
        "`to` or `depth` a trace stays in its application.",
        examples=[False],
    )

    def query(self) -> TraceQuery:
        """Raises InvalidQueryError."""
        return TraceQuery(**{**dict(self), "columns": names(self.columns), "starts": self.several()})


class DatasetTraceParameters(TracePageParameters):
    limit: Limit = Field(
        default=100,
        description="At most this many records of each node, or rows to choose from.",
        examples=[100],
    )
    cursor: str | None = cursor_field("3:0:1", description=_NEXT)
    dataset: PathName = Field(
        description="A file, folder, glob, URI or table that an application wrote or read.",
        examples=["/data/sums.csv"],
    )
    where: Expression | None = Field(
        default=None,
        description="Start: the row whose columns fulfil this condition.",
        examples=["value like '%North%'"],
    )
    version: Version | None = Field(
        default=None,
        description="With `where`, of a table: the version in which rows are looked for. By default the "
        "newest. Of Iceberg a snapshot, branch or tag.",
        examples=["12"],
    )
    row: Position | None = Field(
        default=None,
        description="Start: the row of this number, from 0, if `dataset` is one file.",
        examples=[0],
    )
    key: Text | None = Field(
        default=None, description="Start: all records with this key.", examples=["North"]
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
    app: Name | None = Field(
        default=None,
        description="The application, or `last`. By default the newest that wrote the dataset, else "
        "the newest that read it.",
        examples=["sums-of-orders"],
    )
    at: Position | None = Field(
        default=None,
        description="Only applications that began until then, in Unix milliseconds; of a table its version "
        "then.",
        examples=[1732183200000],
    )
    node: NodeNumber | None = Field(default=None, description=f"Only {NODE_HELP}.", examples=["3"])

    @model_validator(mode="after")
    def _has_one_start(self) -> DatasetTraceParameters:
        present = [name for name in ("where", "row", "key") if getattr(self, name) is not None]
        if len(present) != 1:
            raise ValueError(
                f"name one start: where, row or key; the request has {', '.join(present) or 'none'}"
            )
        if self.all and self.where is None:
            raise ValueError("all needs where: all rows that fulfil it")
        if self.version is not None and (self.where is None or self.at is not None):
            raise ValueError("version needs where, and no at: the rows of that version that fulfil it")
        return self

    def queries(self) -> tuple[RowQuery, TraceQuery]:
        """The rows that are meant, and the trace that starts there. Raises InvalidQueryError."""
        is_of_rows = self.cursor is not None and self.cursor.replace(":", "").isdigit()
        rows = RowQuery(
            dataset=self.dataset,
            where=self.where,
            row=self.row,
            version=None if self.version is None else version_named(self.version),
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
            columns=names(self.columns),
            remarks=self.remarks,
            across=self.across,
        )
        return rows, trace
