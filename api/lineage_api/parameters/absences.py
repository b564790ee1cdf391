"""Parameters of the question why an operation has no record with a key."""

from __future__ import annotations

from pydantic import Field

from lineage_api.parameters.fields import NODE_HELP, Limit, NodeNumber, Parameters, Text
from lineage_service.queries import AbsenceQuery

__all__ = ["AbsenceParameters"]


class AbsenceParameters(Parameters):
    node: NodeNumber = Field(description=f"The operation that lacks the key: {NODE_HELP}.", examples=["3"])
    key: Text = Field(description="The key.", examples=["West"])
    limit: Limit = Field(
        default=20,
        description="Follow at most this many records with the key, of each operation that has it.",
        examples=[20],
    )

    def query(self) -> AbsenceQuery:
        return AbsenceQuery(node=self.node, key=self.key, limit=self.limit)
