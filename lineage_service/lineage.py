"""The results of queries: applications, graphs, records, traces, values, the lag.

Plain frozen data. This is the one statement of their shape: fields, types, descriptions. The API's JSON, its
OpenAPI document and the page's types are made from it, and `lineage --json` prints the same. A field of None
is null in JSON, unless its metadata say `omit_none`. Knows nothing of HTTP, of stores or of how a trace is
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import is_
from typing import Any, ClassVar, Literal


def doc(text: str, *, omit_none: bool = False) -> Mapping[str, Any]:
    """The metadata of a field, under the names that pydantic reads: its description in OpenAPI.

    With `omit_none`, JSON leaves the field out where it is None; other fields are null there.
    """
    return {"description": text, **({"exclude_if": partial(is_, None)} if omit_none else {})}


class Result:
    """What the service answers with."""

    __slots__ = ()
    #: For pydantic: JSON holds a field that has its default, too.
    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}


Direction = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Result):
    """Where the records of a source or sink live."""

    namespace: str = field(metadata=doc("The file system, for example `file` or `hdfs://host:8020`."))
    name: str = field(metadata=doc("Path of the file or folder."))
    format: str = field(metadata=doc("`text` for now."))


#: `ended`: well. `lost`: its driver sends signs of life, and has sent nothing for minutes, nor an end.
ApplicationState = Literal["running", "ended", "failed", "lost"]
ActionState = Literal["complete", "failed", "aborted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeError(Result):
    """Why an action failed."""

    type: str = field(metadata=doc("The class of the error."))
    message: str = field(metadata=doc("The first line of what it says, redacted as values are."))
    frame: str | None = field(
        default=None, metadata=doc("File and line of the job where it was raised, if known.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationError(Result):
    """Why an application failed."""

    type: str = field(metadata=doc("The class of the error; `SystemExit` of an exit with a code."))
    message: str = field(metadata=doc("The first line of what it says, redacted as values are."))
    frame: str | None = field(
        default=None, metadata=doc("File and line of the job where it was raised, if known.")
    )
    node_id: str | None = field(default=None, metadata=doc("The action that failed, if one did."))
    name: str | None = field(default=None, metadata=doc("Its operation."))
    call_site: str | None = field(default=None, metadata=doc("File and line of the job that called it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Application(Result):
    """One Spark application."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    state: ApplicationState = field(
        metadata=doc("`running`, `ended` (well), `failed`, or `lost`: its driver is silent for five minutes.")
    )
    started: int = field(metadata=doc("Unix time in milliseconds."))
    ended: int | None = field(metadata=doc("Unix time in milliseconds; null while it runs."))
    complete: bool = field(metadata=doc("It ended and every block of every committed run is stored."))
    missing_blocks: int = field(
        metadata=doc("Blocks that committed runs announced and that have not arrived.")
    )
    counters: dict[str, int] = field(
        metadata=doc(
            "`runs`, `blocks`, `flows`, `events`, `dropped`, `missing_runs`, `missing_events`, `gaps` (what "
            "was not followed), `lost_rows`; keys and values that were `cut` to their greatest length, or "
            "`withheld` because the redaction function failed; and what the agent reported."
        )
    )
    missing: str = field(default="", metadata=doc("What is missing, in words; empty when it is complete."))
    error: ApplicationError | None = field(default=None, metadata=doc("Of one that failed, else null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applications(Result):
    """One page of the applications."""

    applications: tuple[Application, ...] = field(metadata=doc("Newest first."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Result):
    """One operation of an application."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`. Write `#` as `%23` in a URL."))
    node: int = field(metadata=doc("Its number in the application."))
    name: str = field(metadata=doc("The operation, for example `filter`."))
    description: str = field(metadata=doc("What it does, as the agent saw it."))
    kind: Literal["source", "operator", "sink"] = field(metadata=doc("`source`, `operator` or `sink`."))
    call_site: str = field(metadata=doc("File and line of the job that made it."))
    exact: bool = field(metadata=doc("False: only a bound of what an output came from is known."))
    reason: str = field(metadata=doc("Why it is not exact, or why traces end at this source; else empty."))
    dataset: Dataset | None = field(metadata=doc("Of sources and sinks, else null."))
    records: int | None = field(metadata=doc("How many records it made; null where they were not counted."))
    has_values: bool = field(metadata=doc("Values of its records were captured."))
    state: ActionState | None = field(
        default=None,
        metadata=doc(
            "Of a sink, how its action ended; null while it runs, and of agents that do not say it."
        ),
    )
    error: NodeError | None = field(default=None, metadata=doc("Of an action that failed, else null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge(Result):
    """`source` sends records to `target`."""

    source: str = field(metadata=doc("A node id."))
    target: str = field(metadata=doc("A node id."))
    flows: int | None = field(metadata=doc("How many flows; null where no count is known."))
    shuffle: bool = field(
        default=False, metadata=doc("Records move between tasks on the way: a stage of Spark ends there.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Result):
    """The operations of one application and what they send each other."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    nodes: tuple[Node, ...] = field(metadata=doc("By number."))
    edges: tuple[Edge, ...] = field(metadata=doc("Between these nodes."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow(Result):
    """A physical row of a file."""

    path: str = field(metadata=doc("Path of the file."))
    row: int = field(metadata=doc("Counted from 0, header lines too."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    text: str | None = field(metadata=doc("The row; null when it cannot be read."))
    warning: str | None = field(
        metadata=doc(
            "Why there is no text, or why it may not be what the job read, and what to do; else null."
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Result):
    """What stands at one position of one partition of a node."""

    record_id: str = field(
        metadata=doc("`PARTITION#OFFSET`, `read#PARTITION#ROW` at a source, `write#PARTITION#ROW` at a sink.")
    )
    partition: int = field(metadata=doc("Number of the partition of its node."))
    offset: int = field(metadata=doc("From 0."))
    key: str | None = field(default=None, metadata=doc("Where it has one that is known.", omit_none=True))
    value: str | None = field(default=None, metadata=doc("Where it was captured.", omit_none=True))
    value_type: str | None = field(
        default=None,
        metadata=doc(
            "Of a value: str, int, float, bool, none, bytes (hex), json, repr, or withheld.", omit_none=True
        ),
    )
    source: SourceRow | None = field(
        default=None, metadata=doc("At sources and sinks: the row of the file.", omit_none=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedNode(Result):
    """The records of one node that a trace reached."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `filter`."))
    kind: str = field(metadata=doc("`source`, `operator` or `sink`."))
    exact: bool = field(metadata=doc("False: only a bound of what an output came from is known."))
    total: int = field(metadata=doc("How many were reached, listed or not."))
    records: tuple[Record, ...] = field(metadata=doc("Those of this page."))
    reason: str = field(
        default="",
        metadata=doc(
            "Why it is not exact, why the trail ends at this source, or, forward, that a query which was not "
            "followed read these records; else empty."
        ),
    )
    state: ActionState | None = field(
        default=None,
        metadata=doc(
            "Of a sink, how its action ended; null while it runs, and of agents that do not say it."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(Result):
    """One record went into a node and came out of it."""

    hash_in: str = field(metadata=doc("`NODE_ID#RECORD_ID` of what went in."))
    hash_out: str = field(metadata=doc("`NODE_ID#RECORD_ID` of what came out."))
    node_id: str = field(metadata=doc("The node that it went into."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Result):
    """What one record came from, or what became of it, node by node."""

    direction: Direction = field(metadata=doc("As it was asked for."))
    start: tuple[Record, ...] = field(metadata=doc("The records that the trace began at."))
    start_node: str = field(metadata=doc("Their node id."))
    complete: bool = field(
        metadata=doc(
            "False: records may be missing here, since blocks are missing or, forward, since a query that was"
            " not followed read some of these."
        )
    )
    exact: bool = field(
        metadata=doc("False: it passes a node that only has a bound, so it may list too much.")
    )
    truncated: bool = field(metadata=doc("True: some records that were reached are not on this page."))
    nodes: tuple[TracedNode, ...] = field(metadata=doc("In the order of the way, the start's node first."))
    flows: tuple[Flow, ...] = field(metadata=doc("Between the records that are listed."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))
    how: str = field(
        default="",
        metadata=doc("With `values`: why some are not there, cut or withheld, and what to do; else empty."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage(Result):
    """One page of a node's records."""

    node_id: str = field(metadata=doc("The node whose records these are."))
    total: int | None = field(metadata=doc("How many match; null where they were not counted."))
    records: tuple[Record, ...] = field(metadata=doc("Those of this page, by partition and offset."))
    next: str | None = field(
        metadata=doc("`cursor` of the next page; null on the last. Others may hold fewer than `limit`.")
    )
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What a search could not look at, and why."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueStep(Result):
    """What the record looked like at one node of its way."""

    node_id: str = field(metadata=doc("The node at which it looked so."))
    name: str = field(metadata=doc("Name of the node."))
    record_id: str = field(metadata=doc("What the record is called there."))
    type: str = field(
        metadata=doc(
            "Type of the text: str, int, float, bool, none, bytes (hex), json, repr, withheld; `text` for a "
            "row of a file."
        )
    )
    value: str = field(metadata=doc("The text of the value."))
    cut: bool = field(default=False, metadata=doc("To its greatest length."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Result):
    """The intermediate values of one record."""

    node_id: str = field(metadata=doc("The node of the record that was asked for."))
    record_id: str = field(metadata=doc("The record that was asked for."))
    captured: bool = field(metadata=doc("Values of this application's records were captured."))
    how: str = field(metadata=doc("Why values are not there, cut or withheld, and what to do; else empty."))
    steps: tuple[ValueStep, ...] = field(metadata=doc("In the order of the way."))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag(Result):
    """What waits in one topic partition."""

    topic: str = field(metadata=doc("Its name."))
    partition: int = field(metadata=doc("Its number in the topic."))
    committed: int | None = field(metadata=doc("The group's offset; null where it never committed."))
    first: int = field(metadata=doc("The first offset that the broker still has."))
    next: int = field(metadata=doc("The offset that the next message will get."))
    messages: int = field(metadata=doc("From `committed`, else `first`, to `next`."))
    seconds: float | None = field(
        metadata=doc(
            "Age of the first message that waits; 0 where none does, null where it could not be read."
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag(Result):
    """What waits in Kafka for the consumer group."""

    name: str = field(metadata=doc("Of the consumer group."))
    members: int | None = field(metadata=doc("Processes of the group; null where Kafka does not know now."))
    messages: int = field(metadata=doc("How many wait."))
    seconds: float | None = field(metadata=doc("Age of the oldest that waits; null where it is not known."))
    rate: float | None = field(metadata=doc("Messages a second that the group consumed; null at first."))
    incoming_rate: float | None = field(metadata=doc("Messages a second that came; null at first."))
    drain_seconds: float | None = field(
        metadata=doc("When nothing will wait at these rates; null where what waits does not get less.")
    )
    dead_letters: int = field(metadata=doc("Messages in the topic of dead letters."))
    partitions: tuple[PartitionLag, ...] = field(metadata=doc("Of the topics that the group reads."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationLag(Result):
    """An application that runs or is not complete."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    state: ApplicationState = field(
        metadata=doc("`running`, `ended` (well), `failed`, or `lost`: its driver is silent for five minutes.")
    )
    messages: int = field(metadata=doc("Announced, not stored, and may still come."))
    seconds: float = field(metadata=doc("How long ago the first of them was announced; 0 where none is."))
    incomplete_runs: int = field(metadata=doc("Accepted runs of which a block is missing or was dropped."))
    missing_blocks: int = field(metadata=doc("Blocks that manifests announced and that have not arrived."))
    missing_runs: int = field(metadata=doc("Accepted runs without a manifest."))
    missing_events: int = field(metadata=doc("Other events that it counted and that have not arrived."))
    dropped: int = field(metadata=doc("Blocks that the agent gave up on."))
    missing: str = field(metadata=doc("What is missing, in words."))
    gaps: int = field(default=0, metadata=doc("Reasons why something that ran was not followed."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag(Result):
    """How far the stores are behind."""

    group: GroupLag = field(metadata=doc("What waits in Kafka."))
    applications: tuple[ApplicationLag, ...] = field(metadata=doc("Those that run or are not complete."))
    unread_applications: int = field(metadata=doc("How many more may have changed; ask again for them."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized(Result):
    """How much of a trace now stands in Neo4j."""

    records: int = field(metadata=doc("`LineageFlow` nodes."))
    links: int = field(metadata=doc("`flow` relationships."))
    truncated: bool = field(
        metadata=doc("The trace has more records than the service's `graph_max_records`.")
    )
    query: str = field(default="", metadata=doc("Cypher that shows it in Neo4j Browser."))
