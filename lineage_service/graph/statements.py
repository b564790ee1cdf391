"""Statements of `cypher/`, by name, one after the other in one transaction of Neo4j."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import neo4j

import lineage_cypher
from lineage_service.graph.row_values import Row

__all__ = ["Step", "Transact", "run_steps"]

Step = tuple[str, Row]
"""A statement's name with its parameters."""

Transact = Callable[[Callable[[neo4j.Transaction], list[neo4j.Record]]], list[neo4j.Record]]
"""Does a piece of work in a transaction, all of it again if Neo4j was away or busy; what the work returns.

It may have been done already when it is done again: the answer to a commit can be lost.
"""


def run_steps(transaction: neo4j.Transaction, steps: Sequence[Step]) -> list[neo4j.Record]:
    """The records of the last step."""
    records: list[neo4j.Record] = []
    for name, parameters in steps:
        records = list(transaction.run(lineage_cypher.statement(name), parameters))
    return records
