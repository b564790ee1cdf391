"""The JSON of every answer: pydantic models that mirror `lineage_service.lineage`, described for OpenAPI.

Field for field the same names (a test compares). Fields that only some records have are left out where they
are absent; every other field is always there, null where nothing is known.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Application",
    "ApplicationError",
    "ApplicationLag",
    "Applications",
    "Dataset",
    "Edge",
    "Flow",
    "Graph",
    "GroupLag",
    "Health",
    "Lag",
    "Materialized",
    "Node",
    "NodeError",
    "PartitionLag",
    "Record",
    "RecordPage",
    "SourceRow",
    "Trace",
    "TracedNode",
    "ValueStep",
    "Values",
]

Kind = Literal["source", "operator", "sink"]
State = Literal["running", "ended", "failed", "lost"]


def _absent(value: object) -> bool:
    return value is None


class Answer(BaseModel):
    """What the models have in common: they are read from the attributes of an answer."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Health(Answer):
    """What a probe asks for."""

    status: Literal["ok"] = Field(description="Always `ok`; anything else is a problem.")


class NodeError(Answer):
    """Why an action failed."""

    type: str = Field(description="The class of the error.")
    message: str = Field(description="The first line of what it says, redacted as values are.")
    frame: str | None = Field(description="File and line of the job where it was raised, if known.")


class ApplicationError(Answer):
    """Why an application failed."""

    type: str = Field(description="The class of the error; `SystemExit` of an exit with a code.")
    message: str = Field(description="The first line of what it says, redacted as values are.")
    frame: str | None = Field(description="File and line of the job where it was raised, if known.")
    node_id: str | None = Field(description="The action that failed, if one did.")
    name: str | None = Field(description="Its operation.")
    call_site: str | None = Field(description="File and line of the job that called it.")


class Application(Answer):
    """One Spark application."""

    application_id: str = Field(description="Spark's `applicationId`.")
    name: str = Field(description="Spark's `spark.app.name`.")
    state: State = Field(
        description="`running`, `ended` (well), `failed`, or `lost`: its driver is silent for five minutes."
    )
    started: int = Field(description="Unix time in milliseconds.")
    ended: int | None = Field(description="Unix time in milliseconds; null while it runs.")
    complete: bool = Field(description="It ended and every block of every committed run is stored.")
    missing_blocks: int = Field(description="Blocks that committed runs announced and that have not arrived.")
    counters: dict[str, int] = Field(
        description="`runs`, `blocks`, `flows`, `events`, `dropped`, `missing_runs`, `missing_events`, "
        "`gaps` (what was not followed), `lost_rows`; keys and values that were `cut` to their "
        "greatest length, or `withheld` because the redaction function failed; and what the agent reported."
    )
    missing: str = Field(description="What is missing, in words; empty when it is complete.")
    error: ApplicationError | None = Field(description="Of one that failed, else null.")


class Applications(Answer):
    """One page of the applications."""

    applications: tuple[Application, ...] = Field(description="Newest first.")
    next: str | None = Field(description="`cursor` of the next page; null on the last.")


class Dataset(Answer):
    """Where the records of a source or sink live."""

    namespace: str = Field(description="The file system, for example `file` or `hdfs://host:8020`.")
    name: str = Field(description="Path of the file or folder.")
    format: str = Field(description="`text` for now.")


class Node(Answer):
    """One operation of an application."""

    node_id: str = Field(description="`APPLICATION_ID#NUMBER`. Write `#` as `%23` in a URL.")
    node: int = Field(description="Its number in the application.")
    name: str = Field(description="The operation, for example `filter`.")
    description: str = Field(description="What it does, as the agent saw it.")
    kind: Kind = Field(description="`source`, `operator` or `sink`.")
    call_site: str = Field(description="File and line of the job that made it.")
    exact: bool = Field(description="False: only a bound of what an output came from is known.")
    reason: str = Field(description="Why it is not exact, or why traces end at this source; else empty.")
    dataset: Dataset | None = Field(description="Of sources and sinks, else null.")
    records: int | None = Field(description="How many records it made; null where they were not counted.")
    has_values: bool = Field(description="Values of its records were captured.")
    state: Literal["complete", "failed", "aborted"] | None = Field(
        description="Of a sink, how its action ended; null while it runs, and of agents that do not say it."
    )
    error: NodeError | None = Field(description="Of an action that failed, else null.")


class Edge(Answer):
    """`source` sends records to `target`."""

    source: str = Field(description="A node id.")
    target: str = Field(description="A node id.")
    flows: int | None = Field(description="How many flows; null where no count is known.")
    shuffle: bool = Field(description="Records move between tasks on the way: a stage of Spark ends there.")


class Graph(Answer):
    """The operations of one application and what they send each other."""

    application_id: str = Field(description="Spark's `applicationId`.")
    nodes: tuple[Node, ...] = Field(description="By number.")
    edges: tuple[Edge, ...] = Field(description="Between these nodes.")


class SourceRow(Answer):
    """A physical row of a file."""

    path: str = Field(description="Path of the file.")
    row: int = Field(description="Counted from 0, header lines too.")
    line: int = Field(description="`row` + 1, for people.")
    text: str | None = Field(description="The row; null when it cannot be read.")
    warning: str | None = Field(
        description="Why there is no text, or why it may not be what the job read, and what to do; else null."
    )


class Record(Answer):
    """What stands at one position of one partition of a node."""

    record_id: str = Field(
        description="`PARTITION#OFFSET`, `read#PARTITION#ROW` at a source, `write#PARTITION#ROW` at a sink."
    )
    partition: int = Field(description="Number of the partition of its node.")
    offset: int = Field(description="From 0.")
    key: str | None = Field(default=None, exclude_if=_absent, description="Where it has one that is known.")
    value: str | None = Field(default=None, exclude_if=_absent, description="Where it was captured.")
    value_type: str | None = Field(
        default=None,
        exclude_if=_absent,
        description="Of a value: str, int, float, bool, none, bytes (hex), json, repr, or withheld.",
    )
    source: SourceRow | None = Field(
        default=None, exclude_if=_absent, description="At sources and sinks: the row of the file."
    )


class TracedNode(Answer):
    """The records of one node that a trace reached."""

    node_id: str = Field(description="`APPLICATION_ID#NUMBER`.")
    name: str = Field(description="The operation, for example `filter`.")
    kind: str = Field(description="`source`, `operator` or `sink`.")
    exact: bool = Field(description="False: only a bound of what an output came from is known.")
    total: int = Field(description="How many were reached, listed or not.")
    records: tuple[Record, ...] = Field(description="Those of this page.")
    reason: str = Field(
        default="",
        description="Why it is not exact, why the trail ends at this source, or, forward, that a query which "
        "was not followed read these records; else empty.",
    )
    state: Literal["complete", "failed", "aborted"] | None = Field(
        default=None,
        description="Of a sink, how its action ended; null while it runs, and of agents that do not say it.",
    )


class Flow(Answer):
    """One record went into a node and came out of it."""

    hash_in: str = Field(description="`NODE_ID#RECORD_ID` of what went in.")
    hash_out: str = Field(description="`NODE_ID#RECORD_ID` of what came out.")
    node_id: str = Field(description="The node that it went into.")


class Trace(Answer):
    """What one record came from, or what became of it, node by node."""

    direction: Literal["backward", "forward"] = Field(description="As it was asked for.")
    start: tuple[Record, ...] = Field(description="The records that the trace began at.")
    start_node: str = Field(description="Their node id.")
    complete: bool = Field(
        description="False: records may be missing here, since blocks are missing or, forward, since a query "
        "that was not followed read some of these."
    )
    exact: bool = Field(description="False: it passes a node that only has a bound, so it may list too much.")
    truncated: bool = Field(description="True: some records that were reached are not on this page.")
    nodes: tuple[TracedNode, ...] = Field(description="In the order of the way, the start's node first.")
    flows: tuple[Flow, ...] = Field(description="Between the records that are listed.")
    next: str | None = Field(description="`cursor` of the next page; null on the last.")
    how: str = Field(
        default="",
        description="With `values`: why some are not there, cut or withheld, and what to do; else empty.",
    )


class RecordPage(Answer):
    """One page of a node's records."""

    node_id: str = Field(description="The node whose records these are.")
    total: int | None = Field(description="How many match; null where they were not counted.")
    records: tuple[Record, ...] = Field(description="Those of this page, by partition and offset.")
    next: str | None = Field(
        description="`cursor` of the next page; null on the last. Others may hold fewer than `limit`."
    )
    warnings: tuple[str, ...] = Field(default=(), description="What a search could not look at, and why.")


class ValueStep(Answer):
    """What the record looked like at one node of its way."""

    node_id: str = Field(description="The node at which it looked so.")
    name: str = Field(description="Name of the node.")
    record_id: str = Field(description="What the record is called there.")
    type: str = Field(
        description="Type of the text: str, int, float, bool, none, bytes (hex), json, repr, withheld; "
        "`text` for a row of a file."
    )
    value: str = Field(description="The text of the value.")
    cut: bool = Field(default=False, description="To its greatest length.")


class Values(Answer):
    """The intermediate values of one record."""

    node_id: str = Field(description="The node of the record that was asked for.")
    record_id: str = Field(description="The record that was asked for.")
    captured: bool = Field(description="Values of this application's records were captured.")
    how: str = Field(description="Why values are not there, cut or withheld, and what to do; else empty.")
    steps: tuple[ValueStep, ...] = Field(description="In the order of the way.")


class Materialized(Answer):
    """How much of a trace now stands in Neo4j."""

    records: int = Field(description="`LineageFlow` nodes.")
    links: int = Field(description="`flow` relationships.")
    truncated: bool = Field(description="The trace has more records than the service's `graph_max_records`.")
    query: str = Field(description="Cypher that shows it in Neo4j Browser.")


class PartitionLag(Answer):
    """What waits in one topic partition."""

    topic: str = Field(description="Its name.")
    partition: int = Field(description="Its number in the topic.")
    committed: int | None = Field(description="The group's offset; null where it never committed.")
    first: int = Field(description="The first offset that the broker still has.")
    next: int = Field(description="The offset that the next message will get.")
    messages: int = Field(description="From `committed`, else `first`, to `next`.")
    seconds: float | None = Field(
        description="Age of the first message that waits; 0 where none does, null where it could not be read."
    )


class GroupLag(Answer):
    """What waits in Kafka for the consumer group."""

    name: str = Field(description="Of the consumer group.")
    members: int | None = Field(description="Processes of the group; null where Kafka does not know now.")
    messages: int = Field(description="How many wait.")
    seconds: float | None = Field(description="Age of the oldest that waits; null where it is not known.")
    rate: float | None = Field(description="Messages a second that the group consumed; null at first.")
    incoming_rate: float | None = Field(description="Messages a second that came; null at first.")
    drain_seconds: float | None = Field(
        description="When nothing will wait at these rates; null where what waits does not get less."
    )
    dead_letters: int = Field(description="Messages in the topic of dead letters.")
    partitions: tuple[PartitionLag, ...] = Field(description="Of the topics that the group reads.")


class ApplicationLag(Answer):
    """An application that runs or is not complete."""

    application_id: str = Field(description="Spark's `applicationId`.")
    name: str = Field(description="Spark's `spark.app.name`.")
    state: State = Field(
        description="`running`, `ended` (well), `failed`, or `lost`: its driver is silent for five minutes."
    )
    messages: int = Field(description="Announced, not stored, and may still come.")
    seconds: float = Field(description="How long ago the first of them was announced; 0 where none is.")
    incomplete_runs: int = Field(description="Accepted runs of which a block is missing or was dropped.")
    missing_blocks: int = Field(description="Blocks that manifests announced and that have not arrived.")
    missing_runs: int = Field(description="Accepted runs without a manifest.")
    missing_events: int = Field(description="Other events that it counted and that have not arrived.")
    dropped: int = Field(description="Blocks that the agent gave up on.")
    missing: str = Field(description="What is missing, in words.")
    gaps: int = Field(description="Reasons why something that ran was not followed.")


class Lag(Answer):
    """How far the stores are behind."""

    group: GroupLag = Field(description="What waits in Kafka.")
    applications: tuple[ApplicationLag, ...] = Field(description="Those that run or are not complete.")
    unread_applications: int = Field(description="How many more may have changed; ask again for them.")
