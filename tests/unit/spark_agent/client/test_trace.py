"""Records that a session asks for, over a service that answers in pages."""

from __future__ import annotations

import json
import urllib.parse
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from spark_agent.client.application import Application, normal_path
from spark_agent.client.http import TraceError
from spark_agent.client.lineage_records import LineageRecords, records_of_all

NODE, SOURCE, PAGE = "app#1", "app#0", 3


class Pages:
    """The trace of docs/api.md, of eight records with one key that are all made of one."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact

    def trace(self, application: str, **asked: Any) -> Iterator[dict[str, Any]]:
        assert asked.get("only", NODE) == NODE
        places = range(8) if "key" in asked else [int(asked["record"].split("#")[2])]
        keyed = [{"record_id": f"0#{at}", "partition": 0, "offset": at} for at in places]
        source = [{"record_id": "read#0#0", "partition": 0, "offset": 0}]
        for at in range(0, len(keyed), PAGE):
            yield {
                "start_node": NODE,
                "start": keyed[:PAGE],
                "exact": self.exact,
                "nodes": [
                    {"node_id": NODE, "records": keyed[at : at + PAGE]},
                    {"node_id": SOURCE, "records": [] if at else source},
                ],
            }


def records(*, exact: bool = True) -> LineageRecords:
    nodes = {node: {"node_id": node} for node in (NODE, SOURCE)}
    edges = [{"source": SOURCE, "target": NODE}]
    return LineageRecords(Application(Pages(exact=exact), "app", nodes, edges), frozenset({NODE}))  # type: ignore[arg-type]


def test_all_records_of_a_key_are_there_however_many_pages_they_are() -> None:
    assert records().key("a").count() == 8
    assert records().at(0, 5).collect() == [(NODE, {"record_id": "0#5", "partition": 0, "offset": 5})]


def test_a_bound_says_that_it_is_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert records().key("a").go_back().count() == 1
        assert records(exact=False).key("a").count() == 8
    with pytest.warns(UserWarning, match="is an upper bound"):
        assert records(exact=False).key("a").go_back().count() == 1


@pytest.mark.parametrize("path", ["/data/a#b?c", "file:/data/a#b?c", "file:///data/a%23b%3fc"])
def test_a_file_is_found_whatever_stands_in_its_name(path: str) -> None:
    assert normal_path(path) == "/data/a#b?c"


def offsets_of(place: dict[str, Any]) -> list[int]:
    return place["offsets"] if "offsets" in place else [int(place["record"].split("#")[2])]


class Several:
    """Traces of several starts: each record of node 1 was made of the one of node 0 with its offset."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def trace(self, application: str, **asked: Any) -> Iterator[dict[str, Any]]:
        self.asked.append(asked)
        places = json.loads(asked["starts"]) if "starts" in asked else [asked]
        offsets = sorted({offset for place in places for offset in offsets_of(place)})
        records = [{"record_id": f"0#{at}", "partition": 0, "offset": at} for at in offsets]
        yield {
            "start_node": NODE,
            "start": records,
            "starts": [{"node_id": NODE, "records": records}],
            "exact": True,
            "nodes": [{"node_id": NODE, "records": records}, {"node_id": SOURCE, "records": records}],
        }


def chosen(client: Several, application: str = "app") -> LineageRecords:
    nodes = {node: {"node_id": node} for node in (NODE, SOURCE)}
    edges = [{"source": SOURCE, "target": NODE}]
    return LineageRecords(Application(client, application, nodes, edges), frozenset({NODE}))  # type: ignore[arg-type]


def test_records_that_were_chosen_one_by_one_are_asked_for_at_once() -> None:
    client = Several()
    all_of_them = records_of_all([chosen(client).at(0, at) for at in (3, 8, 3)])
    assert [record["offset"] for _, record in all_of_them.collect()] == [3, 8]
    assert len(client.asked) == 1
    assert [node for node, _ in all_of_them.go_back().collect()] == [SOURCE, SOURCE]
    assert len(client.asked) == 2
    moved = records_of_all([all_of_them.go_back(), chosen(client).at(0, 5)])
    assert {(node, record["offset"]) for node, record in moved.collect()} >= {(NODE, 5)}


def test_many_records_are_a_few_queries() -> None:
    client = Several()
    many = records_of_all([chosen(client).at(0, at) for at in range(9_000)])
    assert many.go_back().count() == 9_000
    assert len(client.asked) == 3
    assert all(len(urllib.parse.urlencode(asked)) < 65_000 for asked in client.asked)


def test_records_of_nothing_and_of_several_applications_are_refused() -> None:
    with pytest.raises(TraceError, match="at least one"):
        records_of_all([])
    with pytest.raises(TraceError, match="several applications"):
        records_of_all([chosen(Several()).at(0, 1), chosen(Several(), "other").at(0, 1)])
