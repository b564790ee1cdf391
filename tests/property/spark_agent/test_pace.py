"""What is booked of a record is never more than it took, and not much less: laws of the looks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, cycle, repeat
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_agent import contract
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker.culprits import Stage
from spark_agent.worker.pace import Look, Looking
from spark_agent.worker.plan import Plan
from spark_agent.worker.position_streams import ComputedCounter
from spark_agent.worker.record_at_hand import AtHand
from spark_agent.worker.slow_records import SlowRecords
from spark_agent.worker.task_run import TaskRun

NODE, SWITCH_S = 1, 0.005
DURATIONS = st.lists(st.floats(0.0005, 0.4), min_size=1, max_size=60)


def a_run(*, is_by_input: bool) -> TaskRun:
    of_agent = AgentSettings(bootstrap_servers="nowhere:1")
    plan = Plan("app", of_agent, 1, input_node=0, reads_shuffle=False, nodes=(NODE,))
    run = TaskRun(plan, 0, None)
    run.stages.append(Stage(NODE, is_by_input=is_by_input))
    return run


def booked(durations: list[float], interval_s: float, *, is_by_input: bool) -> dict[int, float]:
    """The seconds of each record of a task that is looked at so often: its records take these times."""
    run, looking = a_run(is_by_input=is_by_input), Looking(SWITCH_S)
    ends = list(accumulate(durations))
    now = 0.0

    def position() -> int:
        return min(bisect_right(ends, now), len(durations) - 1)

    # Behind a shuffle all inputs have been read before.
    run.inputs = ComputedCounter(lambda: position() + 1 if is_by_input else len(durations))
    while now < ends[-1]:
        looking.look(run, Look(now, 0.0), lambda: AtHand(NODE, position()))
        now += interval_s
    return {at_hand.position: seconds for at_hand, seconds in run.slow._seconds.items()}


@settings(max_examples=60, deadline=None)
@given(DURATIONS, st.floats(0.015, 0.03), st.booleans())
def test_a_record_is_booked_what_it_took_but_for_two_looks(
    durations: list[float], interval_s: float, is_by_input: bool
) -> None:
    seconds = booked(durations, interval_s, is_by_input=is_by_input)
    intervals_lost = 2 if is_by_input else 3  # the first look behind a shuffle only says where it is
    for position, took in enumerate(durations):
        assert seconds.get(position, 0.0) <= took + 1e-9
        assert seconds.get(position, 0.0) >= took - intervals_lost * interval_s - 1e-9


@settings(max_examples=30, deadline=None)
@given(DURATIONS, st.integers(0, 59))
def test_a_record_that_took_long_is_first(durations: list[float], at: int) -> None:
    at %= len(durations)
    durations[at] = 1.0
    seconds = booked(durations, 0.025, is_by_input=True)
    assert max(seconds, key=lambda position: seconds[position]) == at


QUICK_S, SLOW_S, LATEST_S = 0.0001, 0.05, 0.015


def looked_at(slow_at: float, late: Iterator[float]) -> SlowRecords:
    """A task of quick records and one of 50 ms, which begins at that time; looks are late by such times."""
    run, looking = a_run(is_by_input=True), Looking(SWITCH_S)
    now = due = 0.0
    before = int(slow_at / QUICK_S)

    def position() -> int:
        if now < slow_at:
            return int(now / QUICK_S)
        return before + max(int((now - slow_at - SLOW_S) / QUICK_S) + 1, 0)

    run.inputs = ComputedCounter(lambda: position() + 1)
    while now < slow_at + 0.2:
        wait = looking.look(run, Look(now, now - due), lambda: AtHand(NODE, position()))
        due = max(due + wait, now + 0.002)
        now = due + next(late)
    return run.slow


@settings(max_examples=300, deadline=None)
@given(st.floats(0.2, 0.3), st.lists(st.floats(0, LATEST_S), min_size=1, max_size=30))
def test_a_slow_record_among_quick_ones_is_seen_however_late_looks_are(
    slow_at: float, late: list[float]
) -> None:
    (booked_record,) = looked_at(slow_at, cycle(late))._seconds.items()
    at_hand, seconds = booked_record
    assert at_hand.position == int(slow_at / QUICK_S)
    assert 0 < seconds <= SLOW_S


@given(st.floats(0.2, 0.3), st.floats(0, 0.005))
def test_of_a_slow_record_among_quick_ones_most_is_booked(slow_at: float, late: float) -> None:
    (seconds,) = looked_at(slow_at, repeat(late))._seconds.values()
    assert seconds >= SLOW_S / 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0.001, 0.2)), max_size=300))
def test_a_manifest_lists_the_slowest(booked_times: list[tuple[int, float]]) -> None:
    slow, sums = SlowRecords(), dict[int, float]()
    for position, seconds in booked_times:
        slow.book(AtHand(NODE, position), seconds)
        sums[position] = sums.get(position, 0.0) + seconds
    rounded: list[Any] = sorted((-round(1000 * seconds, 9), at) for at, seconds in sums.items())
    expected = [at for ms, at in rounded if round(-ms) >= 10][: contract.MAX_SLOW_RECORDS]
    listed = slow.listed()
    assert [ms for *_, ms in listed] == sorted((ms for *_, ms in listed), reverse=True)
    assert {position for _, position, _ in listed} == set(expected)
