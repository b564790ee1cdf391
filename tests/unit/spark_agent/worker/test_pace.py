"""The thread that looks which record a task is at, in a process of its own kind: without Spark."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.pace import INTERVAL_S, Look, Looking
from spark_agent.worker.position_streams import ComputedCounter
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.record_at_hand import AtHand
from spark_agent.worker.slow_records import SlowRecords
from spark_agent.worker.task_run import TaskRun
from tests.support.observed_chains import run_chain

LONG_S = 0.2
PLANTED = 17
#: What takes longer than it should is no fault: the records beside it take next to nothing.
RECORDS = range(40)


def sleeping(record: int) -> int:
    if record == PLANTED:
        time.sleep(LONG_S)
    return record


def in_python(record: int) -> int:
    if record == PLANTED:
        until = time.thread_time() + LONG_S  # however many others want the processor
        while time.thread_time() < until:
            pass
    return record


def in_one_call(record: int) -> int:
    """A match that cannot be, in one call of C that keeps Python's lock."""
    if record == PLANTED:
        taken, length = 0.0, 16
        while taken < LONG_S:
            begin = time.thread_time()
            re.match("(a+)+b", "a" * length)
            taken, length = time.thread_time() - begin, length + 1
    return record


def by_row(rows: Iterable[int]) -> Iterator[int]:
    for row in rows:
        if row == PLANTED:
            time.sleep(LONG_S)
        yield row


def first(manifest: dict[str, Any]) -> tuple[int, int]:
    """(node, position) of the slowest record."""
    node, position, _ = manifest["slow"][0]
    return node, position


@pytest.mark.parametrize("function", [sleeping, in_python, in_one_call])
def test_the_record_that_took_long_is_first(function: Any) -> None:
    assert first(run_chain(RECORDS, [Map(str), Map(int), Map(function)], pace=True)) == (3, PLANTED)


def test_other_operators_are_timed_too() -> None:
    assert first(run_chain(RECORDS, [Map(str), Map(int), Filter(sleeping)], pace=True)) == (3, PLANTED)
    assert first(run_chain(RECORDS, [FlatMap(lambda at: [sleeping(at)] * 3)], pace=True)) == (1, PLANTED)
    chain = [FlatMap(lambda at: [at] * 2), Map(sleeping)]
    assert first(run_chain(RECORDS, chain, pace=True))[0] == 2


def test_a_function_of_a_partition_is_at_its_row() -> None:
    chain = [Map(lambda record: record), lambda _partition, rows: by_row(rows)]
    assert first(run_chain(RECORDS, chain, pace=True)) == (2, PLANTED)


def test_a_task_that_waits_for_its_input_has_no_slow_record() -> None:
    def records() -> Iterator[int]:
        for record in RECORDS:
            yield sleeping(record)

    assert "slow" not in run_chain(records(), [Map(lambda record: record)], pace=True)


def test_without_the_setting_nothing_is_timed() -> None:
    assert "slow" not in run_chain(RECORDS, [Map(sleeping)])


def test_a_program_sees_no_thread() -> None:
    before = threading.enumerate()
    run_chain(RECORDS, [Map(sleeping)], pace=True)
    assert threading.enumerate() == before


def test_the_thread_waits_between_tasks() -> None:
    run_chain(RECORDS, [Map(sleeping)], pace=True)
    pace = worker_process.pace
    assert pace is not None
    deadline = time.monotonic() + 60
    while not pace._is_parked:
        assert time.monotonic() < deadline
        time.sleep(INTERVAL_S)
    assert first(run_chain(RECORDS, [Map(sleeping)], pace=True)) == (1, PLANTED)


# -- single looks --------------------------------------------------------------------------------------


def looked(run: TaskRun, *looks: Look, at: int = 3) -> list[tuple[AtHand, float]]:
    looking = Looking(0.005)
    for look in looks:
        looking.look(run, look, lambda: AtHand(1, at))
    return [(at_hand, round(seconds, 6)) for at_hand, seconds in run.slow._seconds.items()]


@pytest.fixture
def run() -> TaskRun:
    """Of a chain of one map, at its fourth record."""
    runs: list[TaskRun] = []

    def function(record: int) -> int:
        if record == 3:
            assert worker_process.run is not None
            runs.append(worker_process.run)
        return record

    records = iter(range(10))
    run_chain(records, [Map(function)])
    (run,) = runs
    run.slow = SlowRecords()
    return run


def test_one_look_books_nothing(run: TaskRun) -> None:
    assert looked(run, Look(1.0, 0.0)) == []


def test_a_task_that_reads_fewer_records_than_usual_is_looked_at_soon(run: TaskRun) -> None:
    looking, at = Looking(0.005), [0.0, 0]

    def look(records: int) -> float:
        at[0], at[1] = at[0] + INTERVAL_S, int(at[1] + records)
        run.inputs = ComputedCounter(lambda: int(at[1]))
        return looking.look(run, Look(at[0], 0.0), lambda: AtHand(1, 3))

    assert {look(1_000) for _ in range(30)} == {INTERVAL_S}
    waits = [look(500), look(0), look(0), look(0), look(0)]
    assert waits == sorted(waits)
    assert waits[0] < INTERVAL_S == waits[-1]
    assert look(1_000) == INTERVAL_S
    assert run.slow._seconds.keys() == {AtHand(1, 3)}


def test_a_task_of_few_records_is_looked_at_at_even_times(run: TaskRun) -> None:
    looking, read = Looking(0.005), [0]
    run.inputs = ComputedCounter(lambda: read[0])
    for at in range(30):
        read[0] += at % 3 == 0
        assert looking.look(run, Look(at * INTERVAL_S, 0.0), lambda: AtHand(1, 3)) == INTERVAL_S


def test_a_late_look_counts_only_as_far_as_the_lock_was_kept() -> None:
    early = Look(1.0, 0.0, waits=10)
    late = Look(1.12, 0.1, waits=12)  # it slept and got the lock at once: it had no processor
    kept = Look(1.30, 0.1, waits=12 + 2 + 20)
    assert Looking(0.005)._kept_lock(late, early) == 0.0
    assert Looking(0.005)._kept_lock(kept, late) == pytest.approx(0.095)


def test_what_kept_the_lock_before_the_first_look_counts(run: TaskRun) -> None:
    looking = Looking(0.005, begun=Look(1.0, 0.0, waits=7))
    looking.look(run, Look(1.12, 0.12, waits=7 + 2 + 20), lambda: AtHand(1, 3))
    assert {at: round(seconds, 6) for at, seconds in run.slow._seconds.items()} == {AtHand(1, 3): 0.095}


@pytest.mark.parametrize(("waited", "booked"), [(0.1, 0.075), (0.15, 0.05)])
def test_a_record_has_what_it_kept_the_lock_but_not_more_than_the_task_ran(
    run: TaskRun, waited: float, booked: float
) -> None:
    read, waits = [1], iter([1.0, 1.0 + waited])
    run.inputs = ComputedCounter(lambda: read[0])
    looking = Looking(0.005, lambda: next(waits), begun=Look(1.98, 0.0))
    looking.look(run, Look(2.0, 0.02, waits=22), lambda: AtHand(1, 2))
    read[0] = 2
    looking.look(run, Look(2.2, 0.18, waits=22 + 2 + 16), lambda: AtHand(1, 3))
    assert round(run.slow._seconds[AtHand(1, 3)], 6) == booked


def test_waits_for_a_processor_do_not_count(run: TaskRun) -> None:
    waits = iter([1.0, 1.03])
    looking = Looking(0.005, lambda: next(waits))
    for look in (Look(2.0, 0.0), Look(2.02, 0.0), Look(2.07, 0.0, preempted=5)):
        looking.look(run, look, lambda: AtHand(1, 3))
    ((at_hand, seconds),) = run.slow._seconds.items()
    assert (at_hand, round(seconds, 6)) == (AtHand(1, 3), 0.02)


def test_time_that_other_programs_had_does_not_count(run: TaskRun) -> None:
    looks = (Look(1.0, 0.0, used=0.5), Look(1.02, 0.0, used=0.5), Look(1.06, 0.0, preempted=1, used=0.51))
    assert looked(run, *looks) == [(AtHand(1, 3), 0.01)]
