"""What was not followed: each reason once, and never many."""

from __future__ import annotations

import threading

from spark_agent import gaps


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
            target=lambda first=first: [found.add(f"{each}" * 400) for each in range(first, 400, 4)]
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
