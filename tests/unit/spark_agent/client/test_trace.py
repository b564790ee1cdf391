"""Records that a session asks for, over a service that answers in pages."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from spark_agent.client.application import Application, normal_path
from spark_agent.client.lineage_records import LineageRecords

NODE, SOURCE, PAGE = "app#1", "app#0", 3


class Pages:
    """The trace of docs/api.md, of eight records with one key that are all made of one."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact

    def trace(self, application: str, **asked: Any) -> Iterator[dict[str, Any]]:
        assert asked.get("only", NODE) == NODE
        places = range(8) if "key" in asked else [asked["offset"]]
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
