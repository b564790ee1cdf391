"""Parameters of an explanation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator

from lineage_api.parameters.fields import Limit, Name, cursor_field
from lineage_api.parameters.starts import StartParameters, starts_listed
from lineage_service.queries import ExplanationQuery

__all__ = ["ExplanationParameters"]


class ExplanationParameters(StartParameters):
    same: bool = Field(
        default=False,
        description="Of two `starts`, A and B: also say what they share, and which of them each row counts "
        "for.",
        examples=[False],
    )
    demanded: Annotated[str, Field(min_length=2, max_length=4_096)] | None = Field(
        default=None,
        alias="with",
        description="Rows of inputs that the answer must have, if the records were made of them, with what "
        "was joined with them: a list in JSON, as of `starts`. 20 rows at most.",
        examples=['[{"path": "/data/orders.csv", "row": 1}]'],
    )
    compare: Name | None = Field(
        default=None,
        description="Also compare with the same record of this application, or `last`: which rows are gone, "
        "and which are new.",
        examples=["today"],
    )
    compare_starts: Annotated[str, Field(min_length=2, max_length=4_096)] | None = Field(
        default=None,
        description="With `compare`: the record in that application, where it is not found by its key or its "
        "text. A list in JSON, as of `starts`.",
        examples=['[{"record": "3#write#0#0"}]'],
    )
    how: bool = Field(
        default=False,
        description="Also give the rows as an expression, and as a graph: which are needed together, and "
        "which are alternatives.",
        examples=[True],
    )
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

    @field_validator("demanded", "compare_starts")
    @classmethod
    def _are_starts(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is not None:
            starts_listed("with" if info.field_name == "demanded" else "compare_starts", text)
        return text

    @model_validator(mode="after")
    def _compares(self) -> ExplanationParameters:
        if self.compare_starts is not None and self.compare is None:
            raise ValueError("compare_starts needs compare: the application that has the record")
        return self

    def query(self) -> ExplanationQuery:
        return ExplanationQuery(
            starts=self.several() or (self.start(),),
            same=self.same,
            demanded=() if self.demanded is None else starts_listed("with", self.demanded),
            compare=self.compare,
            compare_starts=()
            if self.compare_starts is None
            else starts_listed("compare_starts", self.compare_starts),
            how=self.how,
            plain=self.plain,
            limit=self.limit,
            cursor=self.cursor,
        )
