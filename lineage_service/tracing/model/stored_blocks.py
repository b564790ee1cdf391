"""Which nodes have blocks in the store, and of which kinds, by the receipts of the blocks. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lineage_service.completeness import Receipt
from lineage_service.tracing.model.topology import Topology, sides_of
from spark_agent import contract

__all__ = ["StoredBlocks", "stored_blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlocks:
    """Nodes by the kinds of their blocks."""

    flowing: frozenset[int]  # with flows
    spanning: frozenset[int]  # whose flows are spans of outputs
    ranging: frozenset[int]  # those whose spans may overlap, since an output may be in several
    stepping: frozenset[int]  # those whose spans may have as many inputs as outputs
    repeating: frozenset[int]  # those whose spans name an input many times: sides of cartesian products
    pairing: frozenset[int]  # those whose flows name single records of other runs
    keyed: frozenset[int]  # with keys or values
    valued: frozenset[int]  # with values
    winning: frozenset[int]  # some of whose outputs one input alone decides
    digested: Mapping[int, int]  # with digests -> so many
    annotated: frozenset[tuple[int, int, str]]  # (node, run, relation) of winners and digests
    flow_rows: Mapping[tuple[int, int], int]  # (node, run) -> rows in `flows`
    relations: Mapping[int, frozenset[str]]  # node -> the relations of its blocks that made rows in `flows`

    def rows_in(self, runs: Collection[int]) -> dict[int, int]:
        """Node -> its rows in `flows` of these runs."""
        rows: dict[int, int] = defaultdict(int)
        for (node, run), count in self.flow_rows.items():
            if run in runs:
                rows[node] += count
        return dict(rows)


def stored_blocks(topology: Topology, receipts: Iterable[Receipt]) -> StoredBlocks:
    """Of the runs of a topology. A block that was stored twice counts once."""
    blocks = {(receipt.run, receipt.seq): receipt for receipt in receipts if receipt.run in topology.runs}
    nodes_by_relation: dict[str, set[int]] = defaultdict(set)
    flow_rows: dict[tuple[int, int], int] = defaultdict(int)
    annotated: set[tuple[int, int, str]] = set()
    digested: dict[int, int] = defaultdict(int)
    for block in blocks.values():
        nodes_by_relation[block.relation].add(block.node)
        if block.relation in contract.FLOW_BLOCKS:
            flow_rows[block.node, block.run] += block.rows
        elif block.relation in contract.ANNOTATION_BLOCKS and block.rows:
            annotated.add((block.node, block.run, block.relation))
        if block.relation == contract.DIGESTS:
            digested[block.node] += block.rows

    def nodes_of(*relations: str) -> frozenset[int]:
        return frozenset().union(*(nodes_by_relation.get(relation, ()) for relation in relations))

    return StoredBlocks(
        flowing=nodes_of(*contract.FLOW_BLOCKS),
        spanning=nodes_of(contract.SPANS, contract.COUNTS, contract.RANGES),
        ranging=nodes_of(contract.RANGES),
        stepping=nodes_of(contract.SPANS),
        repeating=frozenset(side for node in topology.nodes.values() for side in sides_of(node)),
        pairing=nodes_of(contract.PAIRS) - _named_otherwise(topology),
        keyed=nodes_of(*contract.TEXT_BLOCKS),
        valued=nodes_of(contract.VALUES),
        winning=nodes_of(contract.WINNERS),
        digested=dict(digested),
        annotated=frozenset(annotated),
        flow_rows=flow_rows,
        relations=_relations_by_node(nodes_by_relation),
    )


def _relations_by_node(nodes_by_relation: Mapping[str, Collection[int]]) -> dict[int, frozenset[str]]:
    relations: dict[int, set[str]] = defaultdict(set)
    for relation in contract.FLOW_BLOCKS:
        for node in nodes_by_relation.get(relation, ()):
            relations[node].add(relation)
    return {node: frozenset(of_node) for node, of_node in relations.items()}


def _named_otherwise(topology: Topology) -> set[int]:
    """The nodes whose flows lead to other runs by ids and keys, not by the numbers of these runs."""
    nodes = {number for number, node in topology.nodes.items() if node.by_id}
    return nodes.union(*(topology.nodes[node].parents for node in topology.groups))
