"""What the last execution of a job shows: how wrong its output would be had it not run.

Its output is read when the job is asked about the next time: as it stands, before it is replaced. Compared
with those of earlier executions, it labels pairs of waves. Nothing is learned of an execution that nobody
asked about before, of one whose inputs were written after they were looked at, and of an output that somebody
else changed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.certain.answers import output_change
from lineage_service.triggering.certain.evidence import Evidence
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import FileLook
from lineage_service.triggering.changes.impact import Impact
from lineage_service.triggering.dependence.lineage_features import PREFIX, Lineage
from lineage_service.triggering.learning import phases
from lineage_service.triggering.learning.feature_choice import feature_choice, names_without
from lineage_service.triggering.learning.phases import APPLICATION
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.learning.training_pairs import TrainingPairs
from lineage_service.triggering.waves.wave_history import job_key
from lineage_service.triggering.weighing.container_rows import RowReader, UnreadRowsError, container_of
from lineage_service.triggering.weighing.element_plans import elements_by_plan, planned_outputs
from lineage_service.triggering.weighing.execution_lineage import ExecutionLineages
from lineage_service.triggering.weighing.experience import Experience, Step
from lineage_service.triggering.weighing.kept_elements import KeptContainer, KeptElements, KeptPairs, Pair
from lineage_service.triggering.weighing.pair_features import Errors, between, kept_inputs, seen

__all__ = ["ExecutionLabels", "Impacts", "can_fit"]

ErrorsByNumber = Mapping[int, float]


def can_fit() -> bool:
    """Is scikit-learn installed? It is not imported before it is needed."""
    return importlib.util.find_spec("sklearn") is not None


class Impacts:
    """Of the steps of a job, each from the one before, by path."""

    def __init__(self, elements: KeptElements, steps: Sequence[Step]) -> None:
        self._elements, self._steps = elements, steps
        self._known: dict[int, Mapping[str, Impact]] = {}

    def since(self, reference: int, until: int) -> list[Mapping[str, Impact]]:
        """Of the steps behind the reference, up to this one."""
        steps = [step for step in self._steps if reference < step.step <= until]
        for step in steps:
            if step.step not in self._known:
                self._known[step.step] = self._elements.impacts(step.part)
        return [self._known[step.step] for step in steps]


class ExecutionLabels:
    """Of one flow store."""

    def __init__(self, elements: KeptElements, pairs: KeptPairs, lineages: ExecutionLineages) -> None:
        self._elements, self._pairs, self._lineages = elements, pairs, lineages

    def after(
        self, learned: Experience, evidence: Evidence, terms: Terms, reader: RowReader
    ) -> tuple[Experience, ErrorsByNumber]:
        """What is learned then, and the errors that it shows, by the numbers of the answers that were run.

        Raises InvalidQueryError for terms that the output does not fulfil, StoreUnavailableError.
        """
        last = evidence.last
        if last is None or last.application_id == learned.executed or last.state != "ended":
            return learned, {}
        learned = replace(learned, executed=last.application_id)
        wave = evidence.wave_before(last)
        step = next((one for one in learned.steps if wave is not None and one.number == wave.number), None)
        if wave is None or step is None or step.application_id is not None:
            return learned, {}
        if not last.completeness.is_complete or _is_later(evidence, wave.time):
            return learned, {}
        step = replace(step, application_id=last.application_id)
        code = wave.code or last.code
        if learned.code is not None and code != learned.code:
            learned = learned.anew(step.step, "the code has changed")
        learned = replace(learned, code=code)
        tables = self._outputs(evidence, last, terms, reader)
        if not tables:
            return self._executed(learned, step, math.nan).with_step(step), {}
        before = learned.plans_of(outputs=True)
        plans, outputs = elements_by_plan(tables, before, terms, planned_outputs)
        if not outputs:  # none with rows has the column
            return self._executed(learned, step, math.nan).with_step(step), {}
        if before and plans != before:
            learned = learned.anew(step.step, "the output is another one")
        learned = replace(learned, plans=(*learned.plans_of(outputs=False), *plans))
        containers = [seen(tables[plan.path], plan, outputs[plan.path]) for plan in plans]
        pairs, error = self._compared(learned, terms, step, containers)
        job = job_key(evidence.question.job)
        self._elements.add(job, {step.part: containers})
        self._pairs.add(job, pairs)
        step = replace(step, has_output=True)
        learned = self._executed(learned, step, math.nan if error is None else error).with_step(step)
        learned = self.tested(learned, evidence, step.step)
        return learned, {} if error is None else {step.number: error}

    def walks(self, learned: Experience) -> bool:
        """Are features of lineage used?"""
        return PREFIX not in learned.dropped

    def lineages(
        self, learned: Experience, reference: Step, containers: Sequence[KeptContainer]
    ) -> Mapping[str, Lineage]:
        """Of the execution at a step, by path, as far as its features are used. `containers`: of the step."""
        if not self.walks(learned):
            return {}
        return self._lineages.of(reference, containers, learned.plans_of(outputs=True))

    def tested(self, learned: Experience, evidence: Evidence, step: int) -> Experience:
        """In charge, if a test is due and is passed; `step` is the last execution's.

        Features of lineage stay only where that test shows that they save runs.
        """
        progress, policy = learned.progress, learned.policy
        if not phases.is_test_due(progress, policy) or not can_fit():
            return learned
        # What was learned before an alarm is tested with the features that it had.
        pairs = self.known_pairs(evidence, learned.dropped if progress.former is not None else ())
        if pairs is None:
            return learned
        if progress.former is not None:
            return replace(learned, progress=phases.promoted(progress, policy, pairs, step))
        choice = feature_choice(pairs.where(pairs.references >= progress.since), policy, [PREFIX])
        progress = phases.promoted(progress, policy, pairs.with_features(choice.names), step, choice.test)
        dropped = choice.dropped if progress.phase == APPLICATION else ()
        return replace(learned, progress=progress, dropped=dropped)

    def known_pairs(self, evidence: Evidence, dropped: Sequence[str]) -> TrainingPairs | None:
        """Of all executions; errors that people said count before those that were measured. Without the
        features that were dropped.
        """
        said = {wave.number: wave.said for wave in evidence.waves if wave.said is not None}
        pairs = self._pairs.of(job_key(evidence.question.job), said)
        return None if pairs is None else pairs.with_features(names_without(pairs.names, dropped))

    def _executed(self, learned: Experience, step: Step, error: float) -> Experience:
        """In training only what was compared counts, since it has begun."""
        is_of_training = step.has_output and step.step >= learned.progress.since
        if learned.progress.phase != APPLICATION and not is_of_training:
            return learned
        progress = phases.executed(
            learned.progress, learned.policy, step.verdict, wave=step.step, error=error
        )
        return replace(learned, progress=progress)

    def _outputs(
        self, evidence: Evidence, last: Execution, terms: Terms, reader: RowReader
    ) -> dict[str, pa.Table]:
        """Empty where one of them cannot be read, or was changed by others since."""
        compared = [output for output in evidence.outputs if output.path is not None]
        if terms.outputs:
            compared = [output for output in compared if _is_named(output.path or "", terms.outputs)]
            if not compared:
                names = ", ".join(output.path or output.name for output in evidence.outputs)
                raise InvalidQueryError(f"--output {', '.join(terms.outputs)}: it wrote {names or 'nothing'}")
        tables: dict[str, pa.Table] = {}
        for output in compared:
            look = evidence.looks[output.path or ""]
            if not isinstance(look, FileLook) or output_change(output, evidence, last) is not None:
                return {}
            node = last.nodes.get(output.node)
            try:
                tables[look.path] = reader.rows(container_of(look.path, node, is_output=True), look)
            except UnreadRowsError:
                return {}
        return tables

    def _compared(
        self, learned: Experience, terms: Terms, step: Step, outputs: Sequence[KeptContainer]
    ) -> tuple[list[Pair], float | None]:
        """The pairs with earlier executions, and the error that the one before it would have left."""
        progress = learned.progress
        before = [
            one for one in learned.executions() if one.has_output and progress.since <= one.step < step.step
        ]
        if not before:
            return [], None
        now = kept_inputs(self._elements.of(step.part))
        impacts = Impacts(self._elements, learned.steps)
        pairs: list[Pair] = []
        error = None
        with Errors(terms, learned.plans_of(outputs=True)) as errors:
            for reference in before:
                then = self._elements.of(reference.part)
                error = errors.between(then, outputs)
                if error is None or step.step - reference.step > learned.policy.horizon:
                    continue
                features = between(
                    learned.plans_of(outputs=False),
                    kept_inputs(then),
                    now,
                    impacts.since(reference.step, step.step),
                    self.lineages(learned, reference, then),
                    reference,
                    step,
                )
                pairs.append(
                    Pair(
                        reference=reference.step,
                        step=step.step,
                        number=step.number,
                        error=error,
                        features=features,
                    )
                )
        return pairs, error


def _is_later(evidence: Evidence, asked: int) -> bool:
    """Did the execution read anything that was written after its inputs were looked at?"""
    return any(
        modified is not None and modified > asked
        for source in evidence.inputs
        for _, modified in source.files.values()
    )


def _is_named(path: str, names: Sequence[str]) -> bool:
    ends = [name.strip().rstrip("/") for name in names]
    return any(path == end or path.endswith(f"/{end}") for end in ends)
