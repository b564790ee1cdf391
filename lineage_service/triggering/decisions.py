"""Decides whether a job is worth running, and keeps the answer. `decide` never raises.

 1. A wave that was asked about before has its answer.
 2. Evidence is gathered: executions, files, code, earlier waves.
 3. A wave that somebody asked to be run is run. Else certain answers come first. A change that is not final
    may be weighed by a model behind them, and a run that this leads to be probed on some rows.
 4. The answer becomes a row of the history. Of two who ask for one wave, or for two, one is refused there:
    it begins again, and finds the other's answer.
What cannot be decided, or not be written down, is run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Protocol

from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.lineage import Trigger
from lineage_service.store.errors import StoreConflictError
from lineage_service.triggering.certain.answers import Answer, asked_answer, certain_answer, refusal
from lineage_service.triggering.certain.evidence import Evidence, command_hash, gathered
from lineage_service.triggering.certain.executions import JobStore
from lineage_service.triggering.probing.prober import Probed
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import Wave
from lineage_service.triggering.weighing.weigher import Weighed

__all__ = ["Decider", "Probe", "Weigh", "default_wave", "undecided"]

logger = logging.getLogger(__name__)

_TRIES = 10


class Waves(Protocol):
    """The answers of all jobs, as in `WaveHistory`."""

    def count(self, job: str) -> int: ...

    def waves(self, job: str) -> list[Wave]: ...

    def add(self, wave: Wave, count: int) -> None: ...

    def is_run_next(self, job: str, waves: Sequence[Wave]) -> bool: ...


Weigh = Callable[[Evidence, Answer, int], Weighed]
"""Takes an answer and its number. Of a change that is not final it answers; what is certain it only learns
from."""

Probe = Callable[[Evidence, Answer, int], Probed]
"""Takes an answer and its number, and may know that what would be run need not be."""


class Decider:
    """Of one flow store. Threads and processes may decide at the same time."""

    def __init__(
        self, store: JobStore, history: Waves, weigh: Weigh | None = None, probe: Probe | None = None
    ) -> None:
        self._store, self._history, self._weigh, self._probe = store, history, weigh, probe

    def decide(self, question: Question) -> Trigger:
        """Never raises: what goes wrong is a reason to run."""
        wave, began = question.wave or default_wave(), time.perf_counter()
        try:
            question.check()
            return self._decided(question, wave, began)
        except InvalidQueryError as error:
            answer = undecided(question.job, wave, "arguments", str(error))
        except LineageError as error:
            answer = undecided(question.job, wave, "unavailable", str(error))
        except Exception as error:
            logger.exception("the job %r cannot be decided upon", question.job)
            answer = undecided(question.job, wave, "error", f"it cannot be decided: {error!r}")
        return replace(answer, seconds=_seconds_since(began))

    def _decided(self, question: Question, wave: str, began: float) -> Trigger:
        """`began` is a reading of `perf_counter`. Raises LineageError."""
        for tries_left in reversed(range(_TRIES)):
            count = self._history.count(question.job)
            waves = self._history.waves(question.job)
            before = next((entry for entry in waves if entry.wave == wave), None)
            if before is not None:
                return before.answer(repeated=True)
            evidence = gathered(self._store, waves, question)
            refused = refusal(evidence)
            if refused is not None:
                undone = undecided(question.job, wave, "refused", refused, evidence)
                return replace(undone, seconds=_seconds_since(began))
            is_asked = self._history.is_run_next(question.job, waves)
            answer = asked_answer() if is_asked else certain_answer(evidence)
            weighed = self._probed(evidence, self._weighed(evidence, answer, count), count)
            entry = _entry(wave, count, evidence, weighed)
            entry = replace(entry, seconds=_seconds_since(began))
            try:
                self._history.add(entry, count)
                return replace(entry.answer(repeated=False), error=weighed.errors.get(count))
            except StoreConflictError:
                if not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _weighed(self, evidence: Evidence, answer: Answer, count: int) -> Weighed:
        """Raises InvalidQueryError for terms that do not fit the data. Anything else is a reason to run."""
        if evidence.question.terms is None or self._weigh is None:
            return Weighed(answer=answer)
        try:
            return self._weigh(evidence, answer, count)
        except InvalidQueryError:
            raise
        except Exception as error:
            logger.exception("the changes of the job %r cannot be weighed", evidence.question.job)
            if answer.is_final:
                return Weighed(answer=answer)
            return Weighed(answer=Answer("run", "error", f"{answer.why} · it cannot be weighed: {error!r}"))

    def _probed(self, evidence: Evidence, weighed: Weighed, count: int) -> Weighed:
        """What goes wrong leaves the answer."""
        if self._probe is None:
            return weighed
        try:
            probed = self._probe(evidence, weighed.answer, count)
        except Exception as error:
            logger.exception("the job %r cannot be probed", evidence.question.job)
            why = f"{weighed.answer.why} · not probed: {error!r}"
            return replace(weighed, answer=weighed.answer._replace(why=why))
        if probed.error is None or probed.answer.decision != "skip":
            return replace(weighed, answer=probed.answer)
        return replace(weighed, answer=probed.answer, errors={**weighed.errors, count: probed.error})


def _entry(wave: str, count: int, evidence: Evidence, weighed: Weighed) -> Wave:
    question, last, answer = evidence.question, evidence.last, weighed.answer
    terms, verdict = question.terms, weighed.verdict
    compliance = None if verdict is None else weighed.compliance
    return Wave(
        job=question.job,
        wave=wave,
        number=count,
        time=evidence.now_ms,
        phase="certain" if verdict is None else verdict.phase,
        decision=answer.decision,
        reason=answer.reason,
        why=answer.why,
        bound=None if terms is None else terms.bound,
        confidence=None if terms is None else terms.confidence,
        probability=None if verdict is None else verdict.probability,
        threshold=None if verdict is None else verdict.threshold,
        compliance=None if compliance is None else compliance.share,
        compliance_lower=None if compliance is None else compliance.lower,
        compliance_waves=None if compliance is None else compliance.waves,
        is_audit=None if verdict is None else verdict.is_audit,
        learned=weighed.learned,
        errors=weighed.errors,
        application_id=None if last is None else last.application_id,
        inputs=evidence.seen(),
        code=question.code,
        command=command_hash(question.command),
    )


def _seconds_since(began: float) -> float:
    return round(time.perf_counter() - began, 6)


def default_wave() -> str:
    """The time, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def undecided(job: str, wave: str, reason: str, why: str, evidence: Evidence | None = None) -> Trigger:
    """The answer where there is none: run. It is not kept."""
    last = None if evidence is None else evidence.last
    return Trigger(
        job=job,
        wave=wave,
        decision="run",
        reason=reason,
        why=why,
        phase="certain",
        asked=time.time_ns() // 1_000_000,
        application_id=None if last is None else last.application_id,
        refused=reason == "refused",
    )
