"""Parameters of the history of a row of a table."""

from __future__ import annotations

from pydantic import Field, model_validator

from lineage_api.parameters.fields import (
    Expression,
    Limit,
    PageParameters,
    PathName,
    Position,
    Version,
    cursor_field,
)
from lineage_service.queries import RowQuery, version_named

__all__ = ["RowHistoryParameters"]


class RowHistoryParameters(PageParameters):
    limit: Limit = Field(default=20, description="At most this many rows to choose from.", examples=[20])
    cursor: str | None = cursor_field("3:0:1")
    dataset: PathName = Field(
        description="A table of Delta Lake or Iceberg: its name in a catalog, its folder or its URL.",
        examples=["sales.orders"],
    )
    where: Expression = Field(
        description="The row whose columns fulfil this condition.", examples=["id = 42"]
    )
    version: Version | None = Field(
        default=None,
        description="The version in which the row is looked for. By default the newest.",
        examples=["12"],
    )
    at: Position | None = Field(
        default=None, description="The version of this time, in Unix milliseconds.", examples=[1732183200000]
    )

    @model_validator(mode="after")
    def _has_one_version(self) -> RowHistoryParameters:
        if self.version is not None and self.at is not None:
            raise ValueError("version and at both say which version is meant: leave one out")
        return self

    def query(self) -> RowQuery:
        named = None if self.version is None else version_named(self.version)
        return RowQuery(**{**dict(self), "version": named})
