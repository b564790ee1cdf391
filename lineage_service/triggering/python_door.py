"""`decide`: whether a job is worth running, for schedulers in Python. Never raises; `learn` does."""

from __future__ import annotations

from collections.abc import Sequence

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import PastTraining, Trigger
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store
from lineage_service.triggering.decisions import default_wave, undecided
from lineage_service.triggering.learning.terms import (
    AUDIT,
    CONFIDENCE,
    ERROR,
    FUNCTION,
    HORIZON,
    TRAINING,
    WITHIN,
    terms_of,
)
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.question import DEFAULT_AGE, Question, seconds_of

__all__ = ["decide", "learn"]


def decide(
    job: str,
    *,
    wave: str | None = None,
    at_least_every: str = DEFAULT_AGE,
    code: str | None = None,
    inputs: Sequence[str] = (),
    ignored: Sequence[str] = (),
    deterministic: bool = False,
    missing_is_fine: bool = False,
    bound: float = 0.0,
    confidence: float = CONFIDENCE,
    error: str = ERROR,
    key: Sequence[str] = (),
    value: Sequence[str] = (),
    output: Sequence[str] = (),
    horizon: int = HORIZON,
    training: int = TRAINING,
    audit: float = AUDIT,
    within: str = WITHIN,
    settings: Settings | None = None,
) -> Trigger:
    """Whether to run a job for a wave: `.run`, with `.reason` and `.why` (docs/triggering.md).

    The parameters are the flags of `lineage trigger`. Without `settings`, those of the environment count.
    """
    wave = wave or default_wave()
    try:
        question = Question(
            job=job,
            wave=wave,
            at_least_every_s=seconds_of(at_least_every),
            code=code,
            inputs=tuple(inputs),
            ignored=tuple(ignored),
            is_steady=deterministic,
            missing_is_fine=missing_is_fine,
            terms=terms_of(
                bound=bound,
                confidence=confidence,
                error=error,
                keys=key,
                values=value,
                outputs=output,
                horizon=horizon,
                training=training,
                audit=audit,
                within_s=seconds_of(within),
            ),
        )
        return _jobs(question, settings).decide(question)
    except InvalidQueryError as error:
        return undecided(job, wave, "arguments", str(error))
    except Exception as error:  # noqa: BLE001 - a scheduler goes on, and runs the job
        return undecided(job, wave, "unavailable", str(error) or repr(error))


def learn(
    job: str,
    *,
    bound: float,
    code: str | None = None,
    inputs: Sequence[str] = (),
    ignored: Sequence[str] = (),
    missing_is_fine: bool = False,
    confidence: float = CONFIDENCE,
    error: str = ERROR,
    key: Sequence[str] = (),
    value: Sequence[str] = (),
    output: Sequence[str] = (),
    horizon: int = HORIZON,
    training: int = TRAINING,
    audit: float = AUDIT,
    within: str = WITHIN,
    settings: Settings | None = None,
) -> PastTraining:
    """What the past executions of a job teach about a bound: `lineage trigger learn` (docs/triggering.md).

    Say what `decide` will be told: training begins anew with other terms. Raises LineageError.
    """
    question = Question(
        job=job,
        code=code,
        inputs=tuple(inputs),
        ignored=tuple(ignored),
        missing_is_fine=missing_is_fine,
        terms=terms_of(
            bound=bound,
            confidence=confidence,
            error=error,
            keys=key,
            values=value,
            outputs=output,
            horizon=horizon,
            training=training,
            audit=audit,
            within_s=seconds_of(within),
        ),
    )
    return _jobs(question, settings).learn(question)


def _jobs(question: Question, settings: Settings | None) -> StoredJobs:
    """Raises InvalidQueryError for an error that is to come from a function which is not there."""
    terms = question.terms
    if terms is not None and terms.measure == FUNCTION:
        from lineage_service.triggering.changes.error_function import check_function

        check_function(terms.error, terms.within_s)
    settings = settings or Settings()
    return StoredJobs(existing_store(settings), settings.trigger_redact)
