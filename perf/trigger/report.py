"""From what came of waves to a page of Markdown. Values in, text out: measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from lineage_service.triggering.learning.compliance import Compliance
from perf.tables import table
from perf.trigger.cases import PAPER
from perf.trigger.charge import Charge
from perf.trigger.policies import Outcome, Recipe

CONFIDENCE = 0.95
#: Runs of waves, against the oracle's (air quality), and of all (flights, 5 %).
MOST_OF_ORACLE, MOST_OF_FLIGHTS = 1.25, 0.25
#: Waves after a break until a job is back in training.
MOST_WAVES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One step, bound and seed. `cpu_s`: of all policies together. `has_lineage`: were its features worth
    keeping; None: there are none.
    """

    workflow: str
    step: str
    bound: float
    seed: int
    ours: Charge
    others: Sequence[Outcome]
    recipe: Recipe
    cpu_s: float
    has_lineage: bool | None = None

    def by(self, policy: str) -> Outcome:
        return next(outcome for outcome in self.others if outcome.policy == policy)


@dataclass(frozen=True, slots=True)
class BrokenMeasured:
    """A pattern that breaks at `wave`."""

    name: str
    bound: float
    seed: int
    wave: int
    ours: Charge

    @property
    def back_after(self) -> int | None:
        """Waves from the break to the return to training; None: it did not return, or was in training."""
        return next((wave - self.wave for wave, _ in self.ours.returns if wave >= self.wave), None)

    @property
    def was_in_training(self) -> bool:
        """When the pattern broke."""
        returned = max((wave for wave, _ in self.ours.returns if wave < self.wave), default=0)
        return not any(returned < wave < self.wave for wave in self.ours.promotions)


def line(measured: Measured) -> str:
    ours, oracle = measured.ours.outcome, measured.by("oracle")
    returns = f", back to training at {[wave for wave, _ in measured.ours.returns]}" * bool(
        measured.ours.returns
    )
    return (
        f"{measured.workflow}, {measured.step}, {measured.bound:.0%}, seed {measured.seed}: "
        f"{_kept(ours)}, oracle {oracle.runs:.2f}, recipe {_kept(measured.recipe.outcome)}; "
        f"threshold {measured.ours.threshold} {measured.ours.reason}{returns} [{measured.cpu_s} s]"
    )


def broken_line(broken: BrokenMeasured) -> str:
    return f"{broken.name}, {broken.bound:.0%}, seed {broken.seed}: {broken.back_after} {broken.ours.returns}"


def page(about: Mapping[str, Any], measured: Sequence[Measured], broken: Sequence[BrokenMeasured]) -> str:
    sections = [
        "# Triggering: what it saves, and whether it keeps its bound",
        "Made by `python -m perf.trigger`; [README.md](../README.md) says how. Workflows are NumPy twins of "
        "jobs; flights are real. Figures of several seeds are taken together.",
        "\n".join(f"- {name}: {value}" for name, value in about.items()),
        "Runs are shares of the waves in charge. Compliance is the share of waves whose output was within "
        "the bound of what an execution would have written, and, in brackets, its exact lower bound at 95 %.",
        "## In charge",
        _in_charge(measured),
        "## Targets",
        _targets(measured, broken),
        *_lineage_sections(measured),
        "## Policies on the same waves",
        "Runs / compliance. `random` and `every k-th` run as often as ours.",
        _policies(measured),
        "## The paper's recipe",
        "One chain of training, cross-validated in ten shuffled folds; then the same forest in charge.",
        _recipe(measured),
        "## Violations",
        "Errors above the bound that readers met, as multiples of the bound.",
        _violations(measured),
        "## What the product itself knows at the end",
        "Only its audits show what skips hide.",
        _audits(measured),
    ]
    if broken:
        sections += ["## Patterns that break", _breaks(broken)]
    return "\n\n".join(sections) + "\n"


def together(outcomes: Sequence[Outcome]) -> Compliance:
    return Compliance(sum(one.within for one in outcomes), sum(one.waves for one in outcomes))


def _groups(measured: Sequence[Measured]) -> Iterator[tuple[tuple[str, str, float], list[Measured]]]:
    keys = dict.fromkeys((one.workflow, one.step, one.bound) for one in measured)
    for key in keys:
        yield key, [one for one in measured if (one.workflow, one.step, one.bound) == key]


def _in_charge(measured: Sequence[Measured]) -> str:
    rows = []
    for (workflow, step, bound), group in _groups(measured):
        runs = fmean(one.ours.outcome.runs for one in group)
        oracle = fmean(one.by("oracle").runs for one in group)
        began = [one.ours.threshold for one in group]
        rows.append(
            [
                workflow,
                step,
                f"{bound:.0%}",
                f"{runs:.2f}",
                _share(together([one.ours.outcome for one in group])),
                f"{oracle:.2f}",
                f"{runs / oracle:.2f}" if oracle else "-",
                ", ".join("none" if threshold is None else f"{threshold:g}" for threshold in began),
                str(sum(len(one.ours.returns) for one in group)),
            ]
        )
    head = [
        "workflow", "step", "bound", "runs", "compliance", "oracle's runs", "of the oracle's", "thresholds",
        "returns to training",
    ]  # fmt: skip
    return table(head, rows)


def _lineage_sections(measured: Sequence[Measured]) -> list[str]:
    rows = []
    for (_, step, bound), group in _groups([one for one in measured if one.has_lineage is not None]):
        others = [
            one for one in measured if one.has_lineage is None and (one.step, one.bound) == (step, bound)
        ]
        without = [one for one in others if one.seed in {other.seed for other in group}]
        rows.append(
            [
                step,
                f"{bound:.0%}",
                _both([one.ours.outcome for one in without]) if without else "-",
                _both([one.ours.outcome for one in group]),
                _both([one.by("oracle") for one in group]),
                f"{sum(one.has_lineage is True for one in group)} of {len(group)}",
            ]
        )
    if not rows:
        return []
    head = ["step", "bound", "without lineage", "with lineage", "oracle", "seeds that kept its features"]
    says = (
        "Runs / compliance of steps in one job. Features of lineage that saved too little in training went."
    )
    return ["## With lineage and without", says, table(head, rows)]


def _policies(measured: Sequence[Measured]) -> str:
    names = ["oracle", "any change", "rows above the bound", "random", "every"]
    rows = []
    for (workflow, step, bound), group in _groups(measured):
        ours = [one.ours.outcome for one in group]
        rows.append(
            [workflow, step, f"{bound:.0%}", _both(ours)]
            + [_both([one.by(name) for one in group]) for name in names]
        )
    return table(["workflow", "step", "bound", "ours", *names[:-1], "every k-th"], rows)


def _recipe(measured: Sequence[Measured]) -> str:
    rows = []
    for (workflow, step, bound), group in _groups(measured):
        recipes = [one.recipe for one in group]
        rows.append(
            [
                workflow,
                step,
                f"{bound:.0%}",
                *(
                    f"{fmean(getattr(one, name) for one in recipes):.2f}"
                    for name in ("accuracy", "precision", "recall")
                ),
                _both([one.outcome for one in recipes]),
                _both([one.ours.outcome for one in group]),
            ]
        )
    head = ["workflow", "step", "bound", "accuracy", "precision", "recall", "in charge", "ours in charge"]
    return table(head, rows)


def _violations(measured: Sequence[Measured]) -> str:
    rows = []
    for (workflow, step, bound), group in _groups(measured):
        sizes = [size / bound for one in group for size in one.ours.outcome.sizes]
        rows.append(
            [
                workflow,
                step,
                f"{bound:.0%}",
                f"{len(sizes)} of {sum(one.ours.outcome.waves for one in group)}",
                f"{median(sizes):.1f}" if sizes else "-",
                f"{max(sizes):.1f}" if sizes else "-",
                str(max(one.ours.outcome.longest for one in group)),
            ]
        )
    return table(["workflow", "step", "bound", "waves", "median", "largest", "most in a row"], rows)


def _audits(measured: Sequence[Measured]) -> str:
    rows = []
    for (workflow, step, bound), group in _groups(measured):
        seen = [one.ours.audits for one in group if one.ours.audits.waves]
        if seen:
            audits, broken = sum(one.audits for one in seen), sum(one.broken for one in seen)
            lowest = min(one.lower for one in seen)
            truth = _share(together([one.ours.outcome for one in group]))
            rows.append([workflow, step, f"{bound:.0%}", str(audits), str(broken), f"{lowest:.3f}", truth])
    head = ["workflow", "step", "bound", "audits", "of these above", "least lower bound of a job", "truth"]
    return table(head, rows)


def _breaks(broken: Sequence[BrokenMeasured]) -> str:
    rows = [
        [
            one.name,
            f"{one.bound:.0%}",
            str(one.seed),
            "was in training"
            if one.was_in_training
            else "no"
            if one.back_after is None
            else str(one.back_after),
            next((reason for wave, reason in one.ours.returns if wave >= one.wave), "-"),
            _share(one.ours.outcome.compliance),
        ]
        for one in broken
    ]
    head = ["what breaks", "bound", "seed", "waves until training", "reason", "compliance, before and after"]
    return table(head, rows)


def _targets(measured: Sequence[Measured], broken: Sequence[BrokenMeasured]) -> str:
    rows: list[list[str]] = []
    proper = [one for one in measured if one.workflow != "random"]
    for workflow, bound in dict.fromkeys((one.workflow, one.bound) for one in proper):
        group = [one for one in proper if (one.workflow, one.bound) == (workflow, bound)]
        steps = [together([one.ours.outcome for one in of_step]) for _, of_step in _groups(group)]
        runs = fmean(one.ours.outcome.runs for one in group)
        oracle = fmean(one.by("oracle").runs for one in group)
        worst = min(steps, key=lambda step: step.share)
        of = f"{workflow}, {bound:.0%}"
        rows.append(
            [
                f"{of}: compliance of the worst step",
                f"≥ {CONFIDENCE}",
                _share(worst),
                _met(worst.share >= CONFIDENCE),
            ]
        )
        if bound in PAPER.get(workflow, {}):
            paper = PAPER[workflow][bound]
            rows.append(
                [f"{of}: runs, mean of the steps", f"≤ {paper} (paper)", f"{runs:.2f}", _met(runs <= paper)]
            )
        if workflow == "air quality":
            ratio = runs / oracle
            rows.append(
                [
                    f"{of}: runs, of the oracle's",
                    f"≤ {MOST_OF_ORACLE}",
                    f"{ratio:.2f}",
                    _met(ratio <= MOST_OF_ORACLE),
                ]
            )
        if workflow == "flights" and bound == 0.05:
            rows.append([f"{of}: runs", f"≤ {MOST_OF_FLIGHTS}", f"{runs:.2f}", _met(runs <= MOST_OF_FLIGHTS)])
    noise = [one for one in measured if one.workflow == "random"]
    if noise:
        least = min(one.ours.outcome.runs for one in noise)
        rows.append(["random inputs: runs", "1", f"{least:.2f}", _met(least == 1)])
    if broken:
        charged = [one for one in broken if not one.was_in_training]
        within = [one for one in charged if one.back_after is not None and one.back_after <= MOST_WAVES]
        rows.append(
            [f"breaks: back to training within {MOST_WAVES} waves", "all", f"{len(within)} of {len(charged)}",
             _met(len(within) == len(charged))]
        )  # fmt: skip
    return table(["target", "wanted", "here", "met"], rows)


def _kept(outcome: Outcome) -> str:
    return f"{outcome.runs:.2f}/{outcome.compliance.share:.3f}"


def _both(outcomes: Sequence[Outcome]) -> str:
    return f"{fmean(one.runs for one in outcomes):.2f} / {together(outcomes).share:.3f}"


def _share(compliance: Compliance) -> str:
    return f"{compliance.share:.3f} ({compliance.lower:.3f})"


def _met(met: bool) -> str:
    return "yes" if met else "no"
