"""Parameters of the questions who behaves oddly, what took long, and what bad outputs share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from lineage_api.parameters.fields import Limit, Parameters
from lineage_api.parameters.starts import starts_listed
from lineage_service.lineage import SuspectsMethod
from lineage_service.queries import ContrastQuery, SlowQuery, StartQuery, SuspectsQuery

__all__ = ["ContrastParameters", "SlowParameters", "SuspectsParameters"]

#: Two lists of some 400 record ids fit into an address.
_Starts = Annotated[str, Field(min_length=2, max_length=24_576)]


class _OutputParameters(Parameters):
    """Outputs that are bad, and outputs that are good."""

    bad: _Starts | None = Field(
        default=None,
        description="Bad outputs: a list in JSON, of objects with the names of those parameters of a trace "
        "that name a start.",
        examples=['[{"path": "/data/sums.csv", "row": 1}]'],
    )
    good: _Starts | None = Field(
        default=None,
        description="Good outputs to compare with: a list as `bad`.",
        examples=['[{"path": "/data/sums.csv", "row": 0}]'],
    )
    limit: Limit = Field(default=20, description="List at most this many.", examples=[20])

    @model_validator(mode="after")
    def _lists_starts(self) -> _OutputParameters:
        self._listed()
        return self

    def _listed(self) -> tuple[tuple[StartQuery, ...], tuple[StartQuery, ...]]:
        """(bad, good)."""
        bad = () if self.bad is None else starts_listed("bad", self.bad)
        return bad, () if self.good is None else starts_listed("good", self.good)


class SuspectsParameters(_OutputParameters):
    method: SuspectsMethod = Field(
        default="graded",
        description="How tasks are scored: `graded`, in bits of surprise, or `newt`, by Newt's rule.",
        examples=["graded"],
    )

    def query(self) -> SuspectsQuery:
        bad, good = self._listed()
        return SuspectsQuery(bad=bad, good=good, method=self.method, limit=self.limit)


class SlowParameters(Parameters):
    limit: Limit = Field(
        default=20,
        description="List at most this many records, and as many input rows, operations and partitions.",
        examples=[20],
    )

    def query(self) -> SlowQuery:
        return SlowQuery(limit=self.limit)


class ContrastParameters(_OutputParameters):
    failures: bool = Field(
        default=False, description="The records that made tasks fail are bad, too.", examples=[True]
    )

    @model_validator(mode="after")
    def _names_bad_ones(self) -> ContrastParameters:
        if self.bad is None and not self.failures:
            raise ValueError("name bad outputs: bad, or failures=true")
        return self

    def query(self) -> ContrastQuery:
        bad, good = self._listed()
        return ContrastQuery(bad=bad, good=good, failures=self.failures, limit=self.limit)
