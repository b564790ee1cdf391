"""Graph stores under test, the real one and its twin, and messages for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import neo4j as driver

from lineage_service.graph.application_rows import ApplicationGraph, NodeRecords
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.graph.trace_rows import GraphRecord
from lineage_service.testing.graph import MemoryGraph
from spark_agent import contract

Event = Mapping[str, Any]


Content = dict[str, list[Any]]


class MemoryUnderTest:
    def __init__(self) -> None:
        self.store = MemoryGraph()

    def content(self, application_id: str) -> Content:
        store = self.store
        return {
            "applications": _ordered(_of(application_id, store.applications)),
            "nodes": _ordered(_of(application_id, store.nodes)),
            "sends_to": _ordered(
                [*ends, link]
                for ends, link in store.sends_to.items()
                if store.nodes[ends[0]]["applicationId"] == application_id
            ),
            "flows": _ordered(_of(application_id, store.flows)),
            "flow_links": _ordered(
                list(ends)
                for ends in store.flow_links
                if store.flows[ends[0]]["applicationId"] == application_id
            ),
            "datasets": _ordered(
                [node_id, did, *dataset]
                for node_id, did, dataset in store.dataset_links
                if store.nodes[node_id]["applicationId"] == application_id
            ),
        }

    def datasets(self, place: str) -> list[str]:
        """The names of all datasets below a place, whoever reads or writes them."""
        return sorted(name for _, name in self.store.datasets if name.startswith(place))


class Neo4jUnderTest:
    def __init__(self, server: Any) -> None:
        self.store = Neo4jGraph(server.uri, user=server.user, password=server.password)
        self.store.migrate()
        self.driver = connect(server)

    def content(self, application_id: str) -> Content:
        def read(query: str) -> list[Any]:
            records, _, _ = self.driver.execute_query(query, application=application_id)
            return _ordered(record.values() if len(record) > 1 else record[0] for record in records)

        return {
            "applications": read(
                "MATCH (n:LineageApplication {applicationId: $application}) RETURN properties(n)"
            ),
            "nodes": read("MATCH (n:LineageNode {applicationId: $application}) RETURN properties(n)"),
            "sends_to": read(
                "MATCH (a:LineageNode {applicationId: $application})-[r:sendsTo]->(b) "
                "RETURN a.nodeId, b.nodeId, properties(r)"
            ),
            "flows": read("MATCH (n:LineageFlow {applicationId: $application}) RETURN properties(n)"),
            "flow_links": read(
                "MATCH (a:LineageFlow {applicationId: $application})-[r:flow]->(b) RETURN a.flowId, b.flowId"
            ),
            "datasets": read(
                "MATCH (n:LineageNode {applicationId: $application})-[r:reads|writes]->(d:Dataset) "
                "RETURN n.nodeId, type(r), d.namespace, d.name"
            ),
        }

    def datasets(self, place: str) -> list[str]:
        """The names of all datasets below a place, whoever reads or writes them."""
        records, _, _ = self.driver.execute_query(
            "MATCH (d:Dataset) WHERE d.name STARTS WITH $place RETURN d.name AS name ORDER BY name",
            place=place,
        )
        return [record["name"] for record in records]


GraphUnderTest = MemoryUnderTest | Neo4jUnderTest


def _of(application_id: str, rows: Mapping[str, Any]) -> list[Any]:
    return [row for row in rows.values() if row["applicationId"] == application_id]


def _ordered(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda row: repr(sorted(row.items()) if isinstance(row, dict) else row))


def connect(server: Any) -> driver.Driver:
    return driver.GraphDatabase.driver(
        server.uri,
        auth=(server.user, server.password) if server.password else None,
        notifications_min_severity="OFF",
    )


def opened(server: Any) -> Iterator[Neo4jUnderTest]:
    """A graph in the server, and after it the end of its connections."""
    under_test = Neo4jUnderTest(server)
    yield under_test
    under_test.driver.close()
    under_test.store.close()


def started(app: str, *, time: int = 1_000, name: str = "word count") -> Event:
    return {
        "type": contract.APPLICATION_STARTED,
        "application_id": app,
        "time": time,
        "name": name,
        "detailed": True,
        "spark_version": "4.3.0",
        "user": "ada",
    }


def ended(app: str, *, time: int = 2_000) -> Event:
    counters = {"runs": 3, "dropped": 0}
    return {"type": contract.APPLICATION_ENDED, "application_id": app, "time": time, "counters": counters}


def node(app: str, number: int, name: str = "map", *, time: int = 1_100, **more: Any) -> Event:
    fields = {"description": f"{name} at job.py:{number}", "kind": "operator", "relation": "identity"}
    told = {"type": contract.NODE_REGISTERED, "application_id": app, "time": time, "node": number}
    return {**told, "name": name, **fields, "exact": True, **more}


def link(app: str, source: int, target: int, port: int = 0) -> Event:
    ends = {"source": source, "target": target, "port": port}
    return {"type": contract.LINK, "application_id": app, "time": 1_200, **ends}


def record(app: str, number: int, offset: int, **more: Any) -> GraphRecord:
    flow_id = f"{app}#{number}#0#{offset}"
    return GraphRecord(
        **{"flow_id": flow_id, "node": number, "hash_in": None, "hash_out": flow_id, "val": None, **more}
    )


def run_of(app: str, each: int = 2, groups: int = 1) -> ApplicationGraph:
    """`each` records of node 1 that go into `groups` of node 2 by turns."""
    first = [f"{app}#1#0#{offset}" for offset in range(each)]
    second = [f"{app}#2#0#{offset}" for offset in range(groups)]
    ways = sorted((each + offset % groups, offset) for offset in range(each))
    return ApplicationGraph(
        columns=[
            NodeRecords(node=1, flow_ids=first, hash_ins=[None] * each, vals=list(map(str, range(each)))),
            NodeRecords(node=2, flow_ids=second, hash_ins=[None] * groups, vals=[None] * groups),
        ],
        sources=[source for _, source in ways],
        targets=[target for target, _ in ways],
        is_exact=True,
    )


def links_of(run: ApplicationGraph) -> list[list[str]]:
    ids = [flow_id for column in run.columns for flow_id in column.flow_ids]
    return sorted([ids[source], ids[target]] for source, target in zip(run.sources, run.targets, strict=True))
