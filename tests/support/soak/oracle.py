"""What the stores hold against what applications are known to be: the differences, in words.

Reads Delta tables, Neo4j and the API with their own libraries, nothing of ours.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import neo4j
from deltalake import DeltaTable

from tests.support.soak.applications import Application

#: Table -> the columns that are compared; application_id comes first.
_COLUMNS = {
    "flows": ("node", "run", "out_pos", "out_count", "in_pos", "in_step", "in_run"),
    "records": ("node", "run", "pos", "kind", "type", "text"),
    "annotations": ("node", "run", "relation", "pos", "value"),
    "blocks": ("node", "run", "split", "seq", "relation"),
    "events": ("body",),
}


def store_differences(folder: Path, applications: Sequence[Application]) -> list[str]:
    """Rows that the flow store lacks, has twice, or should not have, whichever application they name.

    An event that came twice may be there twice: readers take each text once.
    """
    wanted: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in _COLUMNS}
    for application in applications:
        rows = {
            "flows": application.expected.flows,
            "records": application.expected.records,
            "annotations": application.expected.annotations,
            "blocks": application.expected.receipts,
            "events": [(body,) for body in application.expected.events],
        }
        for table, expected in rows.items():
            wanted[table].update((application.application_id, *row) for row in expected)
    found = []
    for table, columns in _COLUMNS.items():
        stored = Counter(_rows(folder / table, ("application_id", *columns)))
        if table == "events":
            bodies = ((name, json.dumps(json.loads(body), sort_keys=True)) for name, body in stored)
            stored = Counter(set(bodies))
        found += _differences(f"{folder.name}/{table}", wanted[table], stored)
    return found


def _rows(table: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    stored = DeltaTable(str(table)).to_pyarrow_table(columns=list(columns))
    return zip(*(stored[name].to_pylist() for name in columns), strict=True)


def graph_differences(uri: str, applications: Sequence[Application], prefix: str) -> list[str]:
    """The same of all that Neo4j has of ids that begin with `prefix`, applications being there whole."""
    nodes: Counter[tuple[Any, ...]] = Counter()
    links: Counter[tuple[Any, ...]] = Counter()
    flows: Counter[tuple[Any, ...]] = Counter()
    ways: Counter[tuple[Any, ...]] = Counter()
    for application in applications:
        of_one = application.graph()
        nodes.update((application.application_id, *node) for node in of_one[0])
        links.update((*link, (0,)) for link in of_one[1])
        whole = application.flows()
        flows.update((flow_id,) for flow_id in whole[0])
        ways.update(whole[1])
    started = Counter(
        (application.application_id, "ended", f"soak {application.application_id}", "all")
        for application in applications
    )
    with neo4j.GraphDatabase.driver(uri) as driver:

        def ask(query: str) -> Counter[tuple[Any, ...]]:
            records = driver.execute_query(query, prefix=prefix).records
            return Counter(
                tuple(tuple(value) if isinstance(value, list) else value for value in record.values())
                for record in records
            )

        return [
            *_differences(
                "LineageApplication",
                started,
                ask(
                    "MATCH (n:LineageApplication) WHERE n.applicationId STARTS WITH $prefix "
                    "RETURN n.applicationId, n.state, n.name, n.flows"
                ),
            ),
            *_differences(
                "LineageNode",
                nodes,
                ask(
                    "MATCH (n:LineageNode) WHERE n.applicationId STARTS WITH $prefix "
                    "RETURN n.applicationId, n.nodeId, n.kind, n.relation"
                ),
            ),
            *_differences(
                "sendsTo",
                links,
                ask(
                    "MATCH (s:LineageNode)-[l:sendsTo]->(t:LineageNode) "
                    "WHERE s.applicationId STARTS WITH $prefix RETURN s.nodeId, t.nodeId, l.ports"
                ),
            ),
            *_differences(
                "LineageFlow",
                flows,
                ask("MATCH (f:LineageFlow) WHERE f.flowId STARTS WITH $prefix RETURN f.flowId"),
            ),
            *_differences(
                "flow",
                ways,
                ask(
                    "MATCH (s:LineageFlow)-[:flow]->(t:LineageFlow) WHERE s.flowId STARTS WITH $prefix "
                    "RETURN s.flowId, t.flowId"
                ),
            ),
        ]


def is_whole(uri: str, prefix: str) -> bool:
    """Has every ended application come into Neo4j whole? No lag says that its events have."""
    with neo4j.GraphDatabase.driver(uri) as driver:
        [found] = driver.execute_query(
            "MATCH (n:LineageApplication) WHERE n.applicationId STARTS WITH $prefix "
            "RETURN count(CASE WHEN n.flows <> 'all' OR n.flows IS NULL THEN 1 END) AS lacking",
            prefix=prefix,
        ).records
    return bool(found["lacking"] == 0)


def answer_differences(api: str, uri: str, application: Application, most: int) -> list[str]:
    """What the API answers about saved rows of an application; put into Neo4j, they add nothing there."""
    name = application.application_id
    found: list[str] = []
    url = f"{api}/api/applications/{name}"
    with httpx.Client(timeout=240) as client:
        about = client.get(url).json()
        if not about.get("complete"):
            found.append(f"{name} is not complete: {about}")
        for (node, record), expected in list(application.expected.backward.items())[:most]:
            query = {"direction": "backward", "record": f"{name}#{node}#{record}", "limit": "10000"}
            trace = client.get(f"{url}/trace", params=query).json()
            if not (trace.get("complete") and trace.get("exact")):
                found.append(f"the trace of {record} of {name} is not complete and exact: {trace}")
                continue
            reached = Counter(
                (int(node["node_id"].rpartition("#")[2]), one["record_id"])
                for node in trace["nodes"]
                for one in node["records"]
            )
            found += _differences(f"the trace of {record} of {name}", Counter(expected), reached)
            client.post(f"{url}/trace/graph", params=query).raise_for_status()
    with neo4j.GraphDatabase.driver(uri) as driver:
        stored = driver.execute_query(
            "MATCH (f:LineageFlow {applicationId: $name}) RETURN f.flowId AS id", name=name
        ).records
    return found + _differences(
        f"LineageFlow of {name}", Counter(application.flows()[0]), Counter(row["id"] for row in stored)
    )


def _differences(where: str, wanted: Counter[Any], stored: Counter[Any]) -> list[str]:
    return [*_told(where, "lacks", wanted - stored), *_told(where, "has too much", stored - wanted)]


def _told(where: str, what: str, rows: Counter[Any]) -> Iterable[str]:
    if rows:
        some = "".join(f"\n    {count} x {row}" for row, count in sorted(rows.items(), key=repr)[:10])
        yield f"{where} {what} {rows.total()} rows, {len(rows)} different ones:{some}"
