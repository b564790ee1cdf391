"""What a catalogue of many applications costs: `lineage datasets` over a store of synthetic events.

Jobs run once a day. Each reads what three others wrote and its own input, and writes two datasets. Measured
are the first list, the next one, one after another application has come, one dataset with its history and
its graph, and a name that nobody has. Writes `perf/results/datasets-DATE.json` and `.md`.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import Message, event_batch
from lineage_service.errors import NotFoundError
from lineage_service.queries import DatasetQuery, DatasetsQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT
from perf.tables import publish, table
from spark_agent import contract

DAY_MS = 86_400_000
FILES = 20
SCHEMA = [{"name": f"column_{number}", "type": "bigint", "nullable": True} for number in range(20)]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.datasets", description=__doc__)
    parser.add_argument("--applications", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=100, help="applications of one name are runs of one job")
    parser.add_argument("--store", type=Path, help="keep the store there, and take it where it is kept")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(argv)
    figures = about_machine("perf.datasets", options.note)
    figures |= {"applications": options.applications, "jobs": options.jobs}
    with tempfile.TemporaryDirectory() as folder:
        where = options.store or Path(folder)
        is_new = not (where / "events").exists()
        store = DeltaFlowStore(where)
        if is_new:
            figures["writing the store"] = seconds(lambda: fill(store, options.applications, options.jobs))
        figures["seconds"] = measure(where, options.applications, options.jobs)
    figures["MB of memory, at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    publish(options.out, "datasets", figures, page(figures))
    return 0


def fill(store: DeltaFlowStore, applications: int, jobs: int) -> None:
    """In batches of as many applications as a commit holds."""
    values = (value for number in range(applications) for value in events_of(number, jobs))
    messages = [
        Message(topic="node", partition=0, offset=at, key=b"", value=value) for at, value in enumerate(values)
    ]
    taken = 0
    while taken < len(messages):
        batch = event_batch("node/0", messages[taken:])
        store.write_events(batch)
        taken += batch.messages


def events_of(number: int, jobs: int) -> Iterator[bytes]:
    """One application: a join of three datasets and an input of its own, written twice."""
    job, day = number % jobs, number // jobs
    chance, began = random.Random(job), day * DAY_MS + job * 1_000
    application_id, counter = f"app-{number:06}", iter(range(10_000))

    def event(event_type: str, after_ms: int = 0, **fields: Any) -> bytes:
        numbered = {"event": next(counter), **fields}
        return contract.encode_event(event_type, application_id, began + after_ms, numbered)

    read = [f"/in/job-{job}", *(f"/lake/job-{chance.randrange(max(job, 1))}/sums" for _ in range(3))]
    yield event(contract.APPLICATION_STARTED, name=f"job-{job}", detailed=False)
    for node, place in enumerate(read):
        yield event(contract.NODE_REGISTERED, **node_of(node, "source", contract.SOURCE, place), by_id=True)
        files = [{"split": at, "path": f"{place}/part-{at:05}.parquet", "start": 0} for at in range(FILES)]
        yield event(contract.PARTITIONS, node=node, partitions=files)
    joined = len(read)
    yield event(contract.NODE_REGISTERED, **node_of(joined, "operator", contract.CARRIED, ""))
    for port in range(joined):
        yield event(contract.LINK, source=port, target=joined, port=port)
    for sink, name in enumerate(("sums", "rejected"), joined + 1):
        place = f"/lake/job-{job}/{name}"
        yield event(contract.NODE_REGISTERED, **node_of(sink, "sink", contract.FLOWS, place), by_id=True)
        yield event(contract.LINK, source=joined, target=sink, port=0)
        for split in range(FILES):
            yield event(contract.RUN_COMMITTED, **manifest(sink, split))
        yield event(contract.ACTION_ENDED, 1 + sink, node=sink, state=contract.ACTION_COMPLETE)
    yield event(contract.APPLICATION_ENDED, 10, counters={"runs": 2 * FILES}, state="succeeded")


def node_of(node: int, kind: str, relation: str, place: str) -> dict[str, Any]:
    dataset = {"namespace": "file", "name": place, "format": "parquet"} if place else None
    about = {"name": kind, "description": place, "exact": True, "dataset": dataset}
    return {"node": node, "kind": kind, "relation": relation, "schema": SCHEMA, **about}


def manifest(node: int, split: int) -> dict[str, Any]:
    counts = {"inputs": 1_000, "outputs": 1_000, "blocks": 0, "dropped": 0, "attempt": 0, "stage": 1}
    return {"run": 1_000 * node + split, "split": split, "action": node, "input": node, "nodes": [], **counts}


def measure(where: Path, applications: int, jobs: int) -> dict[str, tuple[float, float]]:
    """(seconds, seconds of the processor) of each."""
    store = DeltaFlowStore(where)
    queries = LineageQueries(store, time_budget_s=60)
    name = f"/lake/job-{jobs // 2}/sums"

    def unknown() -> None:
        with suppress(NotFoundError):
            queries.dataset(DatasetQuery(name="/lake/job-x/smus"))

    measured = {
        "the first list": seconds(lambda: queries.datasets(DatasetsQuery())),
        "the next list": seconds(lambda: queries.datasets(DatasetsQuery())),
        "a search": seconds(lambda: queries.datasets(DatasetsQuery(text="rejected"))),
        "one dataset": seconds(lambda: queries.dataset(DatasetQuery(name=name))),
        "the same again": seconds(lambda: queries.dataset(DatasetQuery(name=name))),
        "a name that nobody has": seconds(unknown),
    }
    more = [
        Message(topic="node", partition=1, offset=at, key=b"", value=value)
        for at, value in enumerate(events_of(applications, jobs))
    ]
    store.write_events(event_batch(f"node/{time.time_ns()}", more))
    measured["a list after one more application"] = seconds(lambda: queries.datasets(DatasetsQuery()))
    return measured


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - began, 3), round(time.process_time() - used, 3)


def page(figures: dict[str, Any]) -> str:
    rows = [(what, f"{took:.2f}", f"{used:.2f}") for what, (took, used) in figures["seconds"].items()]
    return (
        f"# Datasets of {figures['applications']:,} applications\n\n"
        f"`python -m perf.datasets`: {figures['jobs']} jobs; each application reads four datasets of {FILES} "
        f"files and writes two. At most {figures['MB of memory, at most']:,} MB of memory.\n\n"
        f"{table(('', 's', 's of the processor'), rows)}\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())
