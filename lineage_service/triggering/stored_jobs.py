"""What is known of jobs and of their waves, for people and programs: reads the store, and decides nothing."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import Job, JobEntry, Jobs, PastTraining, Trigger, Waves
from lineage_service.lineage.trigger_totals import TriggerTotals
from lineage_service.triggering.certain.answers import Answer, refusal
from lineage_service.triggering.certain.evidence import Evidence, gathered
from lineage_service.triggering.certain.executions import LastStarts, executions_of
from lineage_service.triggering.certain.given_inputs import inputs_of, outputs_of
from lineage_service.triggering.decisions import Decider
from lineage_service.triggering.learning.model_in_charge import in_charge
from lineage_service.triggering.probing.kept_probes import KeptProbes
from lineage_service.triggering.probing.prober import Prober, RunOnRows
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.savings import Durations, savings_of
from lineage_service.triggering.waves.wave_history import WaveHistory, job_key
from lineage_service.triggering.waves.wave_totals import WaveTotals
from lineage_service.triggering.weighing.execution_lineage import ExecutionLineages
from lineage_service.triggering.weighing.kept_elements import KeptElements, KeptPairs
from lineage_service.triggering.weighing.kept_lessons import KeptLessons
from lineage_service.triggering.weighing.past_lessons import MOST_EXECUTIONS, PastLearner
from lineage_service.triggering.weighing.weigher import Weighed, Weigher, last_experience

if TYPE_CHECKING:
    from lineage_service.store.flow_store import DeltaFlowStore

__all__ = ["StoredJobs"]


class StoredJobs:
    """Those of one flow store. Methods raise StoreUnavailableError, but for `decide`, which never raises."""

    def __init__(self, store: DeltaFlowStore, redacted: str = "") -> None:
        """Of columns that are `redacted`, separated by commas, no numbers are kept."""
        self._redacted = tuple(filter(None, map(str.strip, redacted.split(","))))
        self._store, self._history = store, WaveHistory(store.location)
        self._durations, self._starts = Durations(store), LastStarts(store)
        self._totals = WaveTotals(self._history, self._durations)
        self._learning: tuple[KeptElements, KeptPairs, KeptLessons] | None = None

    def decide(
        self, question: Question, run: RunOnRows | None = None, *, is_patient: bool = False
    ) -> Trigger:
        """`run`: runs the job on some rows, to probe it; `is_patient`: also where that hardly pays."""
        question = self._redacting(question)
        if question.terms is None:
            return Decider(self._store, self._history).decide(question)
        probe = None
        if run is not None:
            probe = Prober(KeptProbes(self._store.location), run, is_patient=is_patient).probed
        weigher: Weigher | None = None

        def weigh(evidence: Evidence, answer: Answer, number: int) -> Weighed:
            nonlocal weigher
            if weigher is None:
                assert question.terms is not None
                lineages = ExecutionLineages(self._store, question.terms.within_s)
                weigher = Weigher(self._history, *self._kept(), lineages)
            return weigher.weigh(evidence, answer, number)

        return Decider(self._store, self._history, weigh, probe).decide(question)

    def _redacting(self, question: Question) -> Question:
        if question.terms is None or not self._redacted:
            return question
        return replace(question, terms=replace(question.terms, redacted=self._redacted))

    def _kept(self) -> tuple[KeptElements, KeptPairs, KeptLessons]:
        """What certain answers do not need."""
        if self._learning is None:
            location = self._store.location
            self._learning = KeptElements(location), KeptPairs(location), KeptLessons(location)
        return self._learning

    def jobs(self) -> Jobs:
        """All that ever ran or were asked about."""
        starts, unread = self._starts.look()
        waves = self._history.jobs()
        return Jobs(
            unread_applications=unread,
            jobs=tuple(
                JobEntry(
                    job=name,
                    application_id=str(starts[name]["application_id"]) if name in starts else None,
                    began=int(starts[name]["time"]) if name in starts else None,
                    waves=waves.get(name, 0),
                )
                for name in [*starts, *sorted(waves.keys() - starts)]
            ),
        )

    def job(self, name: str) -> Job:
        """Raises NotFoundError of a job that neither ran nor was asked about."""
        waves = self._history.waves(name)
        last = next(iter(executions_of(self._store, name, 1, time.time() * 1000)), None)
        if last is None and not waves:
            raise NotFoundError(
                f"no job {name!r} is known: a job is called by its spark.lineage.job, or by the name of its "
                "applications"
            )
        skips = sum(wave.decision == "skip" for wave in waves)
        sources = () if last is None else inputs_of(last)
        written = () if last is None else outputs_of(last)
        savings = savings_of(waves, self._durations.of(waves))
        retrained = self._history.retrained(name)
        teaching = [wave.number for wave in (*waves, *self._history.lessons(name))]
        return Job(
            job=name,
            application_id=None if last is None else last.application_id,
            began=None if last is None else last.began,
            state=None if last is None else last.state,
            complete=None if last is None else last.completeness.is_complete,
            inputs=tuple(dict.fromkeys(place for one in sources for place in (one.paths or (one.name,)))),
            outputs=tuple(output.path or output.name for output in written),
            waves=len(waves),
            runs=len(waves) - skips,
            skips=skips,
            last=waves[-1].answer(repeated=False) if waves else None,
            in_charge=in_charge(waves, retrained),
            saved_seconds=savings.saved_seconds,
            saved_unknown=savings.saved_unknown,
            spent_seconds=savings.spent_seconds,
            spent_unknown=savings.spent_unknown,
            run_next=self._history.is_run_next(name, waves),
            retrain=retrained is not None and bool(teaching) and max(teaching) < retrained,
        )

    def waves(self, name: str) -> Waves:
        """The latest first; none of a job that was never asked about."""
        waves = self._history.waves(name)
        return Waves(job=name, waves=tuple(wave.answer(repeated=False) for wave in reversed(waves)))

    def totals(self) -> TriggerTotals:
        """Sums over the answers, for metrics."""
        return self._totals.look()

    def learn(self, question: Question) -> PastTraining:
        """Training from the executions that are in the store, as far as what they read and wrote is still
        there.

        Raises NotFoundError of a job that never ran, InvalidQueryError without a bound, of terms that fit
        none of them and of a job that is refused, StoreConflictError if somebody asks about it meanwhile.
        """
        question = self._redacting(question)
        question.check()
        if question.terms is None:
            raise InvalidQueryError("there is nothing to learn without a bound: say --bound 0.05")
        within_s = question.terms.within_s
        now = gathered(self._store, self._history.waves(question.job), question)
        if now.last is None:
            raise NotFoundError(f"{question.job!r} was never seen to run with lineage")
        refused = refusal(now)
        if refused is not None:
            raise InvalidQueryError(refused)
        executions = executions_of(self._store, question.job, MOST_EXECUTIONS, now.now_ms)

        def weigher() -> Weigher:
            return Weigher(self._history, *self._kept(), ExecutionLineages(self._store, within_s))

        return PastLearner(self._history, self._kept()[1], question, weigher).learn(now, executions[::-1])

    def run_next(self, name: str) -> Job:
        """Let the next wave that is asked about be run, whatever is known. Raises NotFoundError."""
        self.job(name)
        self._history.run_next(name)
        return self.job(name)

    def label(self, name: str, wave: str, error: float) -> None:
        """Say how wrong the output of a wave was, or would have been without its run.

        Raises NotFoundError of a wave that was not asked about, InvalidQueryError of an error below 0.

        """
        if not 0 <= error < math.inf:
            raise InvalidQueryError(f"an error is 0 or more, and finite: not {error:g}")
        entry = next((one for one in self._history.waves(name) if one.wave == wave), None)
        if entry is None:
            raise NotFoundError(f"{name!r} was never asked about for the wave {wave!r}")
        self._history.label(entry, error)

    def retrain(self, name: str) -> Job:
        """Begin the training of a job anew, with its next answer. Raises NotFoundError."""
        if not self._history.waves(name) and not self._history.lessons(name):
            raise NotFoundError(f"{name!r} was never asked about, so there is no training of it")
        self._history.retrain(name)
        return self.job(name)

    def prune(self) -> dict[str, int]:
        """Remove what no answer can use any more: the pairs from before a training, by job, if there are any.

        A training never looks back behind its first step: `lesson` and the test take later references only.
        """
        counts = {}
        for name in self._history.jobs():
            newest = last_experience([*self._history.waves(name), *self._history.lessons(name)])
            if newest is not None:
                counts[name] = self._kept()[1].clear(job_key(name), newest[1].progress.oldest)
        return {name: count for name, count in counts.items() if count}

    def forget(self, name: str) -> int:
        """Remove the waves of a job, and all that was learned from them; how many there were."""
        count = self._history.forget(name)
        key = job_key(name)
        for table in (*self._kept(), KeptProbes(self._store.location)):
            table.forget(key)
        return count
