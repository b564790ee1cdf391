from __future__ import annotations

import pytest

from spark_agent.driver.summaries import ended, started

NOTHING_LOST = {
    "runs": 12,
    "blocks": 24,
    "dropped": 0,
    "spooled": 0,
    "events_lost": 0,
    "queries_failed": 0,
}


def end(problem: str = "", gaps: tuple[str, ...] = (), operations: int = 8, **counters: int) -> str:
    return ended(
        "app",
        operations=operations,
        events=30,
        counters={**NOTHING_LOST, **counters},
        problem=problem,
        gaps=gaps,
    )


def test_the_first_line_says_where_lineage_goes_and_how_to_ask() -> None:
    assert started("local-1", "Takings", "127.0.0.1:9092") == (
        'on for local-1 "Takings", to Kafka at 127.0.0.1:9092; to ask: lineage graph local-1'
    )


def test_a_complete_application_says_what_was_delivered_and_that_the_stores_are_another_matter() -> None:
    assert end() == (
        "complete for app: 8 operations, 12 task runs and 24 blocks of flows delivered to Kafka; "
        "`lineage consume` takes them into the stores"
    )
    assert end(operations=1, runs=1, blocks=0).startswith(
        "complete for app: 1 operation and 1 task run deliv"
    )
    assert end(operations=0, blocks=0) == "nothing to capture in app: no operation ran"


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        (end("no broker", dropped=3), "3 of 24 blocks of flows not delivered to Kafka (no broker)"),
        (end("no broker", events_lost=1), "1 of 30 events not delivered to Kafka (no broker)"),
        (
            end(dropped=24, events_lost=30),
            "24 of 24 blocks of flows and 30 of 30 events not delivered to Kafka",
        ),
        (end(queries_failed=1), "1 query not followed"),
        (end(gaps=("a stream",), queries_failed=2), "not followed: a stream"),
        (end(gaps=("a", "b", "c", "d")), "not followed: a; b (and 2 more)"),
    ],
)
def test_what_is_missing_is_said(line: str, missing: str) -> None:
    assert line == f"incomplete for app: {missing}"


def test_what_waits_in_a_spool_is_not_called_lost() -> None:
    counters = {**NOTHING_LOST, "spooled": 3}
    waiting = ended(
        "app",
        operations=8,
        events=30,
        counters=counters,
        problem="no broker",
        gaps=(),
        spooled_events=1,
        hosts=("h1", "h2"),
    )
    assert waiting == (
        "not delivered yet for app: 3 blocks of flows and 1 event wait on h1, h2 to be delivered (no "
        "broker): the next job with lineage there sends them, and so does `lineage spool deliver`"
    )
