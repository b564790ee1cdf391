"""Training from past executions: as if each of them had been asked about, as far as that can still be read.

 1. Of each execution, the oldest first, it is looked at whether inputs and outputs can be read as they were.
    Those of which they cannot are left out, each with its reason.
 2. The numbers of the steps to come are reserved by a row of the history. What one who dies behind it has
    written is removed by the next one, and nobody else takes its numbers.
 3. Each execution becomes a step: its inputs are read, then its outputs, and compared with the steps before.
 4. Of all of them one test is made, and one row of the history says what was learned. It is no answer.
Executions that were learned from before, by this or because somebody asked, are not learned from again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import LeftOut, PastTraining
from lineage_service.store.errors import StoreConflictError
from lineage_service.triggering.certain.evidence import Evidence, chosen_inputs
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import FileLook
from lineage_service.triggering.certain.given_inputs import GivenInput, inputs_of, outputs_of
from lineage_service.triggering.changes.error_function import ErrorFunctionError
from lineage_service.triggering.learning.phases import APPLICATION
from lineage_service.triggering.learning.terms import MOST_TRAINING, Terms
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import LEARNED, Wave, WaveHistory, job_key
from lineage_service.triggering.weighing.container_rows import Container, UnreadRowsError, container_of
from lineage_service.triggering.weighing.experience import Experience
from lineage_service.triggering.weighing.kept_elements import KeptPairs
from lineage_service.triggering.weighing.past_states import NotAsItWasError, PastReader, PastStates
from lineage_service.triggering.weighing.weigher import Weigher, last_experience, progress_in_words

__all__ = ["MOST_EXECUTIONS", "PastLearner"]

#: The latest ones: their events are in memory together.
MOST_EXECUTIONS = 1_000
_TRIES = 10
#: Of the row that stands before an attempt. That which stands behind it has the same name.
_RESERVED = "begins to learn from past executions"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """The last execution that ended, and is complete: others are to read and write what it did."""

    execution: Execution
    inputs: frozenset[str]
    outputs: frozenset[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """An execution that can be read as it was, as far as listings say. `digests` are of its inputs."""

    evidence: Evidence
    execution: Execution
    digests: tuple[tuple[str, str], ...]


class PastLearner:
    """Of one job and question. `weigher` makes one for each execution, so that each has its time."""

    def __init__(
        self, history: WaveHistory, pairs: KeptPairs, question: Question, weigher: Callable[[], Weigher]
    ) -> None:
        assert question.terms is not None
        self._history, self._pairs, self._question, self._weigher = history, pairs, question, weigher
        self._terms: Terms = question.terms
        self._left_out: list[LeftOut] = []

    def learn(self, live: Evidence, executions: Sequence[Execution]) -> PastTraining:
        """`live` is what is known of the job now; `executions` are all of them, the oldest first.

        Raises InvalidQueryError for terms that fit none of them, StoreUnavailableError, StoreConflictError if
        somebody with a bound asks about the job meanwhile.
        """
        base = self._weigher().state(live, self._terms)
        already = base.progress.executions
        fresh = () if base.progress.phase == APPLICATION else _following(base, executions)
        candidates = self._candidates(live, fresh)
        learned, steps = base, dict[int, Execution]()
        if candidates:
            self._remove_unfinished()
            first, until = base.next_step, base.next_step + len(candidates)
            name = f"steps {first} to {until}"
            reserved = self._add(replace(base, next_step=until), _RESERVED, name, lambda: True)
            learned, steps = self._steps(live, base, candidates)
            learned = replace(learned, next_step=until)
            why = f"learned from {len(steps):,} past executions"
            self._add(learned, why, name, lambda: _is_last(self._history, self._question.job, reserved))
        since = learned.progress.since
        for step, execution in steps.items():
            if step < since:
                self._leave(execution, "columns", learned.progress.reason)
        counted = sum(step >= since for step in steps)
        progress = learned.progress
        compliance = progress.compliance
        return PastTraining(
            job=self._question.job,
            executions=len(executions),
            learned=counted,
            before=len(executions) - len(fresh),
            left_out=tuple(sorted(self._left_out, key=lambda entry: entry.began)),
            phase="application" if progress.phase == APPLICATION else "training",
            waves=already + counted,
            training=self._terms.training,
            bound=self._terms.bound,
            threshold=progress.threshold,
            compliance=None if compliance is None else compliance.share,
            compliance_lower=None if compliance is None else compliance.lower,
            compliance_waves=None if compliance is None else compliance.waves,
            why=progress_in_words(progress, learned.policy),
        )

    def _leave(self, execution: Execution, reason: str, why: str) -> None:
        self._left_out.append(
            LeftOut(application_id=execution.application_id, began=execution.began, reason=reason, why=why)
        )

    # -- what can be read ------------------------------------------------------------------------------

    def _candidates(self, live: Evidence, executions: Sequence[Execution]) -> list[_Candidate]:
        states, reference = PastStates(), self._reference(live, executions)
        candidates: list[_Candidate] = []
        for execution in executions:
            try:
                candidate = self._candidate(live, execution, reference, states)
                if candidates and candidates[-1].digests == candidate.digests:
                    raise NotAsItWasError("unchanged", "its inputs are those of the execution before")
            except NotAsItWasError as error:
                self._leave(execution, error.reason, str(error))
            else:
                candidates.append(candidate)
        return candidates

    def _reference(self, live: Evidence, executions: Sequence[Execution]) -> _Reference | None:
        for execution in reversed(executions):
            if execution.state == "ended" and execution.completeness.is_complete:
                return _Reference(
                    execution=execution,
                    inputs=_paths(chosen_inputs(inputs_of(execution), self._question, live.extra)),
                    outputs=frozenset(output.path for output in outputs_of(execution)),
                )
        return None

    def _candidate(
        self, live: Evidence, execution: Execution, reference: _Reference | None, states: PastStates
    ) -> _Candidate:
        """Raises NotAsItWasError."""
        if execution.state == "running":
            raise NotAsItWasError("running", "it has not ended, as far as the store knows")
        if execution.state != "ended":
            raise NotAsItWasError("failed", f"it {'was lost' if execution.state == 'lost' else 'failed'}")
        if not execution.completeness.is_complete or reference is None:
            raise NotAsItWasError("incomplete", f"of it {execution.completeness.describe()}")
        last = reference.execution
        if execution.code != last.code:
            raise NotAsItWasError("code", f"its code is another one than that of {last.application_id}")
        inputs = chosen_inputs(inputs_of(execution), self._question, live.extra)
        outputs = outputs_of(execution)
        if _paths(inputs) != reference.inputs:
            raise NotAsItWasError("other_input", f"it read other paths than {last.application_id}")
        if {output.path for output in outputs} != reference.outputs:
            raise NotAsItWasError("other_output", f"it wrote other paths than {last.application_id}")
        evidence = Evidence(
            question=self._question,
            now_ms=execution.began,
            executions=(execution,),
            waves=(),
            inputs=inputs,
            extra=live.extra,
            outputs=outputs,
        )
        looks = states.inputs(execution, inputs, live.extra)
        digests = tuple((path, look.digest) for path, look in sorted(looks.items()))
        looks = {**looks, **states.outputs(evidence, outputs)}
        return _Candidate(evidence=replace(evidence, looks=looks), execution=execution, digests=digests)

    # -- what they teach -------------------------------------------------------------------------------

    def _steps(
        self, live: Evidence, base: Experience, candidates: Sequence[_Candidate]
    ) -> tuple[Experience, dict[int, Execution]]:
        """The executions by their steps. Raises InvalidQueryError, StoreUnavailableError."""
        # One test at the end, of all that there is: executions that nobody decided upon are no decisions.
        untested = replace(base.policy, training=MOST_TRAINING + len(candidates))
        progress = replace(base.progress, tried=untested.training, former=None)
        learned, steps = replace(base, policy=untested, progress=progress), dict[int, Execution]()
        misfit: InvalidQueryError | None = None
        for candidate in candidates:
            try:
                learned = self._step(learned, candidate)
                steps[learned.steps[-1].step] = candidate.execution
            except NotAsItWasError as error:
                self._leave(candidate.execution, error.reason, str(error))
            except InvalidQueryError as error:
                misfit = error
                self._leave(candidate.execution, "columns", str(error))
        if misfit is not None and not steps:
            raise misfit
        progress, before = learned.progress, base.progress
        if progress.since == before.since:
            progress = replace(progress, tried=before.tried, former=before.former)
        learned = replace(learned, policy=base.policy, progress=progress)
        if steps:
            learned = self._weigher().tested(learned, live)
        return learned, steps

    def _step(self, learned: Experience, candidate: _Candidate) -> Experience:
        """Raises NotAsItWasError, InvalidQueryError, StoreUnavailableError."""
        execution, evidence = candidate.execution, candidate.evidence
        asked = Wave(
            job=self._question.job,
            wave=execution.wave or "",
            number=-1 - learned.next_step,  # no answer has it, and no other step
            time=execution.began - 1,
            phase="training",
            decision="run",
            reason=LEARNED,
            why="",
            code=self._question.code,
        )
        evidence = replace(evidence, waves=(asked,))
        reader = PastReader(self._terms.within_s, {})
        reader.read_all(_containers(evidence, execution))
        try:
            taught = self._weigher().after_past(learned, evidence, self._terms, reader)
        except UnreadRowsError as error:
            raise NotAsItWasError("unread", str(error)) from None
        except ErrorFunctionError as error:
            raise NotAsItWasError("error", str(error)) from None
        except KeyError as error:
            raise NotAsItWasError("unread", f"it cannot be compared: {error} is not known of it") from None
        if not taught.steps[-1].has_output:
            raise NotAsItWasError("unread", "its output has no rows that can be compared")
        return taught

    # -- what is kept ----------------------------------------------------------------------------------

    def _remove_unfinished(self) -> None:
        """The pairs of those who died before they had learned: other steps will be the same executions."""
        lessons = self._history.lessons(self._question.job)
        done = {lesson.wave for lesson in lessons if lesson.why != _RESERVED}
        for lesson in lessons:
            if lesson.why == _RESERVED and lesson.wave not in done:
                first, until = lesson.wave.split()[1::2]
                self._pairs.remove(job_key(self._question.job), int(first), int(until))

    def _add(self, learned: Experience, why: str, name: str, is_due: Callable[[], bool]) -> int:
        """The number of the row. Raises StoreConflictError where it is not due any more."""
        terms, job = self._terms, self._question.job
        for tries_left in reversed(range(_TRIES)):
            count = self._history.count(job)
            if not is_due():
                break
            row = Wave(
                job=job,
                wave=name,
                number=count,
                time=time.time_ns() // 1_000_000,
                phase=learned.progress.phase,
                decision=LEARNED,
                reason=LEARNED,
                why=why,
                bound=terms.bound,
                confidence=terms.confidence,
                learned=learned.to_json(),
            )
            try:
                self._history.add(row, count)
                return count
            except StoreConflictError:
                if not tries_left:
                    raise
        raise StoreConflictError(
            f"{job!r} was asked about, or learned from, meanwhile: nothing was learned. Try it again"
        )


def _paths(inputs: Sequence[GivenInput]) -> frozenset[str]:
    return frozenset(path for source in inputs for path in (source.paths or (source.name,)))


def _containers(evidence: Evidence, execution: Execution) -> list[tuple[Container, FileLook]]:
    nodes = {path: source.node for source in reversed(evidence.inputs) for path in source.paths}
    places = [
        *((path, nodes.get(path), False) for path in evidence.paths),
        *((output.path, output.node, True) for output in evidence.outputs if output.path is not None),
    ]
    containers = []
    for path, number, is_output in places:
        look, node = evidence.looks[path], None if number is None else execution.nodes.get(number)
        assert isinstance(look, FileLook)
        containers.append((container_of(path, node, is_output=is_output), look))
    return containers


def _is_last(history: WaveHistory, job: str, number: int) -> bool:
    """Has nobody learned anything since the row of this number?"""
    kept = last_experience([*history.waves(job), *history.lessons(job)])
    return kept is not None and kept[0].number == number


def _following(base: Experience, executions: Sequence[Execution]) -> Sequence[Execution]:
    """Those behind the last one that this training has learned from."""
    of_training = [step for step in base.executions() if step.step >= base.progress.since]
    if not of_training:
        return executions
    names = [execution.application_id for execution in executions]
    last = of_training[-1]
    if last.application_id in names:
        return executions[names.index(last.application_id) + 1 :]
    return [execution for execution in executions if execution.began > last.time]
