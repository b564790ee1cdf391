"""Lineage of a small job that joins flights with weather, computed here record by record.

    python tests/support/flights_and_weather.py [PORT]     serves the API and the page on it

Two branches: one sink is exact, the other comes through `mapPartitions` and is not. One row holds markup, one
file has changed, and a second application still runs with blocks missing.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from lineage_service.lineage import (
    Application,
    Dataset,
    Edge,
    Flow,
    Graph,
    Materialized,
    Node,
    Record,
    SourceRow,
    ValueStep,
)
from lineage_service.newest_application import LAST
from lineage_service.queries import TraceQuery
from lineage_service.testing.memory.lineages import MemoryLineage
from lineage_service.testing.queries import MemoryQueries

APP = "local-1732183200000"
NAME = "delays.py"
RUNNING = "app-20251121093000-0007"
MARKUP = "<img src=x onerror=\"document.title='broken'\">"
CHANGED = "weather.csv has changed since the run: this row may be another one"
AIRPORTS = ("ORD", "SFO", "JFK", "ATL")
CONDITIONS = ("clear", "storm", "snow", "fog")


@dataclass
class Item:
    """A record while the job runs: the text it stands for and the hashes of what it came from."""

    text: str
    origins: tuple[str, ...] = ()
    key: str | None = None
    row: int | None = None
    hash: str = ""


@dataclass
class Job:
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    records: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    flows: list[Flow] = field(default_factory=list)
    values: list[ValueStep] = field(default_factory=list)

    def add(
        self,
        name: str,
        splits: list[list[Item]],
        parents: Iterable[int] = (),
        *,
        kind: str = "operator",
        path: str | None = None,
        reason: str = "",
        warning: str | None = None,
        header: str = "",
    ) -> int:
        """Register a node that made these records; its number."""
        number = len(self.nodes)
        node_id = f"{APP}#{number}"
        word = {"source": "read#", "sink": "write#"}.get(kind, "")
        records = []
        for partition, items in enumerate(splits):
            for offset, item in enumerate(items):
                row = offset if item.row is None else item.row
                record_id = f"{word}{partition}#{row if word else offset}"
                item.hash = f"{node_id}#{record_id}"
                name_of_file = f"{path}/part-{partition:05}" if kind == "sink" else path
                source = name_of_file and SourceRow(
                    path=name_of_file,
                    row=row,
                    line=row + 1,
                    text=item.text,
                    warning=warning,
                    columns=columns_of(header, item.text) if header and row else None,
                )
                records.append(
                    Record(
                        record_id=record_id,
                        partition=partition,
                        offset=offset,
                        key=item.key,
                        source=source or None,
                    )
                )
                self.flows += [
                    Flow(hash_in=origin, hash_out=item.hash, node_id=node_id) for origin in item.origins
                ]
                if not path:
                    self.values.append(
                        ValueStep(
                            node_id=node_id,
                            application_id=APP,
                            application_name=NAME,
                            name=name,
                            record_id=record_id,
                            type="str",
                            value=item.text,
                        )
                    )
        self.records[node_id] = tuple(records)
        self.edges += [(parent, number) for parent in parents]
        self.nodes.append(
            Node(
                node_id=node_id,
                node=number,
                name=name,
                description=f"{name} at delays.py:{12 + number}",
                kind=kind,  # type: ignore[arg-type]  # the three words above
                call_site=f"delays.py:{12 + number}",
                exact=not reason,
                reason=reason,
                dataset=Dataset(namespace="file", name=path, format="text") if path else None,
                records=len(records),
                has_values=not path,
            )
        )
        return number

    def graph(self) -> Graph:
        edges = []
        for source, target in self.edges:
            flows = [
                flow
                for flow in self.flows
                if flow.node_id == f"{APP}#{target}" and flow.hash_in.startswith(f"{APP}#{source}#")
            ]
            is_shuffle = self.nodes[target].name == "join"
            edges.append(
                Edge(
                    source=f"{APP}#{source}",
                    target=f"{APP}#{target}",
                    flows=len(flows),
                    shuffle=is_shuffle,
                )
            )
        return Graph(application_id=APP, nodes=tuple(self.nodes), edges=tuple(edges))


def columns_of(header: str, text: str) -> dict[str, str | int]:
    fields = (int(field) if field.isdigit() else field for field in text.split(","))
    return dict(zip(header.split(","), fields, strict=False))


def repeated(splits: list[list[Item]], change: Callable[[Item], Item | None]) -> list[list[Item]]:
    """A map and filter in one: `None` drops the record."""
    made = [[(item, change(item)) for item in items] for items in splits]
    return [
        [Item(text=to.text, key=to.key, origins=(of.hash,)) for of, to in pairs if to is not None]
        for pairs in made
    ]


def is_late(flight: str) -> bool:
    delay = flight.rpartition(",")[2]
    return delay.isdigit() and int(delay) > 60


def keyed(item: Item) -> Item:
    columns = item.text.split(",")
    airport, hour = columns[1:3] if len(columns) == 4 else columns[:2]
    return Item(text=f"('{airport} {hour}', '{item.text}')", key=f"{airport} {hour}")


def run(flights: int) -> MemoryLineage:
    """The lineage of the job over this many flights."""
    dice = random.Random(7)
    job = Job()
    rows = ["flight,airport,hour,delay"] + [
        f"UA{1000 + n},{dice.choice(AIRPORTS)},{dice.randrange(6, 12):02}h,{dice.randrange(0, 90)}"
        for n in range(flights)
    ]
    middle = len(rows) // 2
    read = [
        [Item(text=text, row=row) for row, text in enumerate(rows)][:middle],
        [Item(text=text, row=row) for row, text in enumerate(rows)][middle:],
    ]
    flight_file = job.add("textFile", read, kind="source", path="/data/flights.csv", header=rows[0])
    late = repeated(read, lambda item: item if is_late(item.text) else None)
    late_node = job.add("filter", late, [flight_file])
    by_hour = repeated(late, keyed)
    by_hour_node = job.add("keyBy", by_hour, [late_node])

    sky = ["airport,hour,condition"] + [
        f"{airport},{hour:02}h,{dice.choice(CONDITIONS)}" for airport in AIRPORTS for hour in range(6, 12)
    ]
    sky[1] = f"ORD,06h,storm {MARKUP}"
    weather = [[Item(text=text, row=row) for row, text in enumerate(sky)]]
    weather_file = job.add("textFile", weather, kind="source", path="/data/weather.csv", warning=CHANGED)
    bad = repeated(weather, lambda item: None if "clear" in item.text or "condition" in item.text else item)
    bad_node = job.add("filter", bad, [weather_file])
    bad_by_hour = repeated(bad, keyed)
    bad_by_hour_node = job.add("keyBy", bad_by_hour, [bad_node])

    pairs = [
        Item(text=f"{left.text} x {right.text}", key=left.key, origins=(left.hash, right.hash))
        for right in itertools.chain(*bad_by_hour)
        for left in itertools.chain(*by_hour)
        if left.key == right.key
    ]
    joined = [pairs[0::3], pairs[1::3], pairs[2::3]]
    join = job.add("join", joined, [by_hour_node, bad_by_hour_node])
    lines = repeated(
        joined, lambda item: Item(text=item.text.replace("'", "").replace(" x ", " because of "))
    )
    line_node = job.add("map", lines, [join])
    saved = repeated(lines, lambda item: item)
    job.add("saveAsTextFile", saved, [line_node], kind="sink", path="/data/delayed")

    counts = [[Item(text=f"{len(items)} late", origins=tuple(i.hash for i in items))] for items in lines]
    bound = "mapPartitions: any output of a split may come from any input of that split"
    count_node = job.add("mapPartitions", counts, [line_node], reason=bound)
    job.add(
        "saveAsTextFile", repeated(counts, lambda item: item), [count_node], kind="sink", path="/data/summary"
    )
    return MemoryLineage(
        application=Application(
            application_id=APP,
            name=NAME,
            state="ended",
            started=1_732_183_200_000,
            ended=1_732_183_214_500,
            complete=True,
            missing_blocks=0,
            counters={"runs": 6, "blocks": 19, "flows": len(job.flows), "dropped": 0},
        ),
        graph=job.graph(),
        records=job.records,
        flows=tuple(job.flows),
        values=tuple(job.values),
    )


def still_running() -> MemoryLineage:
    """An application of which blocks are missing, without values."""
    source, sink = f"{RUNNING}#0", f"{RUNNING}#1"
    rest = {"description": "", "exact": True, "reason": "", "has_values": False, "records": None}
    row = SourceRow(path="/data/tweets.txt", row=0, line=1, text=None, warning="/data/tweets.txt is gone")
    return MemoryLineage(
        application=Application(
            application_id=RUNNING,
            name="tweets",
            state="running",
            started=1_732_190_000_000,
            ended=None,
            complete=False,
            missing_blocks=3,
            counters={"runs": 1, "blocks": 2, "flows": 1, "dropped": 40},
            missing="its end has not arrived; blocks that the agent dropped: 40",
        ),
        graph=Graph(
            application_id=RUNNING,
            nodes=(
                Node(
                    node_id=source,
                    node=0,
                    name="textFile",
                    kind="source",
                    call_site="tweets.py:3",
                    dataset=Dataset(namespace="hdfs://nn:8020", name="/data/tweets.txt", format="text"),
                    **rest,
                ),
                Node(
                    node_id=sink,
                    node=1,
                    name="collect",
                    kind="sink",
                    call_site="tweets.py:4",
                    dataset=None,
                    **rest,
                ),
            ),
            edges=(Edge(source=source, target=sink, flows=None),),
        ),
        records={
            source: (Record(record_id="read#0#0", partition=0, offset=0, source=row),),
            sink: (Record(record_id="write#0#0", partition=0, offset=0),),
        },
        flows=(Flow(hash_in=f"{source}#read#0#0", hash_out=f"{sink}#write#0#0", node_id=sink),),
    )


def questions(flights: int = 260) -> MemoryQueries:
    return MemoryQueries([run(flights), still_running()])


def with_an_old_one_called_last() -> MemoryQueries:
    """Two applications; the one whose id is `last` is not the newest."""
    flights = run(260)
    application = replace(flights.application, application_id=LAST, started=0)
    old = replace(flights, application=application, graph=replace(flights.graph, application_id=LAST))
    return MemoryQueries([flights, old])


def materialize(application_id: str, query: TraceQuery) -> Materialized:
    """Neo4j's part, as far as the API sees it."""
    trace = questions().trace(application_id, query)
    return Materialized(
        records=sum(node.total for node in trace.nodes),
        links=len(trace.flows),
        truncated=trace.truncated,
        query=f"MATCH (f:LineageFlow {{applicationId: '{application_id}'}}) RETURN f",
    )


if __name__ == "__main__":
    import sys

    import uvicorn

    from lineage_api.app import create_app

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    uvicorn.run(create_app(questions(), materialize=materialize), port=port, log_level="warning")
