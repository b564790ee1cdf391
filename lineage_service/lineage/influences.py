"""What an influence found: how much an output row moves without each of its input rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.results import Result, doc
from lineage_service.lineage.sifts import FailingOutput

InfluenceWay = Literal["folds", "halves", "runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluentialRow(Result):
    """An input row, and the output without it."""

    record: str = field(metadata=doc("The record of the source in the original, `NODE_ID#RECORD_ID`."))
    path: str | None = field(metadata=doc("Path of the file; null of what is no row of a file."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included; else null."))
    line: int | None = field(metadata=doc("`row` + 1, for people; else null."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))
    change: float | None = field(
        metadata=doc(
            "How far the numbers of the output move, all together; null: it is gone, or has other words."
        )
    )
    failed: bool = field(metadata=doc("Without it the command failed: nothing is known of the output."))
    without: str | None = field(
        metadata=doc("The output row without it; null: it is gone, or not known as `estimated` says.")
    )
    estimated: bool = field(metadata=doc("`change` is an estimate by random halves of the rows."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence(Result):
    """How much an output row of an application moves without each of the input rows that it was made of."""

    influence: str = field(metadata=doc("Its id: the name of its sandbox."))
    application_id: str = field(metadata=doc("The application that was run again."))
    output: FailingOutput = field(metadata=doc("The output row."))
    inputs: tuple[InfluentialRow, ...] = field(
        metadata=doc("Without which it is gone first, then by change, the largest first; at most 1,000.")
    )
    total: int = field(metadata=doc("How many input rows it was made of."))
    way: InfluenceWay = field(
        metadata=doc(
            "`folds`: by the functions of its operations. `halves`: an estimate by random halves of a large "
            "group. `runs`: a run of the job for each row."
        )
    )
    why: str = field(metadata=doc("Why the job had to run for each row; else empty."))
    whole: bool = field(
        metadata=doc(
            "It ran on all rows of the inputs but one, since others than those of the lineage count."
        )
    )
    tests: int = field(metadata=doc("How often the job ran."))
    exact: bool = field(
        metadata=doc(
            "False: a source on the way was read whole, the lineage is not complete, a run failed, `without` "
            "is a guess or an estimate, or the time was over."
        )
    )
    sandbox: str = field(metadata=doc("Folder with what the job printed."))
    seconds: float = field(metadata=doc("How long it took."))
    notes: tuple[str, ...] = field(metadata=doc("What was read whole, and more."))
