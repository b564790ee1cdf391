"""Parameters of a row set."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lineage_api.parameters.fields import MAX_LIMIT
from lineage_api.parameters.starts import StartParameters
from lineage_service.queries import RowSetQuery

__all__ = ["RowSetParameters"]


class RowSetParameters(StartParameters):
    concise: bool = Field(
        default=False,
        description="Only the rows that decided what the records are, as of an explanation.",
        examples=[True],
    )
    limit: Annotated[int, Field(ge=0, le=MAX_LIMIT)] = Field(
        default=20, description="List the texts of at most this many rows of each source.", examples=[20]
    )

    def query(self) -> RowSetQuery:
        return RowSetQuery(starts=self.several() or (self.start(),), concise=self.concise, limit=self.limit)
