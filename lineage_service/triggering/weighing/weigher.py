"""A change within a bound: what has changed, what that has meant before, and so whether to run.

With each question about a job, in this order:
 1. What the last execution shows is learned (`execution_labels`).
 2. The inputs are read and kept as they are now.
 3. In training the job runs. In application a forest says how probable an error above the bound is.
What is learned is kept with the answer, and counts only if the answer does. Certain answers stay as they are;
their executions teach, too. What cannot be read or compared is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.triggering.certain.answers import Answer
from lineage_service.triggering.certain.evidence import Evidence
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import FileLook
from lineage_service.triggering.changes.impact import Features
from lineage_service.triggering.learning import phases
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.feature_choice import names_without
from lineage_service.triggering.learning.forest import TriggerExtraError
from lineage_service.triggering.learning.phases import APPLICATION, Policy, Progress, Verdict
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.waves.wave_history import LEARNED, Wave, WaveHistory, job_key
from lineage_service.triggering.weighing.container_rows import RowReader, UnreadRowsError, container_of
from lineage_service.triggering.weighing.element_plans import elements_by_plan, planned_inputs
from lineage_service.triggering.weighing.execution_labels import ExecutionLabels, Impacts, can_fit
from lineage_service.triggering.weighing.execution_lineage import ExecutionLineages
from lineage_service.triggering.weighing.experience import Experience, Step, experience_of_json
from lineage_service.triggering.weighing.kept_elements import KeptElements, KeptPairs, Pair
from lineage_service.triggering.weighing.kept_lessons import KeptLessons
from lineage_service.triggering.weighing.pair_features import between, kept_inputs, seen_input

__all__ = ["Weighed", "Weigher", "last_experience", "progress_in_words"]

#: Reasons for answers that a model gives, or is to give.
REASONS = (
    *("training", "probable", "audit", "closer", "unlike", "old", "tolerated"),
    *("unknown_change", "no_model"),
)
TRAINING, PROBABLE, AUDIT, CLOSER, UNLIKE, OLD, TOLERATED, UNKNOWN, NO_MODEL = REASONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """An answer, and what it rests on. `verdict` None: on no model. `errors` are those of earlier answers, by
    their numbers; `learned` is kept with the answer.
    """

    answer: Answer
    learned: str | None = None
    verdict: Verdict | None = None
    compliance: Compliance | None = None
    errors: Mapping[int, float] = field(default_factory=dict)


class Weigher:
    """Of one flow store, for one question. What it has read, it does not read again."""

    def __init__(
        self,
        history: WaveHistory,
        elements: KeptElements,
        pairs: KeptPairs,
        lessons: KeptLessons,
        lineages: ExecutionLineages,
    ) -> None:
        self._history, self._elements, self._pairs, self._lessons = history, elements, pairs, lessons
        self._labels = ExecutionLabels(elements, pairs, lineages)
        self._tables: dict[tuple[str, str], pa.Table] = {}

    def weigh(self, evidence: Evidence, answer: Answer, number: int) -> Weighed:
        """`number` is that of the answer. Raises InvalidQueryError for terms that do not fit the data."""
        terms = evidence.question.terms
        assert terms is not None
        reader = RowReader(terms.within_s, self._tables)
        learned, why = self.state(evidence, terms), ""
        errors: Mapping[int, float] = {}
        verdict = None
        try:
            learned, errors = self._labels.after(learned, evidence, terms, reader)
            if answer.decision == "run" and evidence.last is not None:
                learned, step, features = self._change(
                    learned, evidence, evidence.last, terms, reader, number
                )
                if not answer.is_final:
                    answer, verdict = self._decided(learned, evidence, answer, step, features)
                    learned = learned.after_verdict(step, verdict)
                else:
                    certain = Verdict(run=True, reason=answer.reason, phase=learned.progress.phase)
                    learned = learned.after_verdict(step, certain)
        except InvalidQueryError:
            raise
        except (LineageError, KeyError) as error:
            why = str(error)
        if why and not answer.is_final:
            answer = Answer("run", UNKNOWN, f"{answer.why} · what that means is not known: {why}")
        return Weighed(
            answer=answer,
            learned=learned.to_json(),
            verdict=verdict,
            compliance=learned.progress.compliance,
            errors=errors,
        )

    def after_past(
        self, learned: Experience, evidence: Evidence, terms: Terms, reader: RowReader
    ) -> Experience:
        """With one more step: an execution that is over, as if it had been asked about and was run.

        `evidence` is as of then: looks at what it read and wrote, and one wave with the number of the step.
        Raises InvalidQueryError for terms that do not fit the data, UnreadRowsError, KeyError.
        """
        assert evidence.last is not None
        number = evidence.waves[-1].number
        learned, step, _ = self._change(learned, evidence, evidence.last, terms, reader, number)
        run = Verdict(run=True, reason=LEARNED, phase=learned.progress.phase)
        learned, _ = self._labels.after(learned.after_verdict(step, run), evidence, terms, reader)
        return learned

    def tested(self, learned: Experience, evidence: Evidence) -> Experience:
        """In charge, if a test is due and is passed."""
        return self._labels.tested(learned, evidence, learned.executions()[-1].step)

    # -- where the job is ----------------------------------------------------------------------------

    def state(self, evidence: Evidence, terms: Terms) -> Experience:
        """What was learned until now, as far as it counts for these terms."""
        lessons = self._history.lessons(evidence.question.job)
        kept = last_experience([*evidence.waves, *lessons])
        policy, digest = terms.policy(), terms.digest()
        if kept is None:
            return Experience(terms=digest, policy=policy)
        newest, learned = kept
        if learned.terms != digest:
            anew = learned.anew(learned.next_step, "errors are measured in another way")
            return replace(anew, terms=digest, policy=policy, plans=(), steps=())
        after = self._history.retrained(evidence.question.job)
        if after is not None and newest.number < after:
            return replace(learned.anew(learned.next_step, "somebody asked for it"), policy=policy)
        is_same = _tested_by(learned.policy) == _tested_by(policy)
        learned = replace(learned, policy=policy)
        if is_same:
            return learned
        # The executions of before teach as much about another bound: only the test is to be made again.
        before, last = learned.progress, learned.executions()[-1:]
        progress = Progress(
            since=before.since, executions=before.executions, reason="another bound is to be kept"
        )
        learned = replace(learned, progress=progress, dropped=())
        return self._labels.tested(learned, evidence, last[0].step) if last else learned

    # -- what has changed ------------------------------------------------------------------------------

    def _change(
        self,
        learned: Experience,
        evidence: Evidence,
        last: Execution,
        terms: Terms,
        reader: RowReader,
        number: int,
    ) -> tuple[Experience, Step, Features | None]:
        """The step of now, and its features since the last execution; None: what that read is not known.

        Raises LineageError.
        """
        at, job = learned.next_step, job_key(evidence.question.job)
        before, outputs = learned.plans_of(outputs=False), learned.plans_of(outputs=True)
        tables = self._inputs(evidence, last, reader)
        plans, inputs = elements_by_plan(tables, before, terms, planned_inputs)
        keys = tuple(terms.keys)
        if keys and outputs and not any(plan.keys == keys for plan in (*plans, *outputs)):
            raise InvalidQueryError(f"--key {','.join(keys)}: no input or output has such a key")
        if plans != before:
            if before:
                learned = replace(learned.anew(at, "the inputs are other ones"), steps=())
            learned = replace(learned, plans=(*plans, *outputs))
        # Of the wave before only its elements, and which columns were coded.
        previous = (
            kept_inputs(self._elements.of(learned.steps[-1].part, has_rows=False)) if learned.steps else {}
        )
        of_outputs = {name for plan in outputs for name in plan.keys}
        containers = [
            seen_input(tables[plan.path], plan, inputs[plan.path], previous.get(plan.path), of_outputs)
            for plan in plans
        ]
        step = Step(
            step=at,
            number=number,
            time=evidence.now_ms,
            part=self._elements.new_part(job, at),
            verdict=Verdict(run=True, reason="", phase=learned.progress.phase),
        )
        reference = learned.step_of(last.application_id)
        features = None
        if reference is not None:
            impacts = Impacts(self._elements, learned.steps).since(reference.step, at)
            own = {one.path: one.impact for one in containers if one.impact is not None}
            kept = self._elements.of(reference.part, has_rows=self._labels.walks(learned))
            features = between(
                plans,
                kept_inputs(kept),
                kept_inputs(containers),
                [*impacts, own],
                self._labels.lineages(learned, reference, kept),
                reference,
                step,
            )
            pair = Pair(reference=reference.step, step=at, number=number, error=None, features=features)
            self._pairs.add(job, [pair])
        self._elements.add(job, {step.part: containers})
        self._elements.clear(job, at - learned.policy.horizon, [one.part for one in learned.steps])
        return learned, step, features

    def _inputs(self, evidence: Evidence, last: Execution, reader: RowReader) -> dict[str, pa.Table]:
        """By path. Raises UnreadRowsError."""
        tables: dict[str, pa.Table] = {}
        for path in evidence.paths:
            look = evidence.looks[path]
            if not isinstance(look, FileLook):
                raise UnreadRowsError(look)
            nodes = [last.nodes.get(source.node) for source in evidence.inputs if path in source.paths]
            container = container_of(path, nodes[0] if nodes else None, is_output=False)
            tables[path] = reader.rows(container, look)
        if not tables:
            raise UnreadRowsError("no input of it is known")
        return tables

    # -- what that means -------------------------------------------------------------------------------

    def _decided(
        self, learned: Experience, evidence: Evidence, answer: Answer, step: Step, features: Features | None
    ) -> tuple[Answer, Verdict]:
        """Raises LineageError."""
        progress, policy = learned.progress, learned.policy
        reference = learned.executions()[-1:] if features is not None else []
        age = step.step - reference[0].step if reference else 0
        probability, expected, unlike = None, None, ""
        is_asked = progress.phase == APPLICATION and features is not None and age <= policy.horizon
        if is_asked and can_fit():
            assert features is not None
            pairs = self._labels.known_pairs(evidence, learned.dropped)
            names = names_without(features.names, learned.dropped)
            if pairs is None or pairs.names != names:
                raise UnreadRowsError("what was learned is of other features")
            row = features.values[[features.names.index(name) for name in names]]
            job = job_key(evidence.question.job)
            probability, expected, unlike = self._lessons.expected(job, progress, pairs, policy, row)
        verdict = phases.verdict(
            progress,
            policy,
            job=evidence.question.job,
            wave=evidence.question.wave or str(step.number),
            age=age,
            probability=probability,
            unlike=unlike,
            expected=expected,
        )
        reason, why = _reason(verdict, progress, policy, features is not None, age)
        if not can_fit():
            reason, why = NO_MODEL, f"{TriggerExtraError()}; {why}"
        sampled = "".join(
            f" · one of {1 << plan.halvings} rows of {plan.path} is looked at"
            for plan in learned.plans
            if plan.halvings
        )
        answer = Answer("run" if verdict.run else "skip", reason, f"{answer.why} · {why}{sampled}")
        return answer, verdict


def last_experience(waves: Iterable[Wave]) -> tuple[Wave, Experience] | None:
    """Of these answers and lessons, in any order, the last one with what was learned until it.

    None: there is none, or another version has written it.
    """
    teaching = (wave for wave in waves if wave.learned is not None)
    newest = max(teaching, key=lambda wave: wave.number, default=None)
    if newest is None:
        return None
    try:
        return newest, experience_of_json(newest.learned or "")
    except (ValueError, TypeError, KeyError):
        return None


def _tested_by(policy: Policy) -> tuple[float, float, int]:
    return policy.bound, policy.confidence, policy.horizon


# -- in words ------------------------------------------------------------------------------------------


def _reason(
    verdict: Verdict, progress: Progress, policy: Policy, is_known: bool, age: int
) -> tuple[str, str]:
    """A word and a sentence."""
    if progress.phase != APPLICATION:
        return TRAINING, _training(progress, policy)
    shown = _shown(progress, policy)
    if not is_known:
        return UNKNOWN, "what its last execution read is not known, so neither is what has changed since"
    if age > policy.horizon:
        return OLD, f"{verdict.reason}, and of more than {policy.horizon} nothing was learned"
    if verdict.is_audit:
        return AUDIT, f"{verdict.reason}: a skip that is run, to see what skips mean · {shown}"
    if verdict.is_unlike:
        return UNLIKE, verdict.reason
    if not verdict.run:
        return TOLERATED, f"{verdict.reason} · {shown}"
    if verdict.probability is not None and verdict.probability < (verdict.threshold or 0):
        return CLOSER, f"{verdict.reason} · {shown}"
    return PROBABLE, f"{verdict.reason} · {shown}"


def progress_in_words(progress: Progress, policy: Policy) -> str:
    """Where a job is, without any wave."""
    if progress.phase == APPLICATION:
        return f"a threshold holds, {phases.threshold_in_words(progress, policy)}: {_shown(progress, policy)}"
    text = _training(progress, policy)
    return text if can_fit() else f"{TriggerExtraError()}; {text}"


def _training(progress: Progress, policy: Policy) -> str:
    if progress.former is not None:
        waves = f"{progress.executions:,} of {phases.executions_wanted(progress, policy):,} waves are done"
        return f"it is run, to see whether what was learned still holds: {waves} ({progress.reason})"
    waves = f"in training, it is run: {progress.executions:,} of {policy.training:,} waves are done"
    if progress.tried:
        return f"{waves}, and the test after {progress.tried:,} failed: {progress.reason}"
    return waves if progress.reason == Progress().reason else f"{waves} ({progress.reason})"


def _shown(progress: Progress, policy: Policy) -> str:
    """What the test showed, and what audits have since."""
    compliance = progress.compliance
    if compliance is None:
        return "no test was made"
    text = (
        f"within {policy.bound:g} in {compliance.share:.1%} of {compliance.waves:,} waves of the test (95 % "
        f"lower bound {compliance.lower:.1%})"
    )
    seen = progress.looks.in_charge()
    if not seen.skips:
        return text
    audits = f"{seen.audits:,} skips looked at, {seen.broken:,} of these above"
    return f"{text}; since then {seen.skips:,} of {seen.waves:,} skipped, {audits}"
