"""Random programs that cache, checkpoint, fail and begin again, over RDDs whose records carry their sources.

Filters choose at random, so that two computations of a partition differ and whoever mixes them up is seen.
Nothing says beforehand what comes out: a record names the rows that it was made of, and is its own oracle.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel, TaskContext

from tests.support.lanes import sampled
from tests.support.spark.application import Application, part_rows, rows_at

pytestmark = pytest.mark.thorough

Run = Callable[..., tuple[Any, Application]]
Record = tuple[int, frozenset[str]]

ROWS = 20
STEPS = 16
MOST = 60  # records of an RDD, about
LEVELS = ("MEMORY_ONLY", "MEMORY_AND_DISK", "DISK_ONLY", "MEMORY_ONLY_2", "DISK_ONLY_2")


def is_chosen(_: Any) -> bool:
    return random.SystemRandom().random() < 0.7


def either(pair: tuple[Record, Record]) -> Record:
    (key, sources), (_, others) = pair
    return key, sources | others


def fails_once(record: Record) -> Record:
    if TaskContext.get().attemptNumber() == 0 and not is_chosen(record):
        raise ValueError("once")
    return record


def fails(record: Record) -> Record:
    if not is_chosen(record):
        raise ValueError("always")
    return record


def stops_early(records: Any) -> None:
    next(records, None)


def show(record: Record) -> str:
    return " ".join(sorted(record[1]))


#: name -> (the RDD, another, n) -> an RDD.
MAKING: dict[str, Callable[[Any, Any, int], Any]] = {
    "filter": lambda data, _, n: data.filter(is_chosen),
    "map": lambda data, _, n: data.map(lambda record: ((record[0] + n) % 5, record[1])),
    "mapPartitions": lambda data, _, n: data.mapPartitions(lambda it: (i for i in it if is_chosen(i))),
    "union": lambda data, other, _: data.union(other),
    "union of itself": lambda data, _, n: data.union(data),
    "union of unions": lambda data, other, _: data.union(other).union(data),
    "coalesce": lambda data, _, n: data.coalesce(n),
    "repartition": lambda data, _, n: data.repartition(n),
    "sortByKey": lambda data, _, n: data.sortByKey(numPartitions=n),
    "groupByKey": lambda data, _, n: data.groupByKey(n).mapValues(lambda values: frozenset().union(*values)),
    "join of itself": lambda data, _, n: data.filter(lambda record: record[0] == n).join(data, n).mapValues(
        lambda pair: pair[0] | pair[1]
    ),
    "cartesian": lambda data, other, n: data.filter(lambda i: i[0] == n).cartesian(other).map(either),
    "zip of itself": lambda data, _, n: data.zip(data).map(either),
    "zipWithIndex": lambda data, _, n: data.zipWithIndex().keys(),
    "fails once": lambda data, _, n: data.map(fails_once),
}  # fmt: skip
KEEPING: dict[str, Callable[[Any, str], Any]] = {
    "persist": lambda data, level: data.persist(getattr(StorageLevel, level)),
    "unpersist": lambda data, _: data.unpersist(),
    "drop": lambda data, _: data.unpersist(blocking=True),
    "checkpoint": lambda data, _: data.checkpoint(),
    "localCheckpoint": lambda data, _: data.localCheckpoint(),
}
TAKING: dict[str, Callable[[Any], Any]] = {
    "count": lambda data: data.count(),
    "take": lambda data: data.take(3),
    "collect": lambda data: data.collect(),
    "foreachPartition": lambda data: data.foreachPartition(stops_early),
    "fail": lambda data: data.map(fails).count(),
    "lookup": lambda data: data.lookup(1),
}


def save_some(context: Any, folder: Path, seed: int) -> list[str]:
    """Run a random program; what it did, for people."""
    chosen = random.Random(seed)
    line = context.textFile(str(folder / "in.txt"), 2)
    pool = [(line.filter(is_chosen).map(lambda i: (int(i) % 5, frozenset((i,)))), ROWS)]
    did: list[str] = []
    for step in range(STEPS):
        (data, size), (other, more) = chosen.choice(pool[-4:]), chosen.choice(pool)
        kind = chosen.choice(("make", "make", "keep", "take", "save")) if step < STEPS - 2 else "save"
        with contextlib.suppress(Exception):  # tasks fail on purpose, and some programs are not possible
            if kind == "make":
                name = chosen.choice(list(MAKING))
                did.append(name)
                size *= 3 if name.startswith("union") else 2 if "itself" in name else 1
                if size + more <= MOST or "union" not in name:
                    pool.append((MAKING[name](data, other, 1 + chosen.randrange(3)), size))
            elif kind == "keep":
                name = chosen.choice(["persist", "persist", *KEEPING])
                did.append(name)
                KEEPING[name](data, chosen.choice(LEVELS))
            elif kind == "take":
                name = chosen.choice(list(TAKING))
                did.append(name)
                TAKING[name](data)
            else:
                did.append("save")
                data.map(show).saveAsTextFile(str(folder / f"out-{step}"))
    return did


@pytest.mark.parametrize("seed", sampled([4, 22], 2))
def test_a_trace_is_right_or_says_that_it_is_a_bound(seed: int, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(ROWS)))

    def job(context: Any) -> list[str]:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))
        return save_some(context, tmp_path, seed)

    did, application = run(job, master="local[2,3]")
    outputs = [path for path in tmp_path.glob("out-*") if (path / "_SUCCESS").exists()]
    rows = [part_row for path in outputs for part_row in part_rows(path)]
    assert rows, did
    chosen = random.Random(seed)
    for part, row, text in chosen.sample(rows, min(40, len(rows))):
        trace = application.trace(direction="backward", path=str(part), row=row)
        sources = {("in.txt", int(part)) for part in text.split()}
        assert not trace.exact or rows_at(trace, "source") == sources, (did, part, row)
    for row in range(ROWS):
        trace = application.trace(direction="forward", path=str(source), row=row)
        found = {
            (record.source.path, record.source.row)
            for node in trace.nodes
            if node.kind == "sink"
            for record in node.records
            if record.source is not None and Path(record.source.path).parent in outputs
        }
        made = {(str(part), at) for part, at, text in rows if str(row) in text.split()}
        assert not trace.exact or found == made, (did, row)
