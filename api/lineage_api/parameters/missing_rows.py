"""Parameters of the question what became of rows that are in no output."""

from __future__ import annotations

from pydantic import Field, model_validator

from lineage_api.parameters.fields import (
    NODE_HELP,
    Expression,
    Limit,
    NodeNumber,
    Parameters,
    Partition,
    PathName,
    Position,
    RecordName,
)
from lineage_service.lineage import Direction
from lineage_service.queries import MissingQuery

__all__ = ["MissingParameters"]


class MissingParameters(Parameters):
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
    output: PathName | None = Field(
        default=None,
        description="Only on the way to this output: a node, or the file or folder that was written.",
        examples=["/data/sums.csv"],
    )
    limit: Limit = Field(default=20, description="At most this many rows of each input.", examples=[20])

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
