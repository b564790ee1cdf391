"""At which places of an operation the records are that a trace from other places comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_agent.client.application import Application
from spark_agent.client.http import TraceError
from spark_agent.client.trace_starts import batches_of, query_of, start_of

__all__ = ["Places", "places_at"]

Places = Mapping[int, Sequence[int]]
"""By partition: offsets, in order."""


def places_at(application: Application, number: int, starts: Mapping[int, Places], direction: str) -> Places:
    """In the operation with this node; `starts` by node. Raises TraceError where the answer is not exact."""
    places: dict[int, set[int]] = {}
    named = (
        start_of(node=f"{application.id}#{node}", partition=split, offset=offset)
        for node, of_node in starts.items()
        for split, offsets in of_node.items()
        for offset in offsets
    )
    to = f"{application.id}#{number}"
    for batch in batches_of(named):
        for page in application.client.trace(application.id, direction=direction, to=to, **query_of(batch)):
            if not page["exact"]:
                raise TraceError("it is not known for sure which records of an operation are which")
            for node in page["nodes"]:
                if node["node_id"] == to:
                    for record in node["records"]:
                        places.setdefault(record["partition"], set()).add(record["offset"])
    return {split: sorted(offsets) for split, offsets in places.items()}
