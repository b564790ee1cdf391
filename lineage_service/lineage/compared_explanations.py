"""How the explanation of a record differs from that of the same record in another run."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.explained_rows import ExplainedRow
from lineage_service.lineage.results import Result, doc
from lineage_service.lineage.traces import TraceStart


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedExplanation(Result):
    """The other run, and the rows that explain a record in one of the two alone."""

    application_id: str = field(metadata=doc("The other run: Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name` of it."))
    starts: tuple[TraceStart, ...] = field(metadata=doc("The records that are explained there."))
    total: int = field(metadata=doc("How many rows explain them there."))
    same: int = field(metadata=doc("How many rows explain the records in both runs."))
    gone: tuple[ExplainedRow, ...] = field(metadata=doc("Rows of the first run alone, at most `limit`."))
    gone_total: int = field(metadata=doc("How many these are, listed or not."))
    new: tuple[ExplainedRow, ...] = field(metadata=doc("Rows of the other run alone, at most `limit`."))
    new_total: int = field(metadata=doc("How many these are, listed or not."))
    exact: bool = field(metadata=doc("True: both explanations are `concise`, and all rows have texts."))
    complete: bool = field(metadata=doc("False: lineage of one of the runs is missing."))
    reasons: tuple[str, ...] = field(metadata=doc("What is not known, in sentences."))
