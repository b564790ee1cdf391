"""Which records were derived from which, as a graph of facts: how-provenance."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.records import Record
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class HowFact(Result):
    """A record. Records of the turns of a loop that are the same are one fact."""

    fact: int = field(metadata=doc("Its number in this answer."))
    node_id: str = field(metadata=doc("The operation that gave it first: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `reduceByKey`."))
    record: Record = field(metadata=doc("The record there."))
    loop: str | None = field(metadata=doc("File and line of the loop, if turns of one gave it; or null."))
    first_turn: int | None = field(metadata=doc("The first of these turns; or null."))
    last_turn: int | None = field(metadata=doc("The last of these turns that was looked at; or null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class HowDerivation(Result):
    """An operation that gave a fact of others, which it needed together."""

    fact: int = field(metadata=doc("The fact."))
    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `join`."))
    inputs: tuple[int, ...] = field(metadata=doc("The facts that it was made of."))


@dataclass(frozen=True, slots=True, kw_only=True)
class HowGraph(Result):
    """Facts, and the derivations that lead from one to another."""

    facts: tuple[HowFact, ...] = field(metadata=doc("At most 1,000, those of the start first."))
    derivations: tuple[HowDerivation, ...] = field(
        metadata=doc("Those of listed facts. Several of one fact are alternatives.")
    )
    truncated: bool = field(metadata=doc("There are more, or `how` has an ellipsis for what it leaves out."))
