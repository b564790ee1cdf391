"""Starts of traces as queries of the API."""

from __future__ import annotations

import itertools
import json
import urllib.parse

import pytest

from spark_agent.client.trace_starts import PLAIN, batches_of, queries_of, query_of, start_of


def test_records_of_one_place_are_named_by_their_numbers() -> None:
    chosen = [start_of(path="/out", row=row) for row in (7, 3, 7)]
    chosen += [start_of(node="app#3", partition=2, offset=offset) for offset in (5, 1)]
    chosen += [start_of(node="app#4", partition=0, offset=6)]
    [query] = queries_of(chosen)
    assert json.loads(query["starts"]) == [
        {"path": "/out", "rows": [3, 7]},
        {"node": "3", "partition": 2, "offsets": [1, 5]},
        {"record": "4#0#6"},
    ]


@pytest.mark.parametrize("path", ["/data/out/part-00000", "/" + "a/" * 1_000, "/ä" * 400])
def test_no_address_is_too_long(path: str) -> None:
    chosen = [start_of(path=f"{path}{at % 60}", row=10**9 + at) for at in range(12_000)]
    assert sum(map(len, batches_of(chosen))) == 12_000
    assert all(len(urllib.parse.urlencode(query, safe=PLAIN)) < 52_000 for query in queries_of(chosen))


def test_what_is_near_is_asked_for_together() -> None:
    chosen = [start_of(path=f"/out/part-{at % 30:05}", row=at) for at in range(10_000)]
    batches = list(batches_of(chosen))
    assert [len(batch) for batch in batches] == [4_000, 4_000, 2_000]
    places = [dict(start)["path"] for batch in batches for start in batch]
    assert sum(one != other for one, other in itertools.pairwise(places)) == 29
    assert query_of(batches[0][:1]) == {"path": "/out/part-00000", "row": 0}
