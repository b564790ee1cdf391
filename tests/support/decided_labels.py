"""A job in memory that picks the smallest label of a customer, in a loop: of three edges one decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lineage_service.lineage import (
    Application,
    Dataset,
    Edge,
    ExplainedRow,
    ExplanationTurn,
    Flow,
    Graph,
    Node,
    Record,
    SourceRow,
)
from lineage_service.testing.memory.lineages import MemoryLineage

APP = "local-1732183200000"
EDGES, LABELS, SINK, STOP = range(4)
ROWS = ("1,17", "1,<b>23", "1,90")
LOOP = "/jobs/labels.py:31"


def node_id(number: int) -> str:
    return f"{APP}#{number}"


def _node(number: int, name: str, kind: Any, path: str = "", **fields: Any) -> Node:
    about: dict[str, Any] = {
        "description": path,
        "call_site": f"/jobs/labels.py:{30 + number}",
        "exact": True,
        "reason": "",
        "dataset": Dataset(namespace="file", name=path, format="text") if path else None,
        "has_values": False,
        "records": 1,
    }
    return Node(node_id=node_id(number), node=number, name=name, kind=kind, **{**about, **fields})


def _record(record_id: str, offset: int, **fields: Any) -> Record:
    return Record(record_id=record_id, partition=0, offset=offset, **fields)


def _row(path: str, row: int, text: str) -> SourceRow:
    return SourceRow(path=path, row=row, line=row + 1, text=text, warning=None)


def labels(*, has_winners: bool = True, exact: bool = True) -> MemoryLineage:
    """The label of customer 1; `stop.txt` was read on the side."""
    read = [
        _record(f"read#0#{at}", at, source=_row("/data/edges.csv", at, row)) for at, row in enumerate(ROWS)
    ]
    label, written = f"{node_id(LABELS)}#0#0", f"{node_id(SINK)}#write#0#0"
    edges = [f"{node_id(EDGES)}#{record.record_id}" for record in read]
    came_in = ExplainedRow(
        node_id=node_id(EDGES),
        name="textFile",
        record_id="read#0#0",
        path="/data/edges.csv",
        row=0,
        line=1,
        text=ROWS[0],
        warning=None,
    )
    first = ExplanationTurn(
        loop=LOOP,
        turn=1,
        node_id=node_id(LABELS),
        name="reduceByKey",
        total=1,
        records=(_record("0#0", 0, key="1"),),
        until=(14,),
        rows_total=1,
        rows=(came_in,),
    )
    before = replace(
        first, turn=0, node_id=node_id(EDGES), name="textFile", rows_total=0, rows=(), until=(0,)
    )
    return MemoryLineage(
        application=Application(
            application_id=APP,
            name="labels",
            state="ended",
            started=1_732_183_200_000,
            ended=1_732_183_214_500,
            complete=True,
            missing_blocks=0,
            counters={"flows": 4},
        ),
        graph=Graph(
            application_id=APP,
            nodes=(
                _node(EDGES, "textFile", "source", "/data/edges.csv", records=len(ROWS)),
                _node(LABELS, "reduceByKey", "operator", exact=exact),
                _node(SINK, "saveAsTextFile", "sink", "/data/labels"),
                _node(STOP, "textFile", "source", "/data/stop.txt"),
            ),
            edges=(
                Edge(source=node_id(EDGES), target=node_id(LABELS), flows=3, shuffle=True),
                Edge(source=node_id(LABELS), target=node_id(SINK), flows=1),
            ),
        ),
        records={
            node_id(EDGES): tuple(read),
            node_id(LABELS): (_record("0#0", 0, key="1"),),
            node_id(SINK): (_record("write#0#0", 0, source=_row("/data/labels/part-00000", 0, "1,17")),),
            node_id(STOP): (_record("read#0#0", 0, source=_row("/data/stop.txt", 0, "0")),),
        },
        flows=(
            *(Flow(hash_in=edge, hash_out=label, node_id=node_id(LABELS)) for edge in edges),
            Flow(hash_in=label, hash_out=written, node_id=node_id(SINK)),
        ),
        winners={label: edges[0]} if has_winners else {},
        turns=(before, first) if has_winners else (),
    )
