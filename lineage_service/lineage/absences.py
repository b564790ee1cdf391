"""Why an operation has no record with a key: where the key was last, and where its records ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.missing_rows import MissingRow
from lineage_service.lineage.records import Record
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedOperation(Result):
    """An operation, the keys of whose records are known."""

    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `reduceByKey`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSide(KeyedOperation):
    """The other input of a join or a subtraction at which records ended."""

    has_key: bool | None = field(
        metadata=doc("Whether it has records with the key; null if its keys are not known.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder(KeyedOperation):
    """One of the last operations with the key, and what became of its records with the key."""

    total: int = field(metadata=doc("How many records with the key it has, followed or not."))
    records: tuple[Record, ...] = field(metadata=doc("Those that were followed, at most `limit`."))
    ended: tuple[MissingRow, ...] = field(
        metadata=doc("Where these ended on their way to the operation that was asked about.")
    )
    other_sides: tuple[OtherSide, ...] = field(
        metadata=doc("The other inputs of joins and subtractions at which they ended.")
    )
    became: tuple[Record, ...] = field(
        metadata=doc("Records of the operation that was asked about which are made of them, at most `limit`.")
    )
    became_total: int = field(metadata=doc("How many these are, listed or not."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence(Result):
    """Why an operation has no record with a key."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    asked: KeyedOperation = field(metadata=doc("The operation that was asked about."))
    key: str = field(metadata=doc("The key that it lacks."))
    holders: tuple[KeyHolder, ...] = field(
        metadata=doc("The last operations before it that have the key. Empty if none is known to have it.")
    )
    without: tuple[KeyedOperation, ...] = field(
        metadata=doc("Operations before it whose keys are known, and that do not have the key.")
    )
    exact: bool = field(metadata=doc("True: the records ended where `holders` say. False: see `reasons`."))
    complete: bool = field(metadata=doc("False: lineage is missing, so a record may be there."))
    reasons: tuple[str, ...] = field(metadata=doc("What is not known, in sentences."))
