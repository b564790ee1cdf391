"""Starts of traces as queries of the API: the service reads the same starts."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_api.parameters.starts import starts_listed
from lineage_service.queries import StartQuery
from spark_agent.client.trace_starts import Start, queries_of, start_of

numbers = st.integers(0, 2**53 - 1)
rows = st.builds(
    lambda path, row: start_of(path=path, row=row), st.sampled_from(["/a", "/b c,d", 's3a://b/"ä"']), numbers
)
offsets = st.builds(
    lambda node, partition, offset: start_of(node=f"app#{node}", partition=partition, offset=offset),
    st.integers(0, 2),
    st.integers(0, 2),
    numbers,
)
keys = st.builds(lambda key: start_of(node="3", key=key), st.text(max_size=3))


def in_full(start: StartQuery) -> StartQuery:
    """A record id names a node, a partition and an offset."""
    if start.record is None:
        return start
    node, partition, offset = start.record.split("#")
    return StartQuery(node=node, partition=int(partition), offset=int(offset))


def read(query: dict[str, Any]) -> set[StartQuery]:
    starts = starts_listed("starts", query["starts"]) if "starts" in query else [StartQuery(**query)]
    return set(map(in_full, starts))


@given(st.lists(st.one_of(rows, offsets, keys), max_size=40))
def test_the_service_reads_the_starts_that_were_chosen(chosen: list[Start]) -> None:
    queries = list(queries_of(chosen))
    named = [dict(start) for start in chosen]
    full = {StartQuery(**{**one, **({"node": one["node"][-1]} if "node" in one else {})}) for one in named}
    assert set().union(*map(read, queries)) == full
    of_keys = sum("key" in one for one in named)
    assert len(queries) == of_keys + (of_keys < len(named))
