"""Concise explanations: the few input rows that decided what a record is, and what was left out and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from lineage_service.lineage.compared_explanations import ComparedExplanation
from lineage_service.lineage.derivations import HowGraph
from lineage_service.lineage.explained_rows import DemandedRow, ExplainedRow
from lineage_service.lineage.meetings import Meeting
from lineage_service.lineage.records import Record
from lineage_service.lineage.results import Result, doc
from lineage_service.lineage.traces import TraceStart

ExplanationKind = Literal["concise", "bound", "verified"]
ExplanationRuleName = Literal["winner", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationTurn(Result):
    """Records on the way to the start that one turn of a loop gave, and the rows that came in with it."""

    loop: str = field(metadata=doc("File and line of the loop, for example `labels.py:31`."))
    turn: int = field(metadata=doc("Counted from 1; 0 is what the loop began with."))
    node_id: str = field(metadata=doc("The operation whose records they are: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `reduceByKey`."))
    total: int = field(metadata=doc("How many these are, listed or not."))
    records: tuple[Record, ...] = field(metadata=doc("These records, at most `limit` and 1,000."))
    until: tuple[int, ...] = field(
        metadata=doc("Of each record that is listed: the last turn up to which it stayed as it was.")
    )
    rows_total: int = field(metadata=doc("How many rows came in with this turn, listed or not."))
    rows: tuple[ExplainedRow, ...] = field(metadata=doc("These rows, at most `limit` and 1,000."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRule(Result):
    """Why the explanation is smaller than the trace at an operation."""

    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `reduceByKey`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))
    rule: ExplanationRuleName = field(
        metadata=doc(
            "`winner`: a merge gave one of its inputs back, and only that one counts. `unchanged`: a record "
            "stayed as it was from turn to turn of a loop, and only the same record a turn before counts."
        )
    )
    kept: int = field(metadata=doc("How many records the rule kept."))
    of: int = field(metadata=doc("Of how many that a trace takes there."))


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenValues(Result):
    """Values that the program had, and may have put into records: they are taken as they are."""

    node_id: str = field(
        metadata=doc("An action, the first of its call site, or a source: `APPLICATION_ID#NUMBER`.")
    )
    name: str = field(metadata=doc("The operation, for example `collect` or `textFile`."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))
    path: str | None = field(
        metadata=doc("Of a source: what it reads; null of what is no file, folder or table.")
    )
    results: int | None = field(
        default=None, metadata=doc("Of an action: how many results of this call the program had; else null.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(Result):
    """How it was found that the job gives the start again on the rows alone."""

    runs: int = field(metadata=doc("How often the job ran."))
    added: int = field(
        metadata=doc("How many of the rows were added to those that decided, and to demanded ones.")
    )
    minimal: bool = field(
        metadata=doc("True: the job also ran without each of the rows, and did not give the start again.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationCheck(Result):
    """What running the job has shown of these records, as it was recorded."""

    checked_at: int = field(metadata=doc("When it was found: Unix time in ms."))
    these_rows: bool = field(
        metadata=doc(
            "True: the job ran on exactly the rows of this answer. False: on others, so it says nothing of "
            "these alone."
        )
    )
    runs: int = field(metadata=doc("How often the job ran."))
    minimal: bool = field(
        metadata=doc("True: the job also ran without each of its rows, and did not give the start again.")
    )
    total: int = field(metadata=doc("On how many rows the job gave the start again."))
    added: tuple[ExplainedRow, ...] = field(
        metadata=doc("Those of them that are not among the rows of this answer, at most `limit`.")
    )
    added_total: int = field(metadata=doc("How many these are, listed or not."))
    left_out_total: int = field(metadata=doc("How many rows of this answer the job did not have."))
    notes: tuple[str, ...] = field(metadata=doc("What was said of it, in sentences."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Result):
    """The input rows that decided what some records are."""

    kind: ExplanationKind = field(
        metadata=doc(
            "`concise`: no more rows than its rules know of. `bound`: more may be listed. `verified`: the "
            "job ran on these rows alone, and gave the start again."
        )
    )
    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    starts: tuple[TraceStart, ...] = field(metadata=doc("The records that are explained, by operation."))
    rows: tuple[ExplainedRow, ...] = field(metadata=doc("The rows of this page, by source and place."))
    total: int = field(metadata=doc("How many rows explain the start, listed or not."))
    of: int | None = field(
        metadata=doc("How many records the sources before the start have; null if unknown.")
    )
    plain_total: int | None = field(
        metadata=doc(
            "How many rows a plain trace has, with the first page; null if it was not asked for, or was not "
            "counted within a second."
        )
    )
    turns: tuple[ExplanationTurn, ...] = field(
        metadata=doc("What turns of loops gave on the way to the start, with the first page.")
    )
    rules: tuple[ExplanationRule, ...] = field(metadata=doc("What left rows out, with the first page."))
    given_values: tuple[GivenValues, ...] = field(
        metadata=doc(
            "Results of actions that the program had before, and sources that no record on the way came "
            "from. It may have used values of them. Rows behind them are not listed.",
            name="given",
        )
    )
    exact: bool = field(
        metadata=doc("False: the way passes an upper bound, so rows may be listed that took no part.")
    )
    complete: bool = field(metadata=doc("False: blocks are missing, so rows may be missing."))
    verified: Verification | None = field(
        default=None,
        metadata=doc(
            "How it was found that these rows give the start again, with the kind `verified`. The API runs "
            "no job: it answers what a command has recorded of exactly these rows, and null without that."
        ),
    )
    checks: tuple[ExplanationCheck, ...] = field(
        default=(),
        metadata=doc(
            "What commands have recorded of these records, with the first page: checks of the rows of this "
            "answer first, then the newest. At most ten."
        ),
    )
    reasons: tuple[str, ...] = field(metadata=doc("What is not known, and why it is not smaller."))
    next: str | None = field(metadata=doc("`cursor` of the next page of rows; null on the last."))
    same: Meeting | None = field(
        default=None,
        metadata=doc("With `same`, and the first page: what the two records share.", omit_none=True),
    )
    demanded: tuple[DemandedRow, ...] | None = field(
        default=None,
        metadata=doc(
            "With `with`, and the first page: the demanded rows, and how they lead to the start.",
            omit_none=True,
        ),
    )
    how: str | None = field(
        default=None,
        metadata=doc(
            "With `how`, and the first page: the rows as an expression. `·` joins rows that are needed "
            "together, `+` alternatives. Each record that is explained has a line.",
            omit_none=True,
        ),
    )
    how_graph: HowGraph | None = field(
        default=None, metadata=doc("With `how`, and the first page: the same as a graph.", omit_none=True)
    )
    compared: ComparedExplanation | None = field(
        default=None,
        metadata=doc(
            "With `compare`, and the first page: the same record in another run, and which rows differ.",
            omit_none=True,
        ),
    )

    def unchecked(self) -> Explanation:
        """The same without what running has shown: a `bound` where anything is not known."""
        if self.kind != "verified":
            return replace(self, checks=())
        kind: ExplanationKind = "concise" if self.exact and not self.reasons else "bound"
        return replace(self, kind=kind, verified=None, checks=())
