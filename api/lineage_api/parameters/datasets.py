"""Parameters of the catalogue and of one dataset."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lineage_api.parameters.fields import (
    Depth,
    Limit,
    Name,
    PageParameters,
    PathName,
    Text,
    cursor_field,
)
from lineage_service.lineage import Direction
from lineage_service.queries import DatasetQuery, DatasetsQuery

__all__ = ["DatasetParameters", "DatasetsParameters"]


class DatasetsParameters(PageParameters):
    limit: Limit = Field(default=100, description="At most this many datasets a page.", examples=[100])
    cursor: str | None = cursor_field(
        "WyI4ZjZiMmMxZDNlNGEiLDAsLTE3MzIxODMyMDI1MDAsIi9kYXRhL3N1bXMuY3N2IiwiZmlsZSJd"
    )
    text: Text | None = Field(
        default=None,
        description="Only datasets whose name contains this text, ignoring case.",
        examples=["orders"],
    )

    def query(self) -> DatasetsQuery:
        return DatasetsQuery(**dict(self))


class DatasetParameters(PageParameters):
    limit: Limit = Field(
        default=100, description="At most this many writes and reads a page.", examples=[100]
    )
    cursor: str | None = cursor_field(
        "WyI4ZjZiMmMxZDNlNGEiLDE3MzIxODMyMDI1MDAsInN1bXMtb2Ytb3JkZXJzIiwwLCJyZWFkIl0"
    )
    name: PathName = Field(
        description="A path, `s3a://BUCKET/...`, `db.table`, or an ending of it that is unique.",
        examples=["/data/orders.csv"],
    )
    namespace: Name | None = Field(
        default=None,
        description="Where it is, if several have that name: `file`, `s3://BUCKET`.",
        examples=["file"],
    )
    direction: Direction | None = Field(
        default=None,
        description="Of the graph: `backward`, only what is before it; `forward`, only what is behind it.",
        examples=["backward"],
    )
    depth: Annotated[Depth, Field(ge=0)] | None = Field(
        default=None, description="Of the graph: at most this many jobs in each direction.", examples=[2]
    )

    def query(self) -> DatasetQuery:
        return DatasetQuery(**dict(self))
