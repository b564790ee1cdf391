"""The results of queries: applications, graphs, records, traces, values, the lag.

Plain frozen data, and the one statement of its shape: fields, types and descriptions. The JSON of the API,
its OpenAPI document and the types of the page are made from these classes. Commands print the same with
`--json`.
Knows nothing of HTTP, of stores or of how a trace is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from operator import is_
from typing import Any, Literal


def doc(text: str, *, omit_none: bool = False, name: str | None = None) -> Mapping[str, Any]:
    """Metadata of a field, by the names that pydantic reads. `text` is its description in OpenAPI.

    JSON omits a field with `omit_none` if it is None. Any other field is then null. `name` is that in JSON,
    where Python cannot say it.
    """
    alias = {} if name is None else {"serialization_alias": name}
    return {"description": text, **({"exclude_if": partial(is_, None)} if omit_none else {}), **alias}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The base of all results."""

    @classmethod
    def required_fields(cls) -> list[str]:
        """The names of the fields that JSON never omits."""
        return [
            field.metadata.get("serialization_alias", field.name)
            for field in fields(cls)
            if "exclude_if" not in field.metadata
        ]


Direction = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symlink(Result):
    """Another name of a dataset, such as that of its table in a catalog."""

    namespace: str = field(metadata=doc("The catalog, for example `hive://metastore:9083`."))
    name: str = field(metadata=doc("The table, for example `db.sales`."))
    type: str = field(default="TABLE", metadata=doc("`TABLE`, or what an agent calls it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Result):
    """Where the records of a source or sink are stored, named by OpenLineage's rules."""

    namespace: str = field(
        metadata=doc("The file system, for example `file`, `s3://bucket` or `hdfs://host:8020`.")
    )
    name: str = field(
        metadata=doc("Path of the file or folder; in object stores without slashes at its ends.")
    )
    format: str = field(metadata=doc("Format, for example `text`, `csv` or `parquet`."))
    partitions: tuple[str, ...] = field(
        default=(), metadata=doc("Names of the columns by which its folders are divided.")
    )
    symlinks: tuple[Symlink, ...] = field(default=(), metadata=doc("Its names in catalogs."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Result):
    """A column of a dataset, or a field of a struct."""

    name: str = field(metadata=doc("Name."))
    type: str = field(
        metadata=doc("Spark's simple type, for example `bigint` or `array<string>`; of a struct `struct`.")
    )
    nullable: bool | None = field(default=None, metadata=doc("It may be null; null if this is unknown."))
    fields: tuple[Column, ...] = field(default=(), metadata=doc("Fields of a struct, else empty."))


#: `ended`: successfully. `lost`: its driver sent signs of life, then neither these nor an end for minutes.
ApplicationState = Literal["running", "ended", "failed", "lost"]
ActionState = Literal["complete", "failed", "aborted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeError(Result):
    """Why an action failed."""

    type: str = field(metadata=doc("Class of the error."))
    message: str = field(metadata=doc("The first line of its message, redacted like values."))
    frame: str | None = field(
        default=None, metadata=doc("File and line of the job that raised it, if known.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationError(Result):
    """Why an application failed."""

    type: str = field(metadata=doc("Class of the error; `SystemExit` for an exit with a code."))
    message: str = field(metadata=doc("The first line of its message, redacted like values."))
    frame: str | None = field(
        default=None, metadata=doc("File and line of the job that raised it, if known.")
    )
    node_id: str | None = field(default=None, metadata=doc("The action that failed, if one did."))
    name: str | None = field(default=None, metadata=doc("The operation of that action."))
    call_site: str | None = field(default=None, metadata=doc("File and line of the job that called it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Application(Result):
    """One Spark application."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    state: ApplicationState = field(
        metadata=doc(
            "`running`, `ended` (successfully), `failed`, or `lost`: its driver has been silent for "
            "five minutes."
        )
    )
    started: int = field(metadata=doc("Unix time in milliseconds."))
    ended: int | None = field(metadata=doc("Unix time in milliseconds; null while it runs."))
    complete: bool = field(
        metadata=doc("It ended, everything that it announced is stored, and nothing was left out of capture.")
    )
    missing_blocks: int = field(
        metadata=doc("Blocks that committed task runs announced and that have not arrived.")
    )
    counters: dict[str, int] = field(
        metadata=doc(
            "`runs`, `blocks`, `flows`, `events`, `dropped`, `missing_runs`, `missing_events`, `gaps` (what"
            " was not followed), `lost_rows`; `spooled`: missing blocks that wait on a disk to be delivered; "
            "keys and values that were `cut` to their maximum length, or "
            "`withheld` because the redaction function failed; and what the agent reported."
        )
    )
    missing: str = field(default="", metadata=doc("What is missing, for people; empty if it is complete."))
    error: ApplicationError | None = field(
        default=None, metadata=doc("Error of a failed application, else null.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Applications(Result):
    """One page of the applications."""

    applications: tuple[Application, ...] = field(metadata=doc("Newest first."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow(Result):
    """A row of a file."""

    path: str = field(metadata=doc("Path of the file."))
    row: int = field(metadata=doc("Counted from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))
    warning: str | None = field(
        metadata=doc(
            "Why there is no text, or why it may not be what the job read, and what to do; else null."
        )
    )
    columns: dict[str, Any] | None = field(
        default=None,
        metadata=doc(
            "With `columns`, of Parquet, ORC, CSV and JSON: the row by its columns, those of its folders "
            "first. Whole numbers beyond 2^53 - 1, decimals, NaN and infinities are strings.",
            omit_none=True,
        ),
    )
    columns_cut: bool | None = field(
        default=None,
        metadata=doc(
            "True if columns are left out or values cut, because they are many or long.", omit_none=True
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Result):
    """One record of a node."""

    record_id: str = field(
        metadata=doc("`PARTITION#OFFSET`, `read#PARTITION#ROW` at a source, `write#PARTITION#ROW` at a sink.")
    )
    partition: int = field(metadata=doc("Number of the partition of its node."))
    offset: int = field(metadata=doc("Offset in the partition, from 0."))
    key: str | None = field(default=None, metadata=doc("Present if it has a known key.", omit_none=True))
    value: str | None = field(default=None, metadata=doc("Present if it was captured.", omit_none=True))
    value_type: str | None = field(
        default=None,
        metadata=doc(
            "Type of the value: str, int, float, bool, none, bytes (hex), json, repr, or withheld.",
            omit_none=True,
        ),
    )
    source: SourceRow | None = field(
        default=None, metadata=doc("At sources and sinks: the row of the file.", omit_none=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark(Result):
    """A row whose value in one column is far from those of all others. A hint, no proof."""

    record_id: str = field(metadata=doc("The record that is this row."))
    path: str = field(metadata=doc("Path of the file."))
    row: int = field(metadata=doc("Counted from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    column: str = field(metadata=doc("The column; `column 3` of a row that is only text, counted from 1."))
    value: float = field(metadata=doc("Its value."))
    low: float = field(metadata=doc("The least value of the other rows."))
    high: float = field(metadata=doc("The largest value of the other rows."))
    text: str = field(metadata=doc("The same as a sentence."))


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
            "Why it is not exact, why the trace ends at this source, or, forward, that a query that was not"
            " followed read these records; else empty."
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
class RecordPage(Result):
    """One page of a node's records."""

    node_id: str = field(metadata=doc("The node of these records."))
    total: int | None = field(metadata=doc("Number of matches; null if they were not counted."))
    records: tuple[Record, ...] = field(metadata=doc("The records of this page, by partition and offset."))
    next: str | None = field(
        metadata=doc(
            "`cursor` of the next page; null on the last. Other pages may hold fewer records than `limit`."
        )
    )
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What a search could not read, and why."))
    schema: tuple[Column, ...] | None = field(
        default=None,
        metadata=doc("With `columns`: the columns of the listed rows, with types.", omit_none=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Result):
    """A row at which a trace can start."""

    node_id: str = field(metadata=doc("The node of the record that it is."))
    record_id: str = field(metadata=doc("Id of that record."))
    path: str | None = field(metadata=doc("Path of the file; null of records that are no rows of files."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included."))
    line: int | None = field(metadata=doc("`row` + 1, for people."))
    columns: dict[str, Any] | None = field(metadata=doc("The row by its columns; null if it has none."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))
    warning: str | None = field(default=None, metadata=doc("Why it may not be what the job had; else null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(Result):
    """The rows of a dataset that fulfil a condition: a trace starts at one of them, or at all."""

    application_id: str = field(metadata=doc("The application that was asked."))
    name: str = field(metadata=doc("Its name."))
    started: int = field(metadata=doc("Unix time in milliseconds."))
    direction: Direction = field(metadata=doc("Where a trace goes: `backward` from what was written."))
    dataset: str | None = field(metadata=doc("Its path; null of what has no files."))
    where: str | None = field(metadata=doc("As requested."))
    nodes: tuple[str, ...] = field(metadata=doc("Ids of the sources or sinks whose records were searched."))
    total: int | None = field(metadata=doc("Number of matches; null if not everything was looked at."))
    files: int = field(metadata=doc("Number of files that the condition had to be looked for in."))
    choices: tuple[Choice, ...] = field(metadata=doc("By partition and offset of the records."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What was not looked at, or has changed."))


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
class PartitionLag(Result):
    """The lag of one topic partition."""

    topic: str = field(metadata=doc("Name of the topic."))
    partition: int = field(metadata=doc("Number of the topic partition."))
    committed: int | None = field(metadata=doc("The group's committed offset; null if it never committed."))
    first: int = field(metadata=doc("The first offset that the broker still has."))
    next: int = field(metadata=doc("The offset of the next message."))
    messages: int = field(metadata=doc("Messages from `committed`, else `first`, to `next`."))
    seconds: float | None = field(
        metadata=doc("Age of the first waiting message; 0 if none waits, null if it could not be read.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag(Result):
    """The lag of the consumer group."""

    name: str = field(metadata=doc("Name of the consumer group."))
    members: int | None = field(
        metadata=doc("Processes of the group; null if Kafka does not know it at the moment.")
    )
    messages: int = field(metadata=doc("Number of waiting messages."))
    seconds: float | None = field(metadata=doc("Age of the oldest waiting message; null if unknown."))
    rate: float | None = field(metadata=doc("Messages per second that the group consumed; null at first."))
    incoming_rate: float | None = field(metadata=doc("Messages per second that arrived; null at first."))
    drain_seconds: float | None = field(
        metadata=doc("Time until no message waits, at these rates; null if the number does not decrease.")
    )
    dead_letters: int = field(metadata=doc("Messages in the dead-letter topic."))
    partitions: tuple[PartitionLag, ...] = field(
        metadata=doc("Partitions of the topics that the group reads.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationLag(Result):
    """An application that is running or incomplete."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    state: ApplicationState = field(
        metadata=doc(
            "`running`, `ended` (successfully), `failed`, or `lost`: its driver has been silent for "
            "five minutes."
        )
    )
    messages: int = field(metadata=doc("Announced messages that are not stored and may still arrive."))
    seconds: float = field(metadata=doc("Time since the first of them was announced; 0 if there is none."))
    incomplete_runs: int = field(
        metadata=doc("Accepted task runs of which a block is missing or was dropped.")
    )
    missing_blocks: int = field(
        metadata=doc("Blocks that commit manifests announced and that have not arrived.")
    )
    missing_runs: int = field(metadata=doc("Accepted task runs without a commit manifest."))
    missing_events: int = field(metadata=doc("Other announced events that have not arrived."))
    dropped: int = field(metadata=doc("Blocks that the agent gave up."))
    missing: str = field(metadata=doc("What is missing, for people."))
    gaps: int = field(default=0, metadata=doc("Gaps: things that ran and were not followed."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag(Result):
    """The lag of the stores."""

    group: GroupLag = field(metadata=doc("Lag of the consumer group in Kafka."))
    applications: tuple[ApplicationLag, ...] = field(
        metadata=doc("Applications that are running or incomplete.")
    )
    unread_applications: int = field(
        metadata=doc("Applications that changed and have not been read yet; ask again.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized(Result):
    """How much of a trace was written to Neo4j."""

    records: int = field(metadata=doc("`LineageFlow` nodes."))
    links: int = field(metadata=doc("`flow` relationships."))
    truncated: bool = field(
        metadata=doc("The trace has more records than the service's `graph_max_records`.")
    )
    query: str = field(default="", metadata=doc("Cypher that shows it in Neo4j Browser."))


DatasetUseState = Literal["running", "complete", "failed", "aborted", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetWrite(Result):
    """The latest write of a dataset."""

    application_id: str = field(metadata=doc("Spark's `applicationId`, of the application that wrote."))
    name: str = field(metadata=doc("Spark's `spark.app.name`, of that application."))
    node_id: str = field(metadata=doc("The sink: `APPLICATION_ID#NUMBER`."))
    at: int = field(metadata=doc("When the write ended, or began if it has not. Unix time in milliseconds."))
    rows: int | None = field(metadata=doc("Number of rows that it wrote; null if they were not counted."))
    state: DatasetUseState = field(metadata=doc("How it ended, or `running`."))
    complete: bool = field(metadata=doc("The lineage of the application is complete."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary(Result):
    """A file, folder, table or topic that applications wrote or read."""

    namespace: str = field(
        metadata=doc("Where it is, for example `file`, `s3://bucket` or `kafka://host:9092`.")
    )
    name: str = field(metadata=doc("Its name there: a path, a table or a topic."))
    path: str = field(metadata=doc("Both in one, as a job would write it."))
    format: str = field(metadata=doc("Format, for example `text`, `csv` or `parquet`."))
    aliases: tuple[str, ...] = field(default=(), metadata=doc("Its names in catalogs, such as `db.table`."))
    schema: tuple[Column, ...] = field(
        default=(), metadata=doc("Columns of the latest use that says them; empty if they are unknown.")
    )
    partitions: tuple[str, ...] = field(
        default=(), metadata=doc("Names of the columns by which its folders are divided.")
    )
    written: DatasetWrite | None = field(metadata=doc("The latest write; null if no application wrote it."))
    read_at: int | None = field(
        metadata=doc("When an application last began to read it (Unix time in milliseconds), else null.")
    )
    writers: int = field(metadata=doc("Number of jobs that wrote it: applications of one name are one job."))
    readers: int = field(metadata=doc("Number of jobs that read it."))
    runs: int = field(metadata=doc("Number of times that it was written."))
    failed_runs: int = field(metadata=doc("How many of these failed, were cancelled or were lost."))
    remark: str = field(
        default="", metadata=doc("That a query which was not followed wrote or read it, and why; else empty.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Datasets(Result):
    """One page of the datasets."""

    datasets: tuple[DatasetSummary, ...] = field(
        metadata=doc("The latest written first; then those that were only read, the latest read first.")
    )
    total: int = field(metadata=doc("Number of matches."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))
    unread_applications: int = field(
        default=0, metadata=doc("Applications that cannot be read now: what they used is not known.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetUse(Result):
    """One application wrote or read a dataset."""

    kind: Literal["write", "read"] = field(metadata=doc("`write` or `read`."))
    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`: what runs of one job share."))
    node_ids: tuple[str, ...] = field(
        metadata=doc("The sink, or all sources of the application that read it.")
    )
    operation: str = field(metadata=doc("Name of the first of these, for example `parquet`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))
    at: int = field(metadata=doc("When the write ended, or the reader began. Unix time in milliseconds."))
    rows: int | None = field(metadata=doc("Number of rows; null if they were not counted."))
    state: DatasetUseState = field(metadata=doc("How the write ended; of a read, how the application did."))
    complete: bool = field(metadata=doc("The lineage of the application is complete."))
    exact: bool = field(
        metadata=doc(
            "Of a write, whether the sources of each row are known exactly; of a read, it was followed."
        )
    )
    reason: str = field(metadata=doc("Why it is not exact; else empty."))
    error: NodeError | None = field(default=None, metadata=doc("Error of a failed write, else null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetGraphNode(Result):
    """A dataset, or a job: all applications of one name."""

    id: str = field(metadata=doc("Unique in this graph."))
    kind: Literal["dataset", "job"] = field(metadata=doc("`dataset` or `job`."))
    layer: int = field(
        metadata=doc(
            "From left to right: 0 is the dataset itself, negative is before it, positive behind it."
        )
    )
    namespace: str = field(default="", metadata=doc("Of a dataset."))
    name: str = field(metadata=doc("Name of the dataset, or of the job."))
    runs: int = field(metadata=doc("Applications of the job; of a dataset, how many times it was written."))
    failed_runs: int = field(metadata=doc("How many of these failed, were cancelled or were lost."))
    application_id: str | None = field(metadata=doc("The latest application of the job, or that wrote it."))
    at: int | None = field(metadata=doc("When that one began, or wrote. Unix time in milliseconds."))
    remark: str = field(default="", metadata=doc("What is not known of it; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetGraphEdge(Result):
    """`source` is read by `target`, or writes it."""

    source: str = field(metadata=doc("Id of a node of this graph."))
    target: str = field(metadata=doc("Id of a node of this graph."))
    exact: bool = field(
        metadata=doc("False: it is only possible, because rows passed through the memory of the program.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetGraph(Result):
    """What is before and behind a dataset, across applications."""

    nodes: tuple[DatasetGraphNode, ...] = field(metadata=doc("By layer, then by name."))
    edges: tuple[DatasetGraphEdge, ...] = field(metadata=doc("Edges between these nodes."))
    truncated: bool = field(
        metadata=doc("There is more: beyond `depth`, or beyond the most nodes that a graph has.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPage(Result):
    """One dataset: its history, and what is before and behind it."""

    dataset: DatasetSummary = field(metadata=doc("What is said of it in lists."))
    history: tuple[DatasetUse, ...] = field(metadata=doc("The writes and reads of this page, newest first."))
    total: int = field(metadata=doc("Number of writes and reads, listed or not."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))
    graph: DatasetGraph = field(metadata=doc("Datasets and jobs, and which of them read or write which."))
    unread_applications: int = field(
        default=0, metadata=doc("Applications that cannot be read now: what they used is not known.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun(Result):
    """One of the two runs that are compared: an application, and the sink that wrote the rows."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    started: int = field(metadata=doc("Unix time in milliseconds."))
    node_id: str = field(metadata=doc("The sink: `APPLICATION_ID#NUMBER`."))
    dataset: str = field(metadata=doc("What it wrote, as a job would write it."))
    rows: int | None = field(metadata=doc("Number of rows that it wrote; null if they were not counted."))
    complete: bool = field(metadata=doc("The lineage of the application is complete."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedInput(Result):
    """A row of an input that is not the same in both runs."""

    path: str = field(metadata=doc("Path of the file: in the later run, if it is there."))
    row: int = field(metadata=doc("Counted from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    was: str | None = field(metadata=doc("Text of the row in the earlier run; null if it had none there."))
    is_: str | None = field(
        metadata=doc("Text of the row in the later run; null if it has none there.", name="is")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow(Result):
    """A row that only one of the runs wrote."""

    key: dict[str, Any] | None = field(metadata=doc("Its key; null without one."))
    record: str = field(metadata=doc("The record that it is, `NODE_ID#RECORD_ID`: a trace can start there."))
    path: str | None = field(metadata=doc("Path of the file."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included."))
    columns: dict[str, Any] = field(metadata=doc("The row by its columns; of text the one column `value`."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow(Result):
    """A row that both runs wrote, with other values."""

    key: dict[str, Any] | None = field(
        metadata=doc("Its key; null without one: the two were made of the same input rows.")
    )
    was: dict[str, Any] = field(metadata=doc("The row of the earlier run, by its columns."))
    is_: dict[str, Any] = field(metadata=doc("The row of the later run, by its columns.", name="is"))
    was_record: str = field(metadata=doc("The record that it was, `NODE_ID#RECORD_ID`."))
    is_record: str = field(metadata=doc("The record that it is, `NODE_ID#RECORD_ID`."))
    columns: tuple[str, ...] = field(metadata=doc("Names of the columns whose values differ."))
    because: tuple[ChangedInput, ...] | None = field(
        metadata=doc(
            "Input rows behind it that are not the same in both runs; null if they were not looked up."
        )
    )
    because_note: str = field(
        default="", metadata=doc("Why `because` is null or may lack or have too many rows; else empty.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Result):
    """What two runs wrote, row by row."""

    runs: tuple[ComparedRun, ...] = field(metadata=doc("The earlier run and the later one."))
    key: tuple[str, ...] = field(metadata=doc("The columns by which rows are paired; empty without a key."))
    gone: tuple[ComparedRow, ...] = field(metadata=doc("Rows of the earlier run only, at most `limit`."))
    new: tuple[ComparedRow, ...] = field(metadata=doc("Rows of the later run only, at most `limit`."))
    changed: tuple[ChangedRow, ...] = field(metadata=doc("Rows with other values, at most `limit`."))
    same: int | None = field(metadata=doc("Number of equal rows; null if rows could not be compared."))
    gone_total: int | None = field(metadata=doc("Number of rows that are gone; null as above."))
    new_total: int | None = field(metadata=doc("Number of new rows; null as above."))
    changed_total: int | None = field(metadata=doc("Number of changed rows; null as above."))
    complete: bool = field(
        metadata=doc("Everything was compared, and the lineage of both applications is complete.")
    )
    exact: bool = field(
        metadata=doc(
            "False: some trace behind `because` has only an upper bound, or was not read to its end."
        )
    )
    truncated: bool = field(metadata=doc("True: more rows differ than are listed."))
    warnings: tuple[str, ...] = field(metadata=doc("What was not compared, and why."))
