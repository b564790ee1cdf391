"""What applications wrote and read: a list of it, and one of them with its history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.applications import NodeError
from lineage_service.lineage.places import Column
from lineage_service.lineage.results import Result, doc

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
