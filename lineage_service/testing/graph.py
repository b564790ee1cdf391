"""The in-memory twin of the graph in Neo4j: the same rows applied to plain dictionaries.

Promises the graph that Neo4jGraph makes of the same calls, property by property; one behaviour suite runs on
both. Nodes and links are as in docs/neo4j.md. For tests, demonstrations and programs without a Neo4j: it
keeps everything in memory and forgets it at the end. Threads may share it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

from lineage_service.graph.application_rows import (
    ApplicationGraph,
    all_flows,
    application_link_batches,
    application_record_batches,
    flows_on_request,
)
from lineage_service.graph.event_rows import count_rows, event_rows
from lineage_service.graph.row_values import EdgeCounts, NodeCounts, Row
from lineage_service.graph.trace_rows import GraphRecord, link_batches, record_batches

_DID = {"source": "reads", "sink": "writes"}


class MemoryGraph:
    """A GraphStore. A node or link is its properties; a property that is not set is not there."""

    def __init__(self) -> None:
        self.applications: dict[str, Row] = {}  # by applicationId
        self.nodes: dict[str, Row] = {}  # by nodeId
        self.sends_to: dict[tuple[str, str], Row] = {}  # by (source nodeId, target nodeId)
        self.flows: dict[str, Row] = {}  # by flowId
        self.flow_links: set[tuple[str, str]] = set()  # (source flowId, target flowId)
        self._claims: dict[str, str] = {}  # by applicationId
        self._lock = Lock()

    def migrate(self) -> tuple[str, ...]:
        return ()

    def write_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        rows = event_rows(events)
        with self._lock:
            for application_id in rows.applications:
                self._application(application_id)
            for row in rows.started:
                application = self._application(row["applicationId"])
                _assign_later(application, row["properties"], "startRevision")
                if "ended" not in application:
                    application["state"] = "running"
            for row in rows.ended:
                application = self._application(row["applicationId"])
                _assign_later(application, row["properties"], "endRevision")
                if "flows" not in application:
                    application |= {"flows": "not yet", "flowsBudget": -1}
            self._upsert_nodes(rows.nodes)
            for target, source in _pairs(rows.links):
                link = self._send(source["nodeId"], target["nodeId"])
                link["ports"] = sorted({*link.get("ports", ()), *source["ports"]})
            self._describe(rows.registered)

    def write_counts(self, application_id: str, records: NodeCounts, flows: EdgeCounts) -> None:
        nodes, counted, links = count_rows(application_id, records, flows)
        with self._lock:
            if nodes:
                self._application(application_id)
            self._upsert_nodes(nodes)
            for row in counted:
                self.nodes[row["nodeId"]]["records"] = row["records"]
            for target, source in _pairs(links):
                self._send(source["nodeId"], target["nodeId"])["flows"] = source["flows"]

    def write_trace(
        self, application_id: str, records: Sequence[GraphRecord], links: Sequence[tuple[str, str]]
    ) -> None:
        batches, link_rows = record_batches(application_id, records), link_batches(records, links)
        with self._lock:
            if batches:
                self._application(application_id)
            for group in (group for batch in batches for group in batch):
                self._upsert_flows(application_id, group)
            for row in (row for batch in link_rows for row in batch):
                self.flow_links |= {(source, row["flowId"]) for source in row["sources"]}

    def pending(self, max_flows: int) -> tuple[str, ...]:
        with self._lock:
            return tuple(name for name in self.applications if self._is_pending(name, max_flows))

    def claim(self, application_id: str, max_flows: int) -> str | None:
        """Whoever writes here lives as long as the graph, so a claim does not end by itself."""
        with self._lock:
            if application_id in self._claims or not self._is_pending(application_id, max_flows):
                return None
            self._claims[application_id] = uuid.uuid4().hex
            return self._claims[application_id]

    def count_application(
        self, application_id: str, claim: str, records: NodeCounts, flows: EdgeCounts
    ) -> bool:
        _, counted, links = count_rows(application_id, records, flows)
        with self._lock:
            if self._claims.get(application_id) != claim:
                return False
            for row in counted:
                if row["nodeId"] in self.nodes:
                    self.nodes[row["nodeId"]]["records"] = row["records"]
            for target, source in _pairs(links):
                if target["nodeId"] in self.nodes and source["nodeId"] in self.nodes:
                    self._send(source["nodeId"], target["nodeId"])["flows"] = source["flows"]
        return True

    def write_application(self, application_id: str, claim: str, run: ApplicationGraph) -> bool:
        groups = [group for batch in application_record_batches(application_id, run) for group in batch]
        ids = [flow_id for column in run.columns for flow_id in column.flow_ids]
        with self._lock:
            if self._claims.get(application_id) != claim:
                return False
            for group in groups:
                self._upsert_flows(application_id, group)
            for batch in application_link_batches(run, ids):
                self.flow_links |= set(zip(batch["sources"], batch["targets"], strict=True))
            return self._settle(application_id, all_flows(run))

    def leave_application(self, application_id: str, claim: str, records: int, max_flows: int) -> bool:
        with self._lock:
            if self._claims.get(application_id) != claim:
                return False
            return self._settle(application_id, flows_on_request(records, max_flows))

    def _is_pending(self, application_id: str, max_flows: int) -> bool:
        budget: int = self.applications.get(application_id, {}).get("flowsBudget", max_flows)
        return budget < max_flows

    def _settle(self, application_id: str, properties: Row) -> bool:
        _assign(self.applications[application_id], properties)
        del self._claims[application_id]
        return True

    def delete_application(self, application_id: str) -> None:
        with self._lock:
            gone = {i for i, flow in self.flows.items() if flow["applicationId"] == application_id}
            self.flow_links = {pair for pair in self.flow_links if gone.isdisjoint(pair)}
            self.flows = {i: flow for i, flow in self.flows.items() if i not in gone}
            nodes = {i for i, node in self.nodes.items() if node["applicationId"] == application_id}
            self.sends_to = {ends: link for ends, link in self.sends_to.items() if nodes.isdisjoint(ends)}
            self.nodes = {i: node for i, node in self.nodes.items() if i not in nodes}
            self.applications.pop(application_id, None)
            self._claims.pop(application_id, None)

    @property
    def datasets(self) -> set[tuple[str, str]]:
        """(namespace, name) of those that a source reads or a sink writes."""
        return {dataset for _, _, dataset in self.dataset_links}

    @property
    def dataset_links(self) -> set[tuple[str, str, tuple[str, str]]]:
        """(nodeId, `reads` or `writes`, dataset)."""
        return {
            (node["nodeId"], _DID[node["kind"]], (node.get("datasetNamespace", ""), node["dataset"]))
            for node in self.nodes.values()
            if node.get("kind") in _DID and "dataset" in node
        }

    def ping(self) -> None:
        """It always answers."""

    def close(self) -> None:
        """It holds nothing that must be given back."""

    def _application(self, application_id: str) -> Row:
        return self.applications.setdefault(application_id, {"applicationId": application_id})

    def _send(self, source: str, target: str) -> Row:
        return self.sends_to.setdefault((source, target), {})

    def _upsert_nodes(self, rows: Iterable[Row]) -> None:
        for row in rows:
            identity = {name: row[name] for name in ("nodeId", "applicationId", "node")}
            _assign_later(self.nodes.setdefault(row["nodeId"], identity), row["properties"], "revision")

    def _upsert_flows(self, application_id: str, group: Row) -> None:
        node = self.nodes.get(group["nodeId"], {})
        flow_ids: list[str] = group["flowIds"]
        nothing = [None] * len(flow_ids)
        columns = (
            *(group["hashIns"] or nothing, group.get("hashOuts", flow_ids), group["vals"] or nothing),
            *(group["files"] or nothing, group["lines"] or nothing),
        )
        for flow_id, hash_in, hash_out, val, file, line in zip(flow_ids, *columns, strict=True):
            flow = self.flows.setdefault(
                flow_id, {"flowId": flow_id, "nodeId": group["nodeId"], "applicationId": application_id}
            )
            properties = {"name": node.get("name"), "description": node.get("description")}
            properties |= {"hashIn": hash_in, "hashOut": hash_out, "val": val, "file": file, "line": line}
            flow.update({name: value for name, value in properties.items() if value is not None})

    def _describe(self, node_ids: Iterable[str]) -> None:
        nodes = {node_id: self.nodes[node_id] for node_id in node_ids}
        for flow in self.flows.values():
            if node := nodes.get(flow["nodeId"]):
                flow.update(name=node["name"], description=node["description"])


def _assign_later(target: Row, properties: Row, revision: str) -> None:
    """Cypher's `+=` unless the target has as late an account already; None takes a property away."""
    if target.get(revision, "") < properties.get(revision, ""):
        _assign(target, properties)


def _assign(target: Row, properties: Row) -> None:
    target.update(properties)
    for name in [name for name, value in target.items() if value is None]:
        del target[name]


def _pairs(links: Iterable[Row]) -> Iterable[tuple[Row, Row]]:
    return ((target, source) for target in links for source in target["sources"])
