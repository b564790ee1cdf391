"""All that is known of one application, and an index of it by records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import (
    Application,
    ExplanationCheck,
    ExplanationTurn,
    Failure,
    Flow,
    Graph,
    Node,
    Record,
    SharedProperty,
    SlowRecord,
    Suspect,
    ValueStep,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLineage:
    """All that is known of one application.

    `records` are by node id, in order. `flows` need not be sorted. `values` are the captured ones; a record's
    own `value` is ignored, because a result carries it only when it was asked for. `winners` are the inputs
    that merges gave back, by the hash of what came out. `turns` are those of every explanation,
    `checks` those of every one without demanded rows.
    """

    application: Application
    graph: Graph
    records: Mapping[str, tuple[Record, ...]]
    flows: tuple[Flow, ...] = ()
    values: tuple[ValueStep, ...] = ()
    failures: tuple[Failure, ...] = ()
    slow: tuple[SlowRecord, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    properties: tuple[SharedProperty, ...] = ()
    winners: Mapping[str, str] = field(default_factory=dict)
    turns: tuple[ExplanationTurn, ...] = ()
    checks: tuple[ExplanationCheck, ...] = ()


@dataclass(slots=True)
class LineageIndex:
    """One lineage, prepared for queries. A record is known by its hash, NODE_ID#RECORD_ID."""

    lineage: MemoryLineage
    nodes: dict[str, Node] = field(init=False)
    records: dict[str, tuple[Node, Record]] = field(init=False)
    values: dict[str, ValueStep] = field(init=False)
    inputs: dict[str, list[Flow]] = field(init=False)
    outputs: dict[str, list[Flow]] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = {node.node_id: node for node in self.lineage.graph.nodes}
        self.records = {
            hash_of(node_id, record.record_id): (self.nodes[node_id], replace(record, value=None))
            for node_id, records in self.lineage.records.items()
            for record in records
        }
        self.values = {hash_of(step.node_id, step.record_id): step for step in self.lineage.values}
        self.inputs, self.outputs = {}, {}
        for flow in self.lineage.flows:
            self.inputs.setdefault(flow.hash_out, []).append(flow)
            self.outputs.setdefault(flow.hash_in, []).append(flow)

    def node(self, name: str) -> Node:
        """The node with this id or number."""
        for node in self.nodes.values():
            if name in (node.node_id, str(node.node)):
                return node
        application_id = self.lineage.application.application_id
        raise NotFoundError(f"application {application_id} has no node {name}")

    def of_node(self, node: Node) -> list[Record]:
        return [record for of, record in self.records.values() if of is node]

    def with_value(self, hash_: str, record: Record) -> Record:
        step = self.values.get(hash_)
        return record if step is None else replace(record, value=step.value, value_type=step.type)


def hash_of(node_id: str, record_id: str) -> str:
    return f"{node_id}#{record_id}"


def position_of(index: LineageIndex, hash_: str) -> tuple[int, int]:
    record = index.records[hash_][1]
    return record.partition, record.offset


def skipped(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidQueryError("the cursor is not one that this service gave out")
    return int(cursor)
