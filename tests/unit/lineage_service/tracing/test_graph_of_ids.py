"""The graph of an application whose rows only pass its operators: what is not counted is not 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineage_service.graph.event_rows import event_rows
from lineage_service.queries import RecordQuery
from lineage_service.result_json import json_bytes
from lineage_service.tracing.query.service import LineageQueries
from tests.support.id_applications import FILTER, GROUPS, JOIN, OUTPUT, TWO_GROUPINGS, stored, tap
from tests.support.lineage_messages import APP


@pytest.fixture
def questions(tmp_path: Path) -> LineageQueries:
    return LineageQueries(stored(TWO_GROUPINGS, tmp_path), time_budget_s=60)


def test_sources_and_outputs_are_counted_and_what_lies_between_them_is_not(
    questions: LineageQueries,
) -> None:
    graph = questions.graph(APP)
    assert {node.node: node.records for node in graph.nodes} == {
        0: 7,
        1: 2,
        FILTER: None,
        JOIN: None,
        tap(0, 4): None,
        tap(1, 4): None,
        OUTPUT: 3,
    }
    assert all(node.exact for node in graph.nodes)
    assert [(edge.source, edge.target) for edge in graph.edges] == [
        (f"{APP}#{source}", f"{APP}#{target}")
        for source, target in ((0, 2), (1, 3), (2, 3), (3, 14), (14, 24), (24, OUTPUT))
    ]
    # What scans give and what enters groups and an output is seen; what a filter gives is not.
    assert [edge.flows for edge in graph.edges] == [7, 2, None, 4, 2, 3]


def test_the_api_says_null_of_what_is_not_counted(questions: LineageQueries) -> None:
    said = json.loads(json_bytes(questions.graph(APP)))
    assert [node["records"] for node in said["nodes"] if node["node"] == FILTER] == [None]
    assert said["edges"][2]["flows"] is None


def test_an_operation_that_rows_only_pass_lists_no_records_and_says_why(questions: LineageQueries) -> None:
    page = questions.records(APP, RecordQuery(node=str(FILTER)))
    assert (page.total, page.records, page.next) == (None, (), None)
    assert "no records of its own" in page.warnings[0]


def test_links_of_ids_are_no_edges_of_the_graph_in_neo4j(tmp_path: Path) -> None:
    rows = event_rows(stored(TWO_GROUPINGS, tmp_path).events(APP))
    pairs = {(source["nodeId"], row["nodeId"]) for row in rows.links for source in row["sources"]}
    assert (f"{APP}#0", f"{APP}#{FILTER}") in pairs
    assert not pairs & {(f"{APP}#0", f"{APP}#{OUTPUT}"), (f"{APP}#{tap(0, GROUPS)}", f"{APP}#{OUTPUT}")}
    assert len(pairs) == 6 + 2 * 3
