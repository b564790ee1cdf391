"""Turns events and counts into the rows that a graph store applies.

A row says what shall be true, so rows may be applied twice and in any order: where two events are about the
same thing, a revision decides, and it depends on the events alone. Rows are sorted by id, which is the order
of locks. No I/O.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lineage_service.graph.row_values import (
    EdgeCounts,
    GraphDataError,
    NodeCounts,
    Row,
    clean_text,
    identity,
    natural,
    text_or_none,
)
from spark_agent import contract
from spark_agent.contract.dataset_names import normal_name

__all__ = ["EventRows", "count_rows", "event_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRows:
    """What some events say about the graph. `nodes` holds both ends of every link too, as placeholders."""

    applications: tuple[str, ...]
    started: tuple[Row, ...]
    ended: tuple[Row, ...]
    nodes: tuple[Row, ...]
    links: tuple[Row, ...]

    @property
    def registered(self) -> tuple[str, ...]:
        """Ids of the nodes that are more than placeholders."""
        return tuple(row["nodeId"] for row in self.nodes if row["properties"])


def event_rows(events: Iterable[Mapping[str, Any]]) -> EventRows:
    """The rows of decoded `lineage-node` events; partitions and runs say nothing about the graph.

    Raises GraphDataError.
    """
    started: dict[str, Row] = {}
    ended: dict[str, Row] = {}
    nodes: dict[str, Row] = {}
    ports: dict[tuple[str, str], set[int]] = defaultdict(set)
    applications: set[str] = set()
    for event in events:
        kind = event["type"]
        if kind not in _GRAPH_EVENTS or (kind == contract.LINK and event.get("ids")):
            continue  # a link of ids says how a trace goes, not what sends records to what
        application_id = identity(event["application_id"])
        applications.add(application_id)
        if kind == contract.APPLICATION_STARTED:
            _keep_latest(started, application_id, _start_properties(event), "startRevision")
        elif kind == contract.APPLICATION_ENDED:
            _keep_latest(ended, application_id, _end_properties(event), "endRevision")
        elif kind == contract.NODE_REGISTERED:
            row = _touch(nodes, application_id, event["node"])
            _keep_latest(row, "properties", _node_properties(event), "revision")
        else:
            source = _touch(nodes, application_id, event["source"])
            target = _touch(nodes, application_id, event["target"])
            ports[target["nodeId"], source["nodeId"]].add(natural(event["port"], "port"))
    return EventRows(
        applications=tuple(sorted(applications)),
        started=_application_rows(started),
        ended=_application_rows(ended),
        nodes=_sorted_rows(nodes),
        links=_links({pair: {"ports": sorted(numbers)} for pair, numbers in ports.items()}),
    )


def count_rows(
    application_id: str, records: NodeCounts, flows: EdgeCounts
) -> tuple[tuple[Row, ...], tuple[Row, ...], tuple[Row, ...]]:
    """(nodes touched, record counts, flow counts), from counts by node and by (source, target).

    Raises GraphDataError.
    """
    application_id = identity(application_id)
    nodes: dict[str, Row] = {}
    counted: dict[str, Row] = {}
    for node, count in records.items():
        row = _touch(nodes, application_id, node)
        counted[row["nodeId"]] = {"nodeId": row["nodeId"], "records": natural(count, "records")}
    edges: dict[tuple[str, str], Row] = {}
    for (source, target), count in flows.items():
        ends = (_touch(nodes, application_id, target), _touch(nodes, application_id, source))
        edges[ends[0]["nodeId"], ends[1]["nodeId"]] = {"flows": natural(count, "flows")}
    return _sorted_rows(nodes), _sorted_rows(counted), _links(edges)


# -- what an event says -----------------------------------------------------------------------------

_GRAPH_EVENTS = frozenset(
    (contract.APPLICATION_STARTED, contract.APPLICATION_ENDED, contract.NODE_REGISTERED, contract.LINK)
)
#: Revision -> the property that holds the time of the event that it counts.
_TIME_OF = {"startRevision": "started", "endRevision": "ended", "revision": "registered"}


def _start_properties(event: Mapping[str, Any]) -> Row:
    return {
        "name": clean_text(event["name"]),
        "detailed": event["detailed"],
        "sparkVersion": text_or_none(event, "spark_version"),
        "master": text_or_none(event, "master"),
        "user": text_or_none(event, "user"),
        "started": natural(event["time"], "time"),
    }


def _end_properties(event: Mapping[str, Any]) -> Row:
    try:
        counters = json.dumps(event["counters"], sort_keys=True, ensure_ascii=False)
    except RecursionError:
        raise GraphDataError("application_ended event has counters that are nested too deeply") from None
    is_failed = event.get("state") == contract.FAILED
    error = event.get("error") if is_failed else None
    return {
        "counters": clean_text(counters),
        "ended": natural(event["time"], "time"),
        "state": "failed" if is_failed else "ended",
        "error": None if error is None else clean_text(f"{error['type']}: {error['message']}"),
    }


def _node_properties(event: Mapping[str, Any]) -> Row:
    dataset = event.get("dataset")
    if not isinstance(dataset, Mapping | None):
        raise GraphDataError("node_registered event has a field 'dataset' that is no object")
    place = _with_normal_name(dataset or {})
    operation = event.get("operation")
    return {
        "name": clean_text(event["name"]),
        "description": clean_text(event["description"]),
        "kind": clean_text(event["kind"]),
        "step": event["kind"] == "step",
        "relation": clean_text(event["relation"]),
        "exact": event["exact"],
        "reason": text_or_none(event, "reason"),
        "callSite": text_or_none(event, "call_site"),
        "operation": None if operation is None else natural(operation, "operation"),
        "dataset": text_or_none(place, "name"),
        "datasetNamespace": text_or_none(place, "namespace"),
        "datasetFormat": text_or_none(place, "format"),
        "registered": natural(event["time"], "time"),
    }


def _with_normal_name(dataset: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the dataset is called now, whatever the age of the event."""
    said = [dataset.get(name) or "" for name in ("namespace", "name", "format")]
    if not dataset or not all(isinstance(text, str) for text in said):
        return dataset
    namespace, name = normal_name(*said)
    return {**dataset, "namespace": namespace, "name": name}


def _keep_latest(rows: dict[str, Row], key: str, properties: Row, revision: str) -> None:
    """Put `properties` under `key` unless a later account of the same thing is there.

    Any order will do among accounts of the same millisecond, as long as everyone has the same: a digest of
    what they say ends the revision.
    """
    digest = hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()
    new = {**properties, revision: f"{properties[_TIME_OF[revision]]:019d}-{digest[:12]}"}
    if rows.get(key, {}).get(revision, "") < new[revision]:
        rows[key] = new


# -- rows -------------------------------------------------------------------------------------------


def _touch(nodes: dict[str, Row], application_id: str, node: int) -> Row:
    node_id = contract.node_id(application_id, natural(node, "node"))
    placeholder = {"nodeId": node_id, "applicationId": application_id, "node": node, "properties": {}}
    return nodes.setdefault(node_id, placeholder)


def _application_rows(properties: Mapping[str, Row]) -> tuple[Row, ...]:
    return tuple({"applicationId": key, "properties": properties[key]} for key in sorted(properties))


def _sorted_rows(rows: Mapping[str, Row]) -> tuple[Row, ...]:
    return tuple(rows[key] for key in sorted(rows))


def _links(links: Mapping[tuple[str, str], Row]) -> tuple[Row, ...]:
    """Grouped by target, from properties by (target, source)."""
    return tuple(
        {"nodeId": target, "sources": [{"nodeId": pair[1], **links[pair]} for pair in pairs]}
        for target, pairs in groupby(sorted(links), key=lambda pair: pair[0])
    )
