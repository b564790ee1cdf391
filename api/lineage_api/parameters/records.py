"""Parameters of the records of a node, and of the values of one record."""

from __future__ import annotations

from pydantic import Field

from lineage_api.parameters.fields import (
    MAX_TEXT,
    NODE_HELP,
    Expression,
    Limit,
    NodeNumber,
    PageParameters,
    Parameters,
    Partition,
    Position,
    RecordName,
    RowParameters,
    Text,
    cursor_field,
    names,
)
from lineage_service.queries import RecordQuery

__all__ = ["RecordParameters", "ValueParameters"]


class RecordParameters(PageParameters, RowParameters):
    limit: Limit = Field(default=100, description="At most this many records a page.", examples=[100])
    cursor: str | None = cursor_field("0:1", max_length=MAX_TEXT)
    text: Text | None = Field(
        default=None, description="Only records that contain this text, ignoring case.", examples=["paid"]
    )
    where: Expression | None = Field(
        default=None,
        description="Only records whose columns fulfil this condition; not with `text` or `key`.",
        examples=["value like '%paid%'"],
    )
    key: Text | None = Field(default=None, description="Only records with this key.", examples=["North"])
    partition: Partition | None = Field(
        default=None, description="Only records of this partition.", examples=[0]
    )
    offset: Position | None = Field(
        default=None,
        description="Only records from this offset of `partition` on, from 0.",
        examples=[1],
    )

    def query(self, node: str) -> RecordQuery:
        """Raises InvalidQueryError."""
        return RecordQuery(node=node, **{**dict(self), "columns": names(self.columns)})


class ValueParameters(Parameters):
    record: RecordName = Field(
        description="A record id, or one with its node's id or number before it: `NODE_ID#RECORD_ID`, "
        "`NUMBER#RECORD_ID`.",
        examples=["write#0#0"],
    )
    node: NodeNumber | None = Field(
        default=None, description=f"If the record id alone is ambiguous: {NODE_HELP}.", examples=["3"]
    )
