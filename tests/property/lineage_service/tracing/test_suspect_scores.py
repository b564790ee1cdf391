"""Laws of the scores of suspects: none divides by zero, order does not matter, farther is never less odd.

Newt's rule is compared with a second, literal transcription of its figure.
"""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.debugging.associations import Property, associations
from lineage_service.tracing.debugging.means import deviation_bits
from lineage_service.tracing.debugging.newt import outliers
from lineage_service.tracing.debugging.scores import scored
from lineage_service.tracing.debugging.tails import low_bits, upper_bits
from lineage_service.tracing.debugging.tallies import Tally
from lineage_service.tracing.debugging.unit_tallies import _Counted, _counted, _tally

numbers = st.lists(st.integers(0, 60) | st.integers(0, 1 << 40), min_size=1, max_size=40)
jobs = st.lists(numbers, min_size=1, max_size=8)


def tally(values: list[int]) -> Tally:
    return Tally.of(np.array(values, np.int64))


@given(numbers, numbers)
def test_a_tally_is_what_a_list_says(some: list[int], others: list[int]) -> None:
    both = Tally.together((tally(some), tally(others)))
    every = sorted(some + others)
    assert np.repeat(both.values, both.counts).tolist() == every
    assert both.without(tally(others)).values.tolist() == sorted(set(some))
    bound = some[0]
    assert both.at_least(bound) == sum(value >= bound for value in every)
    assert both.at_most(bound) == sum(value <= bound for value in every)
    assert both.mean == pytest.approx(statistics.fmean(every))
    assert both.clipped(bound).total == pytest.approx(float(sum(min(value, bound) for value in every)))


@given(jobs)
def test_every_score_is_a_number_from_0_on(job: list[list[int]]) -> None:
    for score in scored([tally(task) for task in job]):
        assert 0 <= score.tail_bits < math.inf
        assert 0 <= score.mean_bits < math.inf


@given(st.integers(0, 50), st.integers(1, 30), st.integers(1, 8))
def test_equal_tasks_of_equal_units_are_not_odd(value: int, units: int, tasks: int) -> None:
    for score in scored([tally([value] * units)] * tasks):
        assert (score.tail_bits, score.mean_bits) == (0.0, 0.0)


@given(jobs, st.randoms(use_true_random=False))
def test_the_order_of_tasks_and_of_units_does_not_matter(job: list[list[int]], random) -> None:
    order = list(range(len(job)))
    random.shuffle(order)
    plain = scored([tally(task) for task in job])
    mixed = scored([tally(random.sample(job[at], len(job[at]))) for at in order])
    for place, at in enumerate(order):
        assert mixed[place].tail_bits == plain[at].tail_bits
        assert mixed[place].mean_bits == pytest.approx(plain[at].mean_bits, rel=1e-6, abs=1e-6)


@given(numbers, st.integers(1, 100), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_a_larger_unit_is_never_less_odd(others: list[int], units: int, one: int, more: int) -> None:
    among = tally(others)
    assert upper_bits(one + more, units, among) >= upper_bits(one, units, among)
    assert low_bits(one, units, among) >= low_bits(one + more, units, among)
    assert upper_bits(one, units, among) >= upper_bits(one, units + 1, among)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=12), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_mean_that_is_farther_away_is_never_less_odd(
    others: list[float], far: float, farther: float
) -> None:
    middle = statistics.median(others)
    zeros, floors = np.zeros(len(others) + 1), np.full(len(others) + 1, 0.1)

    def bits(distance: float) -> float:
        return deviation_bits(np.array([middle + distance, *others]), zeros, floors)[0]

    assert bits(far + farther) >= bits(far) - 1e-9


def transcribed(selectivities: list[float]) -> list[bool]:
    """Figure 4.2 line by line, over all numbers, with the corrections of bin 0 and of a deviation of 0."""
    mean, deviation = statistics.mean(selectivities), math.sqrt(statistics.pvariance(selectivities))
    if deviation == 0:
        return [False for _ in selectivities]
    distances = [(selectivity - float(mean)) / deviation for selectivity in selectivities]
    number_of_bins = math.ceil(max(distances) - min(distances))
    bins: dict[int, list[int]] = {k: [] for k in range(1, number_of_bins + 1)}
    for i, distance in enumerate(distances):
        bins[max(math.ceil(distance - min(distances)), 1)].append(i)
    mean_size = sum(len(members) for members in bins.values()) / number_of_bins
    is_outlier = [False for _ in selectivities]
    for members in bins.values():
        if len(members) < mean_size / 2:
            for i in members:
                is_outlier[i] = True
    return is_outlier


@given(st.lists(st.integers(0, 100), min_size=1, max_size=80))
def test_newts_rule_is_its_figure_over_selectivities(selectivities: list[int]) -> None:
    among = tally(selectivities)
    odd = dict(
        zip(among.values.tolist(), outliers(among.values.tolist(), among.counts.tolist()), strict=True)
    )
    assert [odd[selectivity] for selectivity in selectivities] == transcribed(list(selectivities))


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=40))
def test_newts_rule_is_its_figure_over_means(means: list[float]) -> None:
    assert outliers(means, [1] * len(means)) == transcribed(means)


@given(st.lists(st.lists(st.integers(0, 300) | st.integers(0, 1 << 50), max_size=30), max_size=6))
def test_units_that_are_counted_in_pieces_are_those_of_the_whole(pieces: list[list[int]]) -> None:
    parts: list[_Counted] = [
        counted for piece in pieces if (counted := _counted(np.array(piece, np.int64))) is not None
    ]
    every = [position for piece in pieces for position in piece]
    units = _tally(parts)
    occurring = {position: every.count(position) for position in every}
    assert np.repeat(units.tally.values, units.tally.counts).tolist() == sorted(occurring.values())
    if occurring:
        assert occurring[units.low] == min(occurring.values())  # type: ignore[index]
        assert occurring[units.high] == max(occurring.values())  # type: ignore[index]


outputs = st.lists(
    st.tuples(st.booleans(), st.lists(st.frozensets(st.sampled_from("abcd")), min_size=1, max_size=4)),
    min_size=2,
    max_size=12,
).filter(lambda some: len({is_bad for is_bad, _ in some}) == 2)


@given(outputs)
def test_associations_count_the_outputs_that_have_a_row_with_all_of_them(
    some: list[tuple[bool, list[frozenset[str]]]],
) -> None:
    rows = [row for _, of_output in some for row in of_output]
    firsts = np.cumsum([0, *(len(of_output) for _, of_output in some)])[:-1].tolist()
    properties = [Property(name, name, np.array([name in row for row in rows])) for name in "abcd"]
    compared = associations(properties, firsts, [is_bad for is_bad, _ in some])
    scores = [one.ochiai for one in compared.associations]
    assert scores == sorted(scores, reverse=True)
    for one in compared.associations:
        parts = set(one.words.split(" and "))
        having = [is_bad for is_bad, of_output in some if any(parts <= row for row in of_output)]
        assert (one.bad, one.good) == (sum(having), len(having) - sum(having))
        total = sum(is_bad for is_bad, _ in some)
        assert one.ochiai == pytest.approx(one.bad / math.sqrt(total * len(having)))
        assert one.g >= -1e-9
        assert len(parts) <= 3
