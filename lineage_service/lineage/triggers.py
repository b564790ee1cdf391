"""Whether a job is worth running: the answers to those who ask before they run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.applications import ApplicationState
from lineage_service.lineage.results import Result, doc

TriggerDecision = Literal["run", "skip"]
TriggerPhase = Literal["certain", "training", "application"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger(Result):
    """One answer, for one wave of a job."""

    job: str = field(metadata=doc("The job that was asked about."))
    wave: str = field(metadata=doc("The wave that was asked about. Asked again, it has the same answer."))
    decision: TriggerDecision = field(metadata=doc("Whether to run the job. What cannot be decided is run."))
    reason: str = field(metadata=doc("Why, in one word of docs/triggering.md."))
    why: str = field(metadata=doc("Why, in one sentence."))
    phase: TriggerPhase = field(metadata=doc("What the answer rests on. `certain`: on no model."))
    bound: float | None = field(
        default=None, metadata=doc("The error that is tolerated. Null: none, only certain answers.")
    )
    confidence: float | None = field(
        default=None, metadata=doc("The share of waves that keep the bound. Null: without a bound.")
    )
    probability: float | None = field(
        default=None, metadata=doc("That the output would change by more than the bound. Null: no model.")
    )
    threshold: float | None = field(
        default=None, metadata=doc("The probability from which on the job is run. Null: no model.")
    )
    error: float | None = field(
        default=None,
        metadata=doc(
            "What skipping would have meant: the measured error of the output as it was before the "
            "execution that followed. Null: not known, or none followed."
        ),
    )
    compliance: float | None = field(
        default=None, metadata=doc("Share of waves within the bound, as tested. Null: not known.")
    )
    compliance_lower: float | None = field(
        default=None, metadata=doc("The lower bound of that share, at 95 %.")
    )
    compliance_waves: int | None = field(
        default=None, metadata=doc("The number of waves that the share is of.")
    )
    is_audit: bool | None = field(
        default=None,
        metadata=doc("It would have been skipped, and is run to see what skipping means. Null: no model."),
    )
    seconds: float | None = field(
        default=None, metadata=doc("How long it took to decide, in seconds. Null: not known.")
    )
    asked: int = field(metadata=doc("When it was first asked, in Unix milliseconds."))
    application_id: str | None = field(
        default=None, metadata=doc("The last execution of the job; null if it never ran.")
    )
    repeated: bool = field(default=False, metadata=doc("The wave was asked before: this is that answer."))
    refused: bool = field(
        default=False, metadata=doc("Skipping this job would lose data, so it is not decided upon.")
    )

    @property
    def run(self) -> bool:
        """Is the job to be run?"""
        return self.decision == "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves(Result):
    """The waves of a job that were asked about."""

    job: str = field(metadata=doc("The job."))
    waves: tuple[Trigger, ...] = field(metadata=doc("The answers, the latest first."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInCharge(Result):
    """What has come of the decisions of a model since it passed its test."""

    waves: int = field(metadata=doc("How many waves it has decided, the latest 400 at most."))
    skips: int = field(metadata=doc("How many of these were skipped."))
    audits: int = field(metadata=doc("How many would have been, and were run to see what skips mean."))
    broken: int = field(metadata=doc("How many of the audits were above the bound."))
    compliance: float | None = field(
        metadata=doc("The share of waves within the bound, estimated from audits. Null: no audit yet.")
    )
    compliance_lower: float | None = field(metadata=doc("The lower bound of that share, at 95 %."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Result):
    """A job, by its executions and its waves."""

    job: str = field(metadata=doc("Its name: `spark.lineage.job`, or that of its applications."))
    application_id: str | None = field(metadata=doc("Its last execution; null if it never ran."))
    began: int | None = field(metadata=doc("When that began, in Unix milliseconds."))
    state: ApplicationState | None = field(metadata=doc("What became of it, as of an application."))
    complete: bool | None = field(metadata=doc("Whether the lineage of it is complete."))
    inputs: tuple[str, ...] = field(metadata=doc("What it read: paths, or the names of what is no file."))
    outputs: tuple[str, ...] = field(metadata=doc("What it wrote."))
    waves: int = field(metadata=doc("How many waves were asked about."))
    runs: int = field(metadata=doc("How many of these it was to run for."))
    skips: int = field(metadata=doc("How many of these it was skipped for."))
    last: Trigger | None = field(metadata=doc("The last answer; null if it was never asked about."))
    in_charge: ModelInCharge | None = field(
        metadata=doc("What has come of the decisions of a model; null if none is in charge.")
    )
    saved_seconds: float = field(
        metadata=doc(
            "What skips saved: for each one the duration of the execution before it, where it is known."
        )
    )
    saved_unknown: int = field(metadata=doc("Skips that are not in this sum: that duration is not known."))
    spent_seconds: float = field(metadata=doc("How long the answers took, those that said run included."))
    spent_unknown: int = field(
        metadata=doc("Answers that are not in this sum: how long they took was not kept.")
    )
    run_next: bool = field(
        metadata=doc("Somebody asked for the next wave to be run, and it is still to come.")
    )
    retrain: bool = field(
        metadata=doc("Somebody asked for the training to begin anew, which it does with the next answer.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Result):
    """A past execution that nothing was learned from."""

    application_id: str = field(metadata=doc("The application."))
    began: int = field(metadata=doc("When it began, in Unix milliseconds."))
    reason: str = field(metadata=doc("Why, in one word of docs/triggering.md."))
    why: str = field(metadata=doc("Why, in one sentence."))


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTraining(Result):
    """What the past executions of a job have taught."""

    job: str = field(metadata=doc("The job."))
    executions: int = field(metadata=doc("How many executions of it are known."))
    learned: int = field(metadata=doc("How many of these were learned from now."))
    before: int = field(metadata=doc("How many were passed over: the training is behind them already."))
    left_out: tuple[LeftOut, ...] = field(metadata=doc("Those that could not be, the oldest first."))
    phase: TriggerPhase = field(metadata=doc("`application`: a threshold holds, and a model is in charge."))
    waves: int = field(metadata=doc("How many waves of training are done in all."))
    training: int = field(metadata=doc("How many are wanted before the first test."))
    bound: float = field(metadata=doc("The error that is tolerated."))
    threshold: float | None = field(metadata=doc("From which probability on it is run. Null: none holds."))
    compliance: float | None = field(
        metadata=doc("Share of waves within the bound, as tested. Null: no test was passed.")
    )
    compliance_lower: float | None = field(metadata=doc("The lower bound of that share, at 95 %."))
    compliance_waves: int | None = field(metadata=doc("The number of waves that the share is of."))
    why: str = field(metadata=doc("Whether a threshold holds, or why none does, in a sentence."))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEntry(Result):
    """A job in a list."""

    job: str = field(metadata=doc("Its name."))
    application_id: str | None = field(metadata=doc("Its last execution; null if it never ran."))
    began: int | None = field(metadata=doc("When that began, in Unix milliseconds."))
    waves: int = field(metadata=doc("How many waves were asked about."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs(Result):
    """All jobs."""

    jobs: tuple[JobEntry, ...] = field(metadata=doc("The one that ran last is first."))
    unread_applications: int = field(
        metadata=doc("Applications that cannot be read now: their jobs may lack, or have run later.")
    )
