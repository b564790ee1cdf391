"""What made tasks and actions of an application fail: the error, and the record that it is about."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.records import SourceRow
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRecord(Result):
    """The record that a function was given when it failed."""

    record_id: str = field(metadata=doc("Its id at the operation before: `PARTITION#OFFSET`."))
    node_id: str = field(metadata=doc("The operation before: `APPLICATION_ID#NUMBER`."))
    value: str | None = field(metadata=doc("Its value; null if it was not captured."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Result):
    """One failure: of a task and its further attempts, or of an action whose culprit is not known."""

    failure: int = field(metadata=doc("Its number in the application, from 1, by time."))
    error: str = field(metadata=doc("The type of the error."))
    message: str = field(metadata=doc("What it says, as far as it may leave the executor."))
    frame: str | None = field(
        metadata=doc("`FILE:LINE` of the innermost line of the program; null if unknown.")
    )
    node_id: str | None = field(metadata=doc("The operation that failed: `APPLICATION_ID#NUMBER`; or null."))
    name: str | None = field(metadata=doc("The operation, for example `map`; null if it is not known."))
    call_site: str | None = field(metadata=doc("File and line of the job that called it; or null."))
    stage: int | None = field(metadata=doc("Spark's number of the stage; null if it is not known."))
    partition: int | None = field(metadata=doc("The partition that was computed; null if it is not known."))
    attempts: int = field(metadata=doc("How many attempts of the task failed so; 0 if none reported it."))
    record: FailedRecord | None = field(metadata=doc("The culprit; null if it is not known."))
    sources: tuple[SourceRow, ...] = field(metadata=doc("The input rows that the culprit was made of."))
    sources_total: int = field(metadata=doc("How many these are, listed or not."))
    exact: bool = field(
        metadata=doc("True: this record and no other was at hand. False: `reason` says what is not known.")
    )
    recovered: bool = field(metadata=doc("A later attempt of the task ended well."))
    reason: str = field(metadata=doc("Why it is not exact; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures(Result):
    """All failures of an application that are known."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    failures: tuple[Failure, ...] = field(metadata=doc("By time."))
    complete: bool = field(metadata=doc("False: the culprit of some failure is not known; `how` says why."))
    how: str = field(metadata=doc("What is not known, and how to learn more; else empty."))
