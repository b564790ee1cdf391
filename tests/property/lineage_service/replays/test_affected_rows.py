"""What can change without some rows: the rows that are run again give the whole result with the rest."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.lineage import Edge, Graph, Node
from lineage_service.replays.affected_rows import AffectedRows, check_operations
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.specification import Plan
from spark_agent.contract.row_sets import ranges_of, rows_in
from tests.support.keyed_jobs import BY_KEY, BY_RECORD, JobQueries, JobRun, Pair

ORIGINAL, REPLAY = "original", "replay"
OPERATIONS = st.lists(st.sampled_from(sorted(BY_RECORD | BY_KEY)), min_size=1, max_size=6)  # type: ignore[operator]
ROWS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 9)), min_size=1, max_size=30)


def left_out(rows: set[int]) -> Plan:
    ranges = ranges_of(rows)
    source = {
        "node": 0,
        "name": "textFile",
        "whole": False,
        "splits": [{"split": 0, "positions": ranges}],
        "files": [{"path": "/source", "rows": ranges}],
    }
    return Plan(mode="without", sources=(source,))


def replayed(operations: list[str], plan: Plan, rows: list[Pair]) -> JobRun:
    assert plan.mode == "only"
    [source] = plan.sources
    numbers = [row for split in source["splits"] for row in rows_in(split["positions"])]
    assert numbers == [row for file in source["files"] for row in rows_in(file["rows"])]
    return JobRun(operations, [(row, rows[row]) for row in numbers])


@settings(max_examples=250)
@given(OPERATIONS, ROWS, st.sets(st.integers(0, 29), min_size=1, max_size=3))
def test_the_affected_rows_give_what_all_others_give(
    operations: list[str], rows: list[Pair], some: set[int]
) -> None:
    gone = {row for row in some if row < len(rows)} or {0}
    queries = JobQueries(operations)
    original = queries.runs[ORIGINAL] = JobRun(operations, list(enumerate(rows)))
    expected = JobRun(operations, [(at, row) for at, row in enumerate(rows) if at not in gone])
    reader = AffectedRows(queries, ORIGINAL, queries, Arrival(queries, wait_s=1))  # type: ignore[arg-type]
    plan = left_out(gone)
    affected = reader.begin(plan)
    rounds = 0
    while True:
        rounds += 1
        assert rounds <= 1 + len(rows)
        queries.runs[REPLAY] = replayed(operations, affected.plan, rows)
        more = reader.more(plan, affected, REPLAY)
        if more is None:
            break
        assert more.rows > affected.rows
        affected = more
    [before] = affected.outputs.values()
    assert list(affected.totals.values()) == [len(original.outputs())]
    kept = Counter(original.outputs())
    kept.subtract(Counter(before))
    assert min(kept.values(), default=0) >= 0
    assert +kept + Counter(queries.runs[REPLAY].outputs()) == Counter(expected.outputs())


def test_a_group_that_a_changed_count_enters_is_added() -> None:
    """Without one of two words, the number of words that are there once is another one."""
    operations, rows = ["count", "by number", "sum"], [("a", 1), ("b", 1), ("b", 1), ("c", 1)]
    queries = JobQueries(operations)
    queries.runs[ORIGINAL] = JobRun(operations, list(enumerate(rows)))
    reader = AffectedRows(queries, ORIGINAL, queries, Arrival(queries, wait_s=1))  # type: ignore[arg-type]
    affected = reader.begin(left_out({1}))
    assert {row for _, _, row in affected.rows} == {1, 2}
    queries.runs[REPLAY] = replayed(operations, affected.plan, rows)
    more = reader.more(left_out({1}), affected, REPLAY)
    assert more is not None
    assert {row for _, _, row in more.rows} == {0, 1, 2, 3}


def graph(*nodes: tuple[str, str], exact: bool = True, records: int | None = 1) -> Graph:
    """A chain of these (name, kind)."""
    made = [
        Node(
            node_id=f"app-1#{number}",
            node=number,
            name=name,
            description="",
            kind=kind,  # type: ignore[arg-type]
            call_site=f"/jobs/job.py:{number + 1}",
            exact=exact or kind != "operator",
            reason="",
            dataset=None,
            records=records,
            has_values=False,
        )
        for number, (name, kind) in enumerate(nodes)
    ]
    edges = tuple(
        Edge(source=before.node_id, target=after.node_id, flows=None) for before, after in pairwise(made)
    )
    return Graph(application_id="app-1", nodes=tuple(made), edges=edges)


SOURCE, SINK = ("textFile", "source"), ("saveAsTextFile", "sink")


@pytest.mark.parametrize(
    ("job", "options", "why"),
    [
        ((SOURCE, ("join", "operator"), SINK), {}, r"join \(job.py:2\) may change what no flow leads to"),
        ((SOURCE, ("subtract", "operator"), SINK), {}, "subtract"),
        ((SOURCE, ("zipWithIndex", "operator"), SINK), {}, "zipWithIndex"),
        ((SOURCE, ("mapPartitions", "operator"), SINK), {}, "mapPartitions"),
        ((SOURCE, ("map", "operator"), ("collect", "sink")), {}, r"collect \(job.py:3\) gives the program"),
        ((("parallelize", "source"), SINK), {}, "parallelize"),
        ((SOURCE, ("map", "operator"), SINK), {"exact": False}, "map .* is not exact"),
        ((SOURCE, SINK), {"records": None}, "it is not known how many rows"),
    ],
)
def test_what_may_change_records_without_a_flow_is_refused_by_name(job: Any, options: Any, why: str) -> None:
    with pytest.raises(ReplayError, match=why):
        check_operations(graph(*job, **options), [0])


def test_operations_of_other_sources_are_none_of_its_business() -> None:
    one = graph(SOURCE, ("map", "operator"), SINK, ("textFile", "source"), ("collect", "sink"))
    unlinked = Graph(
        application_id=one.application_id,
        nodes=one.nodes,
        edges=tuple(edge for edge in one.edges if edge.target != "app-1#3"),
    )
    assert set(check_operations(unlinked, [0])) == {0, 1, 2}
