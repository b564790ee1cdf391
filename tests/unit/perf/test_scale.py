"""perf.scale: simulated days lose nothing and repeat themselves, and the page says what the result says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf.ingest import report
from perf.scale import paper
from perf.scale.__main__ import BEGIN, END, replaced
from perf.scale.day import Day, Model, simulate
from tests.support.ingest_results import grown, measured

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"
RESULTS = Path(__file__).parents[3] / "perf" / "results"

#: An hour with ten jobs, of 100 messages a second on average in the minutes in which there are any.
HOUR = Model(
    jobs=10,
    messages_a_job=30_000,
    job_s=300,
    burst=0.3,
    partitions=7,
    messages_per_s=60.0,
    mtbf_s=600,
    restart_s=60,
    day_s=3_600,
)
NEVER = 1e12


@pytest.fixture(scope="module", params=[1, 2, 3, 7])
def day(request: pytest.FixtureRequest) -> Day:
    return simulate(HOUR, request.param)


def test_what_was_sent_is_stored_once_or_waits(day: Day):
    assert day.sent[-1].sum() == HOUR.jobs * HOUR.messages_a_job
    assert day.stored[-1].sum() + day.waiting[-1] == day.sent[-1].sum()
    assert (day.stored <= day.sent).all()


def test_nothing_that_was_stored_is_taken_back(day: Day):
    assert (np.diff(day.stored, axis=0) >= 0).all()


def test_no_consumers_take_more_than_they_can(day: Day):
    most = day.consumers * HOUR.messages_per_s * HOUR.step_s
    assert np.diff(day.stored.sum(axis=1)).max() <= most + day.consumers
    assert 0 < day.busy <= 1


def test_a_seed_makes_one_day_and_another_seed_another(day: Day):
    again = simulate(HOUR, day.consumers)
    assert (again.stored == day.stored).all()
    assert again.failures == day.failures
    assert (simulate(replace(HOUR, seed=2), day.consumers).sent != day.sent).any()


def test_enough_consumers_have_all_of_it_when_a_job_ends():
    day = simulate(replace(HOUR, mtbf_s=NEVER, messages_per_s=1e6), 3)
    assert day.failures == 0
    assert day.waiting.max() == 0
    assert day.queryable_s() == [0.0] * HOUR.jobs


def test_consumers_that_fail_leave_more_waiting_and_lose_nothing():
    steady = simulate(replace(HOUR, mtbf_s=NEVER), 4)
    failing = simulate(replace(HOUR, mtbf_s=200), 4)
    assert failing.failures > 0
    assert failing.waiting.max() > steady.waiting.max()
    assert failing.stored[-1].sum() + failing.waiting[-1] == failing.sent[-1].sum()


def test_a_job_is_queryable_when_its_last_message_is_stored():
    sent = np.array([[4, 0], [4, 2], [4, 2], [4, 2]])
    stored = np.array([[1, 0], [2, 2], [4, 2], [4, 2]])
    model = replace(HOUR, partitions=2, step_s=10.0)
    found = Day(model=model, consumers=1, sent=sent, stored=stored, job_ends=[1], failures=0, busy=0.5)
    assert found.queryable_s() == [10.0]
    assert found.waiting.tolist() == [3, 2, 0, 0]


# -- on paper ----------------------------------------------------------------------------------------


def test_needs_are_what_was_measured_times_the_bytes_of_a_day():
    each = measured(input_bytes=1_000, flows=1_000, seconds=11.0)
    result = report.Result(about={}, measured=[each, *grown(1.0)])
    (shape,) = paper.shapes(result)
    assert shape.flows_per_s == 100.0  # eleven seconds, of which one is the start
    need = paper.need(shape, 86_400_000.0)
    assert need.flows == 86_400_000.0
    assert (need.busy, need.consumers) == (pytest.approx(10.0), 17)
    assert need.messages == pytest.approx(864_000.0)
    assert need.in_per_s == pytest.approx(400.0)
    assert need.broker_bytes == pytest.approx(3 * 0.4 * 86_400_000)
    assert need.store_bytes == pytest.approx(0.4 * 86_400_000)
    assert need.files == pytest.approx(86_400_000 / (1_000 / 6))


def test_only_one_consumer_into_the_flow_store_makes_a_rate():
    others = [measured(consumers=2), measured(stores=report.BOTH), measured(kind=report.BESIDE), *grown(1.0)]
    assert paper.shapes(report.Result(about={}, measured=others)) == []


def test_a_day_of_one_job_is_busier_while_it_runs_and_gets_partitions_for_it():
    result = report.Result(about={}, measured=[measured(seconds=11.0), *grown(1.0)])
    (shape,) = paper.shapes(result)
    day = 86_400.0 * 1_000  # bytes for ten consumers
    even = paper.model_of(shape, day, jobs=100, job_s=1_800.0)
    alone = paper.model_of(shape, day, jobs=1, job_s=21_600.0)
    assert (even.partitions, alone.partitions) == (60, 180)
    assert even.jobs * even.messages_a_job == alone.messages_a_job
    assert paper.busy_in(paper.need(shape, day), 1, 21_600.0) == pytest.approx(40.0)


def test_sizes_and_times_are_said_in_words():
    assert [paper.in_words(size) for size in (12, 1.5e6, 2e12)] == ["12 bytes", "1.5 MB", "2 TB"]
    assert [paper.duration(each) for each in (40, 600, 36_000)] == ["40 s", "10 min", "10.0 h"]


# -- the page ----------------------------------------------------------------------------------------


def test_new_tables_leave_the_rest_of_the_page_alone():
    page = f"before\n{BEGIN}\n\nold\n\n{END}\nafter\n"
    assert replaced(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(SystemExit, match="lacks the marks"):
        replaced("before", "new")


def test_the_page_says_what_the_result_that_it_names_says():
    page = PAGE.read_text()
    named = re.search(r"From \[perf/results/(\S+\.json)\]", page)
    assert named is not None
    result = report.from_json(json.loads((RESULTS / named[1]).read_text()))
    found = paper.shapes(result)
    made = paper.needs_table(found, 10 * paper.TB)
    assert made in page, f"make it anew: python -m perf.scale --ingest perf/results/{named[1]} --write {PAGE}"
