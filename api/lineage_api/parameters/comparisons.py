"""Parameters of a comparison of two runs."""

from __future__ import annotations

from pydantic import Field, model_validator

from lineage_api.parameters.fields import Expression, Limit, Name, Parameters, PathName, names
from lineage_service.queries import CompareQuery

__all__ = ["CompareParameters", "CompareWithParameters"]

_DATASET_EXAMPLE, _KEY_EXAMPLE = "/data/monthly", "value"
_KEY_HELP = "The columns that name a row: `a,b`. Without, rows of equal input rows are paired."
_LIMIT_HELP = "At most this many rows of each kind."


class CompareParameters(Parameters):
    before: Name | None = Field(
        default=None, description="The application of the earlier run.", examples=["yesterday"]
    )
    after: Name | None = Field(
        default=None, description="The application of the later run, or `last`.", examples=["today"]
    )
    dataset: PathName | None = Field(
        default=None,
        description="The output that is compared. Without applications: what the last two complete runs "
        "wrote there.",
        examples=[_DATASET_EXAMPLE],
    )
    key: Expression | None = Field(default=None, description=_KEY_HELP, examples=[_KEY_EXAMPLE])
    limit: Limit = Field(default=100, description=_LIMIT_HELP, examples=[100])

    @model_validator(mode="after")
    def _names_two_runs(self) -> CompareParameters:
        if (self.before is None) != (self.after is None):
            raise ValueError("before and after belong together: the applications of the two runs")
        if self.before is None and self.dataset is None:
            raise ValueError("name two applications (before and after), or a dataset")
        return self

    def query(self) -> CompareQuery:
        """Raises InvalidQueryError."""
        return CompareQuery(**{**dict(self), "key": names(self.key) or ()})


class CompareWithParameters(Parameters):
    """Of the application that the path names, which is the earlier run."""

    other: Name = Field(
        alias="with",
        description="The application of the later run, or `last`; a replay of the earlier one, too.",
        examples=["today"],
    )
    dataset: PathName | None = Field(
        default=None, description="The output that is compared.", examples=[_DATASET_EXAMPLE]
    )
    key: Expression | None = Field(default=None, description=_KEY_HELP, examples=[_KEY_EXAMPLE])
    limit: Limit = Field(default=100, description=_LIMIT_HELP, examples=[100])

    def query(self, application_id: str) -> CompareQuery:
        """Raises InvalidQueryError."""
        key = names(self.key) or ()
        return CompareQuery(
            before=application_id, after=self.other, dataset=self.dataset, key=key, limit=self.limit
        )
