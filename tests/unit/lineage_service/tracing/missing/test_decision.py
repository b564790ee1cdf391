"""Operators that are named because what they compute was computed again for the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lineage_service.lineage import Column, Dataset, SourceRow
from lineage_service.tracing.missing.decision import EndedRecord, dropped_at
from lineage_service.tracing.missing.droppers import Candidate
from lineage_service.tracing.model.elements import TopologyNode

AMOUNT, TAG = {"column": 11, "name": "amount"}, {"column": 12, "name": "tag"}
LARGE = {"condition": {"of": "GreaterThan", "inputs": [AMOUNT, {"type": "int", "value": "5"}]}}
JOIN = {"join": "Inner", "condition": {"of": "EqualTo", "inputs": [TAG, {"column": 21, "name": "key"}]}}
SCAN = {"columns": [[10, 11, 12]], "options": {"sep": ","}}
COLUMNS = tuple(
    Column(name=name, type=type) for name, type in (("id", "int"), ("amount", "int"), ("tag", "string"))
)


def node(number: int, name: str, expressions: Any, *parents: int, **more: Any) -> TopologyNode:
    fields: dict[str, Any] = {
        **{"description": "", "kind": "operator", "relation": "carried", "exact": True, "reason": ""},
        **{"call_site": "", "dataset": None, "partitions": {}},
    }
    return TopologyNode(
        number=number, name=name, expressions=expressions, parents=parents, **{**fields, **more}
    )


def plan(format: str = "csv", **scan: Any) -> Mapping[int, TopologyNode]:
    """A scan, a filter over it, and a join of that with another scan."""
    dataset = Dataset(namespace="file", name="/data", format=format)
    source = {"kind": "source", "relation": "source", "schema": COLUMNS, "dataset": dataset, "by_id": True}
    nodes = [
        node(0, "Scan", {**SCAN, **scan}, **source),
        node(1, "Scan", None, **source),
        node(2, "Filter", LARGE, 0),
        node(3, "Project", {"defined": []}, 2),
        node(4, "Join", JOIN, 3, 1),
    ]
    return {one.number: one for one in nodes}


def asked(nodes: Mapping[int, TopologyNode], text: str, **more: Any) -> tuple[int, str] | None:
    row = SourceRow(path="/data", row=0, line=1, text=text, warning=more.pop("warning", None))
    candidates = [Candidate(nodes[2]), Candidate(nodes[4], 0)]
    one = dropped_at(nodes, EndedRecord(nodes[0], row, **more), candidates)
    return None if one.candidate is None else (one.candidate.node.number, one.why)


def test_the_filter_or_the_join_is_named_by_the_values_of_the_row() -> None:
    assert asked(plan(), "1,3,x") == (2, "not amount > 5, since amount is 3")
    assert asked(plan(), "1,9,x") == (4, "no row of the other side has key = 'x'")
    assert asked(plan("parquet"), '{"id": 1, "amount": 9, "tag": "x"}') == (
        4,
        "no row of the other side has key = 'x'",
    )


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("1,nine,x", {}),
        ("1,9", {}),
        ('1,9,x"y', {}),
        ("1,9,x…", {}),
        ("1,9,\ufffd", {}),
        ("1,3,x", {"warning": "the file has changed since the run"}),
        ("1,9,x", {"is_unread": True}),  # the task may have ended before it came to this row
    ],
)
def test_nothing_is_named_where_it_is_not_sure(text: str, more: Any) -> None:
    assert asked(plan(), text, **more) is None


def test_a_scan_that_was_left_by_its_filter_is_named() -> None:
    assert asked(plan(), "1,3,x", is_unread=True) == (2, "not amount > 5, since amount is 3")


def test_of_a_scan_that_stands_in_the_plan_twice_each_time_must_say_the_same() -> None:
    assert asked(plan(columns=[[10, 11, 12], [20, 19, 21]]), "1,3,x") is None
    assert asked(plan(columns=[[10, 11, 12], [10, 11, 12]]), "1,3,x") == (
        2,
        "not amount > 5, since amount is 3",
    )


def test_a_row_that_comes_by_two_ways_is_not_decided() -> None:
    nodes = {**plan(), 3: node(3, "Union", None, 2, 2)}
    assert asked(nodes, "1,3,x") is None
