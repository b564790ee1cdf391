"""What is booked of a record is never more than it took, and not much less: laws of the looks."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
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
