"""How-provenance, in memory: what decided a record, all together. There are no alternatives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lineage_service.lineage import HowDerivation, HowFact, HowGraph, Record
from lineage_service.testing.memory.decisions import before, decisive
from lineage_service.testing.memory.lineages import LineageIndex

__all__ = ["how_of"]


def how_of(index: LineageIndex, starts: Collection[str]) -> dict[str, Any]:
    """`how` and `how_graph` of an explanation."""
    needed = sorted(decisive(index, starts), key=lambda hash_: (-index.records[hash_][0].node, hash_))
    numbers = {hash_: number for number, hash_ in enumerate(needed)}
    expressions = [
        " \N{MIDDLE DOT} ".join(
            _name(index, hash_)
            for hash_ in sorted(decisive(index, [start]))
            if index.records[hash_][0].kind == "source"
        )
        for start in starts
    ]
    return {
        "how": "\n".join(expressions),
        "how_graph": HowGraph(
            facts=tuple(_fact(index, hash_, number) for hash_, number in numbers.items()),
            derivations=tuple(
                HowDerivation(
                    fact=number,
                    node_id=index.records[hash_][0].node_id,
                    name=index.records[hash_][0].name,
                    inputs=tuple(numbers[one] for one in before(index, hash_)),
                )
                for hash_, number in numbers.items()
                if before(index, hash_)
            ),
            truncated=False,
        ),
    }


def _fact(index: LineageIndex, hash_: str, number: int) -> HowFact:
    node, record = index.records[hash_]
    turns = [turn for turn in index.lineage.turns if turn.node_id == node.node_id]
    return HowFact(
        fact=number,
        node_id=node.node_id,
        name=node.name,
        record=record,
        loop=turns[0].loop if turns else None,
        first_turn=min((turn.turn for turn in turns), default=None),
        last_turn=max((turn.turn for turn in turns), default=None),
    )


def _name(index: LineageIndex, hash_: str) -> str:
    node, record = index.records[hash_]
    return _of_row(record) or f"{node.node}#{record.record_id}"


def _of_row(record: Record) -> str:
    row = record.source
    return "" if row is None else f"{row.path.rpartition('/')[2]}:{row.line}"
