"""Parameters of an explanation."""

from __future__ import annotations

from pydantic import Field

from lineage_api.parameters.fields import Limit, cursor_field
from lineage_api.parameters.starts import StartParameters
from lineage_service.queries import ExplanationQuery

__all__ = ["ExplanationParameters"]


class ExplanationParameters(StartParameters):
    plain: bool = Field(
        default=True,
        description="Count the rows of a plain trace, too, with the first page and for a second at most.",
        examples=[False],
    )
    limit: Limit = Field(
        default=100,
        description="List at most this many rows, and as many records of each turn of a loop.",
        examples=[100],
    )
    cursor: str | None = cursor_field("0:0:99")

    def query(self) -> ExplanationQuery:
        return ExplanationQuery(
            starts=self.several() or (self.start(),),
            plain=self.plain,
            limit=self.limit,
            cursor=self.cursor,
        )
