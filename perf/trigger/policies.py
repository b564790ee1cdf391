"""Who decides about waves: the oracle, and those that know nothing of outputs. Beside ours, on the same
waves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import Flags
from lineage_service.triggering.learning.closed_loop import Grid, Play, play
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.forest import RandomForest
from lineage_service.triggering.learning.training_pairs import TrainingPairs
from perf.trigger.waves import Job

FOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A policy in charge of so many waves. `sizes`: of errors above the bound; `longest`: in a row."""

    policy: str
    runs: float
    within: int
    waves: int
    sizes: Sequence[float]
    longest: int

    @property
    def compliance(self) -> Compliance:
        return Compliance(self.within, self.waves)


def outcome(policy: str, played: Play, bound: float) -> Outcome:
    above = played.errors > bound
    longest = streak = 0
    for wave in above:
        streak = streak + 1 if wave else 0
        longest = max(longest, streak)
    return Outcome(
        policy=policy,
        runs=round(played.share, 4),
        within=int((~above).sum()),
        waves=len(above),
        sizes=[round(float(size), 4) for size in played.errors[above]],
        longest=longest,
    )


def others(job: Job, bound: float, training: int, horizon: int, share: float, seed: int) -> list[Outcome]:
    """The policies that need no forest. `share`: of the waves that ours runs, which random and every k-th
    take.
    """
    errors = Grid(job.pairs, job.pairs.errors, horizon)
    waves, last = range(training, job.waves), training - 1
    chance = np.random.default_rng(seed).random(job.waves)
    every = max(round(1 / max(share, 1 / horizon)), 1)
    policies = {
        "oracle": lambda reference, wave: errors.at(reference, wave) > bound,
        "any change": lambda reference, wave: bool(job.any_change[reference + 1 : wave + 1].any()),
        "rows above the bound": lambda reference, wave: job.rows[reference + 1 : wave + 1].sum() > bound,
        "random": lambda reference, wave: chance[wave] < share,
        f"every {every}": lambda reference, wave: wave - reference >= every,
    }
    return [
        outcome(name.split()[0] if name.startswith("every") else name, play(waves, last, errors, runs), bound)
        for name, runs in policies.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The paper's: one chain of virtual executions, cross-validated in shuffled folds, then in charge."""

    accuracy: float
    precision: float
    recall: float
    outcome: Outcome


def recipe(job: Job, bound: float, training: int, horizon: int, seed: int) -> Recipe:
    """Features as the paper's: Eq. 1, Eq. 2 and the age; the forest decides at 0.5."""
    pairs = _paper_features(job.pairs)
    chain = _chain(pairs, bound, training, horizon)
    labels = chain.labels(bound)
    predicted = _cross_validated(chain, bound, seed)
    hits = int((predicted & labels).sum())
    forest = RandomForest(chain.features, labels, seed)
    probabilities = Grid(pairs, forest.probability(pairs.features), horizon)
    played = play(
        range(training, job.waves),
        training - 1,
        Grid(pairs, pairs.errors, horizon),
        lambda reference, wave: probabilities.at(reference, wave) >= 0.5,
    )
    return Recipe(
        accuracy=round(float((predicted == labels).mean()), 4),
        precision=round(hits / max(int(predicted.sum()), 1), 4),
        recall=round(hits / max(int(labels.sum()), 1), 4),
        outcome=outcome("paper's recipe", played, bound),
    )


def _paper_features(pairs: TrainingPairs) -> TrainingPairs:
    chosen = [
        at
        for at, name in enumerate(pairs.names)
        if name == "waves_since" or name.endswith((".impact", ".relative_impact"))
    ]
    names = tuple(pairs.names[at] for at in chosen)
    return TrainingPairs(names, pairs.references, pairs.waves, pairs.features[:, chosen], pairs.errors)


def _chain(pairs: TrainingPairs, bound: float, training: int, horizon: int) -> TrainingPairs:
    """One pair a wave: from the virtual execution before, which there is whenever the bound was exceeded."""
    errors = Grid(pairs, pairs.errors, horizon)
    reference, chain = 0, set()
    for wave in range(1, training):
        chain.add((reference, wave))
        if errors.at(reference, wave) > bound or wave - reference >= horizon:
            reference = wave
    of_chain = [pair in chain for pair in zip(pairs.references.tolist(), pairs.waves.tolist(), strict=True)]
    return pairs.where(np.array(of_chain))


def _cross_validated(chain: TrainingPairs, bound: float, seed: int) -> Flags:
    fold = np.random.default_rng(seed).permutation(len(chain)) % FOLDS
    predicted = np.zeros(len(chain), bool)
    for at in range(FOLDS):
        inside = fold == at
        forest = RandomForest(chain.features[~inside], chain.labels(bound)[~inside], seed)
        predicted[inside] = forest.probability(chain.features[inside]) >= 0.5
    return predicted
