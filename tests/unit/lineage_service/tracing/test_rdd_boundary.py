"""Records that cross from an RDD into a plan and back are followed within the task that computed both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lineage_service.graph_export.application_reader import TooManyFlows, application_graph
from lineage_service.lineage import Direction, Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.boundary_application import ROWS, SINKS, SOURCE, TWO_ACTIONS, BorderApplication
from tests.support.lineage_messages import APP


def traced(
    application: BorderApplication, folder: Path, direction: Direction, place: tuple[int, int, int]
) -> Trace:
    node, split, offset = place
    folder.mkdir(exist_ok=True)
    questions = LineageQueries(application.stored(folder), time_budget_s=60)
    query = TraceQuery(direction=direction, node=str(node), partition=split, offset=offset)
    return questions.trace(APP, query)


def places(trace: Trace, *nodes: int) -> set[tuple[int, int, int]]:
    return {
        (node, record.partition, record.offset)
        for operation in trace.nodes
        for node in nodes
        if operation.node_id == contract.node_id(APP, node)
        for record in operation.records
    }


@pytest.mark.parametrize("place", TWO_ACTIONS.truth())
def test_each_record_comes_from_what_its_own_attempt_read(
    place: tuple[int, int, int], tmp_path: Path
) -> None:
    trace = traced(TWO_ACTIONS, tmp_path, "backward", place)
    assert trace.exact
    assert places(trace, SOURCE) == {(SOURCE, *TWO_ACTIONS.truth()[place])}


@pytest.mark.parametrize("source", [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)])
def test_a_record_goes_to_all_that_read_it_and_no_further_than_they_read(
    source: tuple[int, int], tmp_path: Path
) -> None:
    trace = traced(TWO_ACTIONS, tmp_path, "forward", (SOURCE, *source))
    assert trace.exact
    assert places(trace, *SINKS) == {place for place, of in TWO_ACTIONS.truth().items() if of == source}


def test_rows_of_a_plan_that_nobody_told_of_are_not_exact(tmp_path: Path) -> None:
    first, *others = TWO_ACTIONS.attempts
    untold = BorderApplication((replace(first, is_told=False), *others))
    # Another attempt's rows stand for them, which are more than were read: nobody knows better.
    alone = BorderApplication((replace(first, is_told=False),))
    assert traced(untold, tmp_path / "1", "backward", (5, 1, 0)).exact
    assert not traced(alone, tmp_path / "2", "backward", (5, 0, 0)).exact


def test_the_records_of_a_plan_count_once(tmp_path: Path) -> None:
    questions = LineageQueries(TWO_ACTIONS.stored(tmp_path), time_budget_s=60)
    records = {node.node: node.records for node in questions.graph(APP).nodes}
    assert records == {0: 6, 1: 6, 2: None, ROWS: 5, 4: 5, 5: 4, 6: 5}


def test_the_whole_application_says_that_its_actions_saw_other_orders(tmp_path: Path) -> None:
    store = TWO_ACTIONS.stored(tmp_path)
    found = application_graph(open_application(stored_files(store, APP), APP, store.events(APP)), 1_000)
    assert not isinstance(found, TooManyFlows)
    assert not found.is_exact
