"""What a record came from or what became of it, and its values on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.applications import ActionState
from lineage_service.lineage.places import Column
from lineage_service.lineage.records import Record, Remark
from lineage_service.lineage.results import Direction, Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedNode(Result):
    """The records of one node that a trace reached."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    application_id: str = field(metadata=doc("Spark's `applicationId`, of the application of this node."))
    application_name: str = field(metadata=doc("Spark's `spark.app.name`, of that application."))
    name: str = field(metadata=doc("The operation, for example `filter`."))
    kind: str = field(metadata=doc("`source`, `operator` or `sink`."))
    exact: bool = field(metadata=doc("False: only an upper bound of the sources of an output is known."))
    total: int = field(metadata=doc("Number of records that were reached, listed or not."))
    records: tuple[Record, ...] = field(metadata=doc("The records of this page."))
    reason: str = field(
        default="",
        metadata=doc(
            "Why it is not exact, why the trace ends at this source, by which version of a table the rows"
            " of this sink were deleted, or, forward, that a query that was not followed read these records;"
            " else empty."
        ),
    )
    state: ActionState | None = field(
        default=None,
        metadata=doc(
            "How the action of a sink ended; null while it runs, and from agents that do not report it."
        ),
    )
    schema: tuple[Column, ...] | None = field(
        default=None,
        metadata=doc("With `columns`: the columns of the listed rows, with types.", omit_none=True),
    )
    matches: int | None = field(
        default=None,
        metadata=doc("With `filter`: how many of these records fulfil it.", omit_none=True),
    )
    warnings: tuple[str, ...] | None = field(
        default=None,
        metadata=doc("With `filter`: what was not looked at, and why; files that changed.", omit_none=True),
    )
    remarks: tuple[Remark, ...] | None = field(
        default=None,
        metadata=doc("With `remarks`, of rows of files: what stands out, at most three.", omit_none=True),
    )
    remarks_of: int | None = field(
        default=None,
        metadata=doc("Of how many rows the remarks are: fewer than `total` if time ran out.", omit_none=True),
    )
    sample: tuple[str, ...] | None = field(
        default=None,
        metadata=doc(
            "With `remarks`: ids of at most five records, at even distances among all.", omit_none=True
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(Result):
    """One record went into a node and came out of it."""

    hash_in: str = field(metadata=doc("`NODE_ID#RECORD_ID` of the input."))
    hash_out: str = field(metadata=doc("`NODE_ID#RECORD_ID` of the output."))
    node_id: str = field(metadata=doc("The node that the record went into."))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStart(Result):
    """A node at which a trace starts."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    application_id: str = field(metadata=doc("Spark's `applicationId`, of the application of this node."))
    application_name: str = field(metadata=doc("Spark's `spark.app.name`, of that application."))
    name: str = field(metadata=doc("The operation, for example `textFile`."))
    kind: str = field(metadata=doc("`source`, `operator` or `sink`."))
    total: int = field(metadata=doc("Number of records at which the trace starts, listed or not."))
    records: tuple[Record, ...] = field(metadata=doc("These records, at most `limit`."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Result):
    """What one record came from, or what became of it, node by node."""

    direction: Direction = field(metadata=doc("As requested."))
    start: tuple[Record, ...] = field(metadata=doc("The records of the first of `starts`."))
    start_node: str = field(metadata=doc("Their node id."))
    starts: tuple[TraceStart, ...] = field(
        metadata=doc("All nodes at which the trace starts: several if several have the file, forward.")
    )
    complete: bool = field(
        metadata=doc(
            "False: records may be missing, because blocks are missing or, forward, because a query that "
            "was not followed read some of these."
        )
    )
    exact: bool = field(
        metadata=doc(
            "False: the trace passes a node that has only an upper bound, so it may list too many records."
        )
    )
    truncated: bool = field(metadata=doc("True: some records that were reached are not on this page."))
    nodes: tuple[TracedNode, ...] = field(metadata=doc("In the order of the trace, the start's node first."))
    flows: tuple[Flow, ...] = field(metadata=doc("Flows between the listed records."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))
    how: str = field(
        default="",
        metadata=doc("With `values`: why values are absent, cut or withheld, and what to do; else empty."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueStep(Result):
    """The value of a record at one node of its trace."""

    node_id: str = field(metadata=doc("The node."))
    application_id: str = field(metadata=doc("Spark's `applicationId`, of the application of this node."))
    application_name: str = field(metadata=doc("Spark's `spark.app.name`, of that application."))
    name: str = field(metadata=doc("Name of the node."))
    record_id: str = field(metadata=doc("Id of the record at this node."))
    type: str = field(
        metadata=doc(
            "Type of the text: str, int, float, bool, none, bytes (hex), json, repr, withheld; `text` for a "
            "row of a file."
        )
    )
    value: str = field(metadata=doc("Text of the value."))
    cut: bool = field(default=False, metadata=doc("The value was cut to its maximum length."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Result):
    """The captured values of one record along its trace."""

    node_id: str = field(metadata=doc("The node of the requested record."))
    record_id: str = field(metadata=doc("The requested record."))
    captured: bool = field(metadata=doc("Values of this application's records were captured."))
    how: str = field(metadata=doc("Why values are absent, cut or withheld, and what to do; else empty."))
    steps: tuple[ValueStep, ...] = field(metadata=doc("In the order of the trace."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized(Result):
    """How much of a trace was written to Neo4j."""

    records: int = field(metadata=doc("`LineageFlow` nodes."))
    links: int = field(metadata=doc("`flow` relationships."))
    truncated: bool = field(
        metadata=doc("The trace has more records than the service's `graph_max_records`.")
    )
    query: str = field(default="", metadata=doc("Cypher that shows it in Neo4j Browser."))
