"""The operations of one application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.applications import ActionState, NodeError
from lineage_service.lineage.places import Column, Dataset
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Result):
    """One operation of an application."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`. Write `#` as `%23` in a URL."))
    node: int = field(metadata=doc("Its number within the application."))
    name: str = field(metadata=doc("The operation, for example `filter`."))
    description: str = field(metadata=doc("What it does, as captured by the agent."))
    kind: Literal["source", "operator", "sink"] = field(metadata=doc("`source`, `operator` or `sink`."))
    call_site: str = field(metadata=doc("File and line of the job that created it."))
    exact: bool = field(metadata=doc("False: only an upper bound of the sources of an output is known."))
    reason: str = field(metadata=doc("Why it is not exact, or why traces end at this source; else empty."))
    dataset: Dataset | None = field(metadata=doc("Of sources and sinks, else null."))
    records: int | None = field(
        metadata=doc("Number of records that it produced; null if they were not counted.")
    )
    has_values: bool = field(metadata=doc("Values of its records were captured."))
    state: ActionState | None = field(
        default=None,
        metadata=doc(
            "How the action of a sink ended; null while it runs, and from agents that do not report it."
        ),
    )
    error: NodeError | None = field(default=None, metadata=doc("Error of a failed action, else null."))
    schema: tuple[Column, ...] = field(
        default=(), metadata=doc("Columns of a source or sink of a DataFrame; empty if they are unknown.")
    )
    schema_note: str = field(
        default="", metadata=doc("Why columns are left out of `schema`; empty if none are.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge(Result):
    """`source` sends records to `target`."""

    source: str = field(metadata=doc("A node id."))
    target: str = field(metadata=doc("A node id."))
    flows: int | None = field(metadata=doc("Number of flows; null if unknown."))
    shuffle: bool = field(
        default=False, metadata=doc("Records move between tasks on this edge: a stage of Spark ends here.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Result):
    """The operations of one application and the edges between them."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    nodes: tuple[Node, ...] = field(metadata=doc("Ordered by number."))
    edges: tuple[Edge, ...] = field(metadata=doc("Edges between these nodes."))
