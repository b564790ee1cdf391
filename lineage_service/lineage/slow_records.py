"""Which records of an application took long, and the input rows, operations and partitions behind them."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.records import SourceRow
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRecordId(Result):
    """The record that a function was given."""

    record_id: str = field(metadata=doc("Its id at the operation before: `PARTITION#OFFSET`."))
    node_id: str = field(metadata=doc("The operation before: `APPLICATION_ID#NUMBER`."))
    key: str | None = field(metadata=doc("Its key; null if it has none that is known."))
    value: str | None = field(metadata=doc("Its value; null if it was not captured."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRecord(Result):
    """A record at which a task was for long."""

    ms: int = field(metadata=doc("About how long the function of the operation took for it, in ms."))
    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `map`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))
    partition: int = field(metadata=doc("The partition that was computed."))
    record: SlowRecordId | None = field(metadata=doc("The record; null if it is not stored."))
    sources: tuple[SourceRow, ...] = field(metadata=doc("Input rows that it was made of, ten at most."))
    sources_total: int = field(metadata=doc("How many these are, listed or not."))
    exact: bool = field(metadata=doc("True: it was made of these input rows, and of no others."))
    reason: str = field(metadata=doc("Why it is not exact; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowInput(Result):
    """An input row, and the time of the slow records that were made of it."""

    ms: int = field(metadata=doc("The sum of their times."))
    records: int = field(metadata=doc("How many these are."))
    source: SourceRow = field(metadata=doc("The row."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowOperation(Result):
    """An operation, and the time of the slow records at which it was."""

    ms: int = field(metadata=doc("The sum of their times."))
    records: int = field(metadata=doc("How many these are."))
    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `map`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPartition(Result):
    """A partition of an operation, and the time of its slow records."""

    ms: int = field(metadata=doc("The sum of their times."))
    records: int = field(metadata=doc("How many these are."))
    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    partition: int = field(metadata=doc("The partition."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(Result):
    """The records of an application that took long."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    records: tuple[SlowRecord, ...] = field(metadata=doc("The slowest first."))
    total: int = field(metadata=doc("How many are known, listed or not: at most 20 of each task."))
    inputs: tuple[SlowInput, ...] = field(
        metadata=doc("Input rows, the slowest first. Those of records that were made of ten rows at most.")
    )
    operations: tuple[SlowOperation, ...] = field(metadata=doc("The slowest first."))
    partitions: tuple[SlowPartition, ...] = field(metadata=doc("The slowest first."))
    complete: bool = field(
        metadata=doc("False: not all of its lineage is stored, so records may be missing.")
    )
    how: str = field(metadata=doc("What is not known, and how to learn more; else empty."))
