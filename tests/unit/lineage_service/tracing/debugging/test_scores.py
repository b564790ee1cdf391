"""Scores of tasks: what stands out does, and jobs without anything odd seldom raise an alarm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from lineage_service.tracing.debugging.findings import FALSE_ALARMS, threshold
from lineage_service.tracing.debugging.scores import Scored, scored
from lineage_service.tracing.debugging.tallies import Tally

pytestmark = pytest.mark.unit

Draw = Callable[[np.random.Generator, int], npt.NDArray[np.int64]]
PLAIN: dict[str, Draw] = {
    "constant": lambda _random, size: np.ones(size, np.int64),
    "binomial": lambda random, size: random.binomial(10, 0.3, size),
    "many": lambda random, size: random.poisson(100, size),
    "geometric": lambda random, size: random.geometric(0.3, size),
    "filter": lambda random, size: random.binomial(1, 0.12, size),
    "seldom twice": lambda random, size: 1 + random.binomial(1, 0.001, size),
    "heavy": lambda random, size: (1 + random.pareto(1.5, size)).astype(np.int64),
    "zipf": lambda random, size: np.minimum(random.zipf(1.5, size), 10**9),
}


def job(random: np.random.Generator, draw: Draw, tasks: int = 7) -> list[npt.NDArray[np.int64]]:
    return [draw(random, int(random.integers(50, 400))) for _ in range(tasks)]


def scores(tasks: list[npt.NDArray[np.int64]]) -> list[Scored]:
    return scored([Tally.of(task) for task in tasks])


@pytest.mark.parametrize("name", PLAIN)
def test_of_a_hundred_jobs_without_anything_odd_at_most_5_raise_an_alarm(name: str) -> None:
    alarms = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        operations = [scores(job(random, PLAIN[name])) for _ in range(3)]
        every = [score for operation in operations for score in operation]
        needed = threshold(sum(score.tests for score in every))
        alarms += any(score.bits >= needed for score in every)
    assert alarms <= 100 / FALSE_ALARMS


def test_tasks_that_differ_by_nature_raise_few_alarms() -> None:
    """Each task's share of what is kept is drawn anew: by half the share, or by three times."""
    alarms = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        shares = np.minimum(0.05 * np.exp(random.normal(0, 1, 12)), 0.99)
        tasks = [random.binomial(1, share, 800) for share in shares]
        every = scores(tasks)
        alarms += any(score.bits >= threshold(sum(one.tests for one in every)) for score in every)
    assert alarms <= 5


@pytest.mark.parametrize(("name", "more"), [("constant", 5), ("binomial", 20), ("geometric", 300)])
def test_one_unit_with_many_more_makes_its_task_the_oddest(name: str, more: int) -> None:
    random = np.random.default_rng(1)
    tasks = [PLAIN[name](random, 400) for _ in range(12)]
    tasks[4][17] += more
    every = scores(tasks)
    assert max(range(12), key=lambda at: every[at].bits) == 4
    extreme = every[4].extreme
    assert extreme is not None
    assert (extreme.value, extreme.is_low) == (tasks[4][17], False)
    assert every[4].bits >= threshold(sum(score.tests for score in every))


def test_a_task_alone_is_compared_with_its_own_units() -> None:
    (score,) = scores([np.array([1] * 50 + [30])])
    assert score.tail_bits > 10
    assert (score.mean_bits, score.tests) == (0.0, 2)


def test_heavy_tails_hide_what_is_not_heavier() -> None:
    random = np.random.default_rng(3)
    tasks = [PLAIN["heavy"](random, 400) for _ in range(12)]
    tasks[4][17] += 10
    every = scores(tasks)
    assert all(score.bits < threshold(36) for score in every)


def test_a_task_that_keeps_another_share_has_an_odd_mean() -> None:
    random = np.random.default_rng(5)
    tasks = [random.binomial(1, 0.12 if at != 3 else 0.9, 1_000) for at in range(12)]
    every = scores(tasks)
    assert max(range(12), key=lambda at: every[at].mean_bits) == 3
    assert every[3].mean_bits >= threshold(36)


def test_several_tasks_unlike_the_others_are_not_odd_one_by_one() -> None:
    random = np.random.default_rng(6)
    tasks = [random.binomial(1, 0.9 if at in (3, 5, 8) else 0.01, 1_000) for at in range(12)]
    assert all(score.mean_bits < 4 for score in scores(tasks))
