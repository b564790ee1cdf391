"""Puts a traced subgraph into Neo4j as LineageFlow nodes and `flow` links, so that Browser and Bloom show it.

Bounded: at most `max_records` records of one trace; where there are more, each node of the trace gets the
same share. Putting the same trace there again changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import lineage_cypher
from lineage_service.graph.graph_store import GraphStore
from lineage_service.graph.trace_rows import GraphRecord
from lineage_service.lineage import Materialized, Record, Trace
from lineage_service.queries import Queries, TraceQuery


class Materializer:
    """Callable as (application id, query) -> Materialized."""

    def __init__(self, queries: Queries, graph: GraphStore, max_records: int) -> None:
        self._queries = queries
        self._graph = graph
        self._max_records = max_records

    def __call__(self, application_id: str, query: TraceQuery) -> Materialized:
        trace = self._trace(application_id, query, self._max_records)
        if sum(len(node.records) for node in trace.nodes) > self._max_records:
            trace = self._trace(application_id, query, max(1, self._max_records // len(trace.nodes)))
        links = [(flow.hash_in, flow.hash_out) for flow in trace.flows]
        # A forward trace may list one of two inputs of a record: then nobody knows here what went into it.
        is_whole = trace.direction == "backward" and not trace.truncated
        inputs: dict[str, list[str]] = defaultdict(list)
        for source, target in links:
            inputs[target].append(source)
        records = []
        for node in trace.nodes:
            for record in node.records:
                flow_id = f"{node.node_id}#{record.record_id}"
                into = inputs.get(flow_id, [])
                records.append(
                    GraphRecord(
                        flow_id=flow_id,
                        node=int(node.node_id.rpartition("#")[2]),
                        hash_in=into[0] if is_whole and len(into) == 1 else None,
                        hash_out=flow_id,
                        val=_text(record),
                        file=None if record.source is None else record.source.path,
                        line=None if record.source is None else record.source.line,
                    )
                )
        self._graph.write_trace(application_id, records, links)
        start = f"{trace.start_node}#{trace.start[0].record_id}" if trace.start else ""
        return Materialized(
            records=len(records),
            links=len(links),
            truncated=trace.truncated,
            query=lineage_cypher.pasted(f"show/{trace.direction}", flowId=start).strip(),
        )

    def _trace(self, application_id: str, query: TraceQuery, limit: int) -> Trace:
        every = replace(query, only=None, sort=None, desc=False, filter=None, columns=None, remarks=False)
        return self._queries.trace(application_id, replace(every, limit=limit, values=True, across=False))


def _text(record: Record) -> str | None:
    if record.source is not None and record.source.text is not None:
        return record.source.text
    return record.value if record.value is not None else record.key
