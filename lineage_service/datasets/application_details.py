"""How many rows each use of an application has, and whether it is exact: what its task runs say. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lineage_service.datasets.counted_rows import RowCounts
from lineage_service.datasets.upstream import Upstream
from lineage_service.datasets.uses import UseDetails
from spark_agent import contract

__all__ = ["details_of"]

Event = Mapping[str, Any]


def details_of(events: Iterable[Event], uses: Collection[int]) -> Mapping[int, UseDetails]:
    """Of these nodes of an application, by all its events; of those that are registered."""
    in_order = sorted(events, key=lambda event: (event["time"], event.get("event", 0)))
    nodes = {event["node"]: event for event in in_order if event["type"] == contract.NODE_REGISTERED}
    ended = {event["node"]: event for event in in_order if event["type"] == contract.ACTION_ENDED}
    links = [event for event in in_order if event["type"] in (contract.LINK, contract.DRIVER)]
    runs = [event for event in in_order if event["type"] == contract.RUN_COMMITTED]
    upstream = Upstream(nodes, links)
    counts = RowCounts(nodes, upstream.parents)
    for run in runs:
        counts.add(run)
    followed = _followed(runs)
    details = {}
    for number in sorted(nodes.keys() & uses):
        reported = ended.get(number, {}).get("rows")
        rows = reported if isinstance(reported, int) else counts.of(number)
        unclear = [node for node in upstream.behind({number}) if not _is_exact(nodes[node], followed)]
        reason = (nodes[max(unclear)].get("reason") or "") if unclear else ""
        details[number] = UseDetails(rows, not unclear, reason)
    return details


def _followed(runs: Sequence[Event]) -> frozenset[int]:
    """The nodes of which every run followed each row, though the node could not promise it."""
    followed = {node for run in runs for node in run.get("overridden") or ()}
    others = {node for run in runs for node in {*run["nodes"]} - {*(run.get("overridden") or ())}}
    return frozenset(followed - others)


def _is_exact(node: Event, followed: frozenset[int]) -> bool:
    is_followed = node["relation"] == contract.PARTITION and node["node"] in followed
    return bool(node["exact"]) or is_followed
