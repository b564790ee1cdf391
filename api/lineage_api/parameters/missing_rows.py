"""Parameters of the question what became of rows that are in no output."""

from __future__ import annotations

from pydantic import Field, model_validator

from lineage_api.parameters.fields import (
    NODE_HELP,
    Expression,
    Limit,
    Name,
    NodeNumber,
    Parameters,
    Partition,
    PathName,
    Position,
    RecordName,
)
from lineage_service.lineage import Direction
from lineage_service.queries import MissingQuery, RowQuery

__all__ = ["DatasetMissingParameters", "MissingParameters"]


class _EndingParameters(Parameters):
    """How far rows are followed, and how many."""

    output: PathName | None = Field(
        default=None,
        description="Only on the way to this output: a node, or the file or folder that was written.",
        examples=["/data/sums.csv"],
    )
    across: bool = Field(
        default=True,
        description="Follow rows that are in an output into applications that read it.",
        examples=[False],
    )
    limit: Limit = Field(default=20, description="At most this many rows of each input.", examples=[20])


class MissingParameters(_EndingParameters):
    path: PathName | None = Field(
        default=None,
        description="A file of an input, with `row`. With `where` also a folder or a glob, of an input or of "
        "an output.",
        examples=["/data/orders.csv"],
    )
    row: Position | None = Field(
        default=None, description="Row of `path`, from 0, header lines included.", examples=[1]
    )
    record: RecordName | None = Field(
        default=None,
        description="A record id, or one with its node's id or number before it.",
        examples=["0#read#0#1"],
    )
    node: NodeNumber | None = Field(
        default=None,
        description=f"{NODE_HELP[0].upper()}{NODE_HELP[1:]}: with `partition` and `offset`, or to choose one "
        "that read `path`, or with `where`.",
        examples=["0"],
    )
    partition: Partition | None = Field(default=None, description="Partition of `node`.", examples=[0])
    offset: Position | None = Field(default=None, description="Offset in `partition`, from 0.", examples=[1])
    where: Expression | None = Field(
        default=None,
        description="Rows that fulfil this condition on columns. Of an input: these rows. Of an output, "
        "which is meant where nothing is named: the rows of its inputs, as far as they have the columns.",
        examples=["value like 'North%'"],
    )
    direction: Direction | None = Field(
        default=None,
        description="With `where`: `forward` means `path` as an input, also if the application wrote it.",
        examples=["forward"],
    )

    @model_validator(mode="after")
    def _names_rows(self) -> MissingParameters:
        starts = {"record", "node", "partition", "offset", "path", "row", "where"}
        names = frozenset(name for name in starts if getattr(self, name) is not None)
        if names not in _STARTS:
            raise ValueError(
                "name the rows: path with row (and node), or record (and node), or node with partition and "
                f"offset, or where (with path and node); the request has {', '.join(sorted(names)) or 'none'}"
            )
        return self

    def query(self) -> MissingQuery:
        return MissingQuery(**dict(self))


class DatasetMissingParameters(_EndingParameters):
    dataset: PathName = Field(
        description="A file, folder, glob or URI that an application read or wrote.",
        examples=["/data/sums.csv"],
    )
    where: Expression | None = Field(
        default=None,
        description="Rows that fulfil this condition on columns: of what was only read, these rows. Of what "
        "was written, the rows of its inputs, as far as they have the columns.",
        examples=["value like '%North%'"],
    )
    row: Position | None = Field(
        default=None,
        description="The row of this number, from 0, if `dataset` is one file of an input.",
        examples=[0],
    )
    direction: Direction | None = Field(
        default=None,
        description="With `where`: `forward` means `dataset` as an input, also if it was written.",
        examples=["forward"],
    )
    app: Name | None = Field(
        default=None,
        description="The application, or `last`. By default the newest that wrote the dataset, else the "
        "newest that read it; of an input the other way round.",
        examples=["sums-of-orders"],
    )
    at: Position | None = Field(
        default=None,
        description="Only applications that began until then, in Unix milliseconds.",
        examples=[1732183200000],
    )
    node: NodeNumber | None = Field(default=None, description=f"Only {NODE_HELP}.", examples=["3"])

    @model_validator(mode="after")
    def _has_one_start(self) -> DatasetMissingParameters:
        if (self.where is None) == (self.row is None):
            present = [name for name in ("where", "row") if getattr(self, name) is not None]
            raise ValueError(f"name the rows: where or row; the request has {', '.join(present) or 'none'}")
        return self

    def queries(self) -> tuple[RowQuery, MissingQuery]:
        """The dataset that is meant, and the query about its rows."""
        rows = RowQuery(dataset=self.dataset, application=self.app, at=self.at, node=self.node)
        query = MissingQuery(
            where=self.where,
            row=self.row,
            node=self.node,
            output=self.output,
            direction=self.direction,
            across=self.across,
            limit=self.limit,
        )
        return rows, query


_STARTS = frozenset(
    map(
        frozenset,
        (
            ("path", "row"),
            ("path", "row", "node"),
            ("record",),
            ("record", "node"),
            ("node", "partition", "offset"),
            ("where",),
            ("where", "path"),
            ("where", "node"),
            ("where", "path", "node"),
        ),
    )
)
