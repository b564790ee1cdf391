"""What behaves oddly in an application, and what the sources of its bad outputs have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.records import SourceRow
from lineage_service.lineage.results import Result, doc

SuspectsMethod = Literal["graded", "newt"]
SuspectFeature = Literal["outputs", "inputs", "dropped", "records", "drift"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectRecord(Result):
    """The record that stands out most among those of a task."""

    record_id: str = field(metadata=doc("Its id at its operation: `PARTITION#OFFSET`."))
    node_id: str = field(metadata=doc("The operation that it is a record of: `APPLICATION_ID#NUMBER`."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect(Result):
    """A task of an operation, or an operation as a whole, and why it is suspected."""

    rank: int = field(metadata=doc("From 1. Equal scores share a rank."))
    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `flatMap`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))
    partition: int | None = field(metadata=doc("The partition of the task; null of the whole operation."))
    score: float = field(
        metadata=doc("How odd it is: bits of surprise (`graded`), or 0, 1 and 2 (`newt`). At most 120.")
    )
    unusual: bool = field(metadata=doc("More than chance: in 1 of 20 applications any task is, by chance."))
    feature: SuspectFeature = field(
        metadata=doc(
            "What stands out: `outputs` per input, `inputs` per output, the share of inputs `dropped`, "
            "`records` that a task read of a shuffle, or a `drift` from earlier runs."
        )
    )
    value: float = field(metadata=doc("Its value there: of the record, or the mean of the task."))
    low: float | None = field(metadata=doc("The least value of the others; null if there are none."))
    high: float | None = field(metadata=doc("The largest value of the others; null if there are none."))
    others: int = field(metadata=doc("How many others there are: records, tasks or runs."))
    why: str = field(metadata=doc("All of this as a sentence."))
    record: SuspectRecord | None = field(metadata=doc("The record that stands out; null where none does."))
    sources: tuple[SourceRow, ...] = field(
        metadata=doc("Input rows that the record was made of, ten at most.")
    )
    sources_total: int = field(metadata=doc("How many these are, listed or not."))
    leads_to_bad: bool | None = field(
        metadata=doc("A bad output is made of it; null if no bad ones were named.")
    )
    follows_from: int | None = field(
        metadata=doc(
            "Rank of a suspect of an earlier operation, from whose record this one follows: `score` is only "
            "what that one's score does not explain. Else null."
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspects(Result):
    """The tasks and operations of an application that behave oddly, the oddest first."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    method: SuspectsMethod = field(metadata=doc("How they were scored."))
    suspects: tuple[Suspect, ...] = field(metadata=doc("By score."))
    total: int = field(metadata=doc("How many have a score above 0, listed or not."))
    tasks: int = field(metadata=doc("How many tasks of operations the application has."))
    tests: int = field(metadata=doc("How many comparisons were made."))
    threshold: float | None = field(
        metadata=doc("Bits of one comparison from which a suspect is unusual; null for `newt`.")
    )
    bad: int = field(metadata=doc("How many bad outputs were named."))
    good: int = field(metadata=doc("How many good outputs were named."))
    earlier: int = field(metadata=doc("With how many earlier runs of the job it was compared."))
    complete: bool = field(metadata=doc("False: not all of its lineage is stored."))
    how: tuple[str, ...] = field(metadata=doc("What such scores can say, and what not."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProperty(Result):
    """Something that input rows of bad outputs have, and those of good ones mostly have not."""

    property: str = field(metadata=doc("For example `file = crash.html and genre is empty`."))
    bad: int = field(metadata=doc("Bad outputs that are made of such a row."))
    of_bad: int = field(metadata=doc("All bad outputs."))
    good: int = field(metadata=doc("Good outputs that are made of such a row."))
    of_good: int = field(metadata=doc("All good outputs."))
    score: float = field(
        metadata=doc("Ochiai's coefficient: 1 if all bad outputs have it and no good one; 0 if none has it.")
    )
    g: float = field(metadata=doc("The G statistic of this table: how far it is from chance."))
    unusual: bool = field(
        metadata=doc("In fewer than 1 of 20 cases any of the properties would differ so much by chance.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast(Result):
    """What the sources of bad outputs share and those of good ones do not."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    properties: tuple[SharedProperty, ...] = field(metadata=doc("By score."))
    compared: int = field(metadata=doc("How many properties were compared."))
    complete: bool = field(
        metadata=doc("False: not all of its lineage is stored, or not all rows were looked at.")
    )
    how: tuple[str, ...] = field(metadata=doc("What was compared, and what could not be."))
