"""What was not followed: each reason once, and never many."""

from __future__ import annotations

import threading

from spark_agent.driver import gaps


def test_each_reason_is_told_once_with_the_first_node() -> None:
    told: list[tuple[str, int | None]] = []
    found = gaps.Gaps(lambda reason, node: told.append((reason, node)))
    for node in range(3):
        found.add("a stream is not followed", node)
    found.add("no jar")
    assert told == [("a stream is not followed", 0), ("no jar", None)]
    assert found.reasons == ["a stream is not followed", "no jar"]


def test_many_reasons_end_with_one_that_says_that_there_are_more() -> None:
    told: list[str] = []
    found = gaps.Gaps(lambda reason, node: told.append(reason))
    threads = [
        threading.Thread(
            target=lambda first=first: [found.add(f"{number}" * 400) for number in range(first, 400, 4)]
        )
        for first in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == gaps.MOST + 1 == len(set(told))
    assert told[-1].startswith(f"more than {gaps.MOST} different things")
    assert max(map(len, told)) <= 500


def test_a_run_that_no_action_asks_for_is_noticed() -> None:
    runs = gaps.UnclaimedRuns()
    assert not runs.has_any()
    runs.publish(1)
    runs.add((3, 4))
    assert runs.has_any()


def test_a_run_is_claimed_by_an_action_before_it_or_behind_it() -> None:
    runs = gaps.UnclaimedRuns()
    runs.publish(1)
    runs.add((0, 1))
    runs.add((3, 4))
    runs.publish(4)
    assert not runs.has_any()


def test_a_run_of_a_job_that_a_transformation_runs_for_itself_needs_no_action() -> None:
    runs = gaps.UnclaimedRuns()
    runs.begin_inner_job()
    runs.add((0, 1))
    runs.end_inner_job()
    assert not runs.has_any()
    runs.add((0, 1))
    assert runs.has_any()
