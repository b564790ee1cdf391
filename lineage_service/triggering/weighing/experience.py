"""What a job with a bound has learned until an answer: kept with the answer, as JSON. Pure.

A step is a wave that may have changed something: waves at which nothing changed are none, so ages count
changes. Elements are kept of the last steps only, as many as the horizon has; pairs are kept of all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lineage_service.triggering.learning.phases import Policy, Progress, Verdict, progress_of_json, skipped
from lineage_service.triggering.weighing.element_plans import Plan, plan_of_json

__all__ = ["Experience", "Step", "experience_of_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`number` is that of the answer, `time` when it was asked (Unix ms), `part` where its elements are.

    `application_id` is the execution that followed; None: none has, as far as it is known. `has_output`: its
    output is kept in the same part.
    """

    step: int
    number: int
    time: int
    part: str
    verdict: Verdict
    application_id: str | None = None
    has_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """`terms` is a digest of how errors are measured, `code` of what runs. `steps` ascend; `next_step` is the
    number of the one to come. `executed` is the last execution that was looked at. `dropped`: groups of
    features that the test found to save nothing.
    """

    terms: str
    policy: Policy
    progress: Progress = field(default_factory=Progress)
    code: str | None = None
    plans: tuple[Plan, ...] = ()
    steps: tuple[Step, ...] = ()
    next_step: int = 0
    executed: str | None = None
    dropped: tuple[str, ...] = ()

    def executions(self) -> list[Step]:
        """The steps that executions followed."""
        return [step for step in self.steps if step.application_id is not None]

    def step_of(self, application_id: str) -> Step | None:
        return next((step for step in self.steps if step.application_id == application_id), None)

    def plans_of(self, *, outputs: bool) -> list[Plan]:
        return [plan for plan in self.plans if plan.is_output == outputs]

    def anew(self, since: int, why: str) -> Experience:
        """In training, from this step on."""
        return replace(
            self, dropped=(), progress=Progress(since=since, reason=f"training has begun anew: {why}")
        )

    def with_step(self, step: Step) -> Experience:
        """In place of the one of its number."""
        return replace(self, steps=tuple(step if one.step == step.step else one for one in self.steps))

    def after_verdict(self, step: Step, verdict: Verdict) -> Experience:
        """With the step to come; of earlier ones with those that it may be compared with."""
        progress = self.progress if verdict.run else skipped(self.progress)
        oldest = step.step - self.policy.horizon
        last = self.executions()[-1:]
        kept = [one for one in self.steps if one.step >= oldest or one in last]
        return replace(
            self,
            progress=progress,
            steps=(*kept, replace(step, verdict=verdict)),
            next_step=step.step + 1,
        )

    def to_json(self) -> str:
        kept: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN}
        return json.dumps(
            {
                **kept,
                "policy": asdict(self.policy),
                "progress": self.progress.to_json(),
                "plans": [plan.to_json() for plan in self.plans],
                "steps": [asdict(step) for step in self.steps],
            }
        )


_PLAIN = ("terms", "code", "next_step", "executed", "dropped")


def experience_of_json(text: str) -> Experience:
    """Raises ValueError, TypeError or KeyError of what another version wrote."""
    kept: Mapping[str, Any] = json.loads(text)
    steps: Sequence[Mapping[str, Any]] = kept["steps"]
    return Experience(
        **{
            **kept,
            "policy": Policy(**kept["policy"]),
            "progress": progress_of_json(kept["progress"]),
            "dropped": tuple(kept["dropped"]),
            "plans": tuple(plan_of_json(plan) for plan in kept["plans"]),
            "steps": tuple(Step(**{**step, "verdict": Verdict(**step["verdict"])}) for step in steps),
        }
    )
