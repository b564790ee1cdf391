from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from spark_agent import contract
from spark_agent.sql.runtime.coarse_queries import CoarseQueries
from spark_agent.sql.runtime.planned_query import PlanningCall
from spark_agent.sql.runtime.removed_rows import RemovedRows
from spark_agent.sql.runtime.whole_file_deletes import WholeFileDeletes

METRICS = {"numRemovedFiles": 1, "numRemovedBytes": 10, "numDeletedRows": 3, "executionTimeMs": 77}


class Events:
    """What is published."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.gaps: list[str] = []

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.events.append((kind, fields))

    def publish_manifest(self, fields: dict[str, Any]) -> None:
        self.emit(contract.RUN_COMMITTED, **fields)

    def gap(self, reason: str, node: int | None = None) -> None:
        self.gaps.append(reason)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [fields for one, fields in self.events if one == kind]


class Metrics:
    """Of a command, as Scala has them."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def apply(self, name: str) -> Any:
        return SimpleNamespace(value=lambda: self._counts[name])


def command(**counts: int) -> Any:
    path = SimpleNamespace(toString=lambda: "file:/t")
    log = SimpleNamespace(dataPath=lambda: path, unsafeVolatileSnapshot=lambda: snapshot)
    metadata = SimpleNamespace(partitionColumns=lambda: ["p"])
    snapshot = SimpleNamespace(version=lambda: 0, metadata=lambda: metadata)
    table = SimpleNamespace(
        deltaLog=lambda: log, catalogTable=lambda: SimpleNamespace(isDefined=lambda: False)
    )
    return SimpleNamespace(
        metrics=lambda: Metrics({**METRICS, **counts}),
        deltaLog=lambda: log,
        child=lambda: SimpleNamespace(table=lambda: table),
    )


def call(method: str = "", *classes: str, transaction: str = "tx") -> PlanningCall:
    """A plan that Delta Lake has made in thread 7; without `method` one that the user has."""
    if not method:
        return PlanningCall.parse("SparkSession.sql@7")
    work: dict[str, Any] = {"method": method, "classes": classes}
    if transaction:
        work |= {
            "transaction": transaction,
            "table": "file:/t",
            "version": 0,
            "partitions": [],
            "names_in_log": [],
            "catalog": [],
        }
    return PlanningCall.parse(f"SparkSession.sql@7|{json.dumps(work)}")


SCANNING = call("filesForScan", "DataSkippingReaderBase", "OptimisticTransaction", "DeleteCommand")
OTHERS = call("writeFiles", "TransactionalWrite", "DeleteCommand", transaction="another")
COMPACTING = call("writeFiles", "TransactionalWrite", "OptimizeExecutor", "AutoCompact", "DeleteCommand")
WRITING = call("writeFiles", "TransactionalWrite", "OptimisticTransaction", "DeleteCommand")


@dataclass
class World:
    """One application, and the log of a table `/t` with these commits from version 1 on."""

    commits: list[list[dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.events = Events()
        numbers = itertools.count(10)
        context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
        session: Any = SimpleNamespace(
            events=self.events, scope=SimpleNamespace(next_number=lambda: next(numbers)), context=context
        )
        catalyst: Any = SimpleNamespace(items=list)
        self.vectors = SimpleNamespace(rows=lambda *_: "1-3")
        self.deletes = WholeFileDeletes(
            session, catalyst, RemovedRows(session, CoarseQueries(session)), self.vectors, self.read
        )

    def read(self, path: str) -> str | None:
        version = int(path.rpartition("/")[2].partition(".")[0])
        if not 1 <= version <= len(self.commits):
            return None
        return "\n".join(map(json.dumps, self.commits[version - 1]))

    def run(
        self, *plans: PlanningCall, kind: str = "DeleteCommand", is_failed: bool = False, **counts: int
    ) -> None:
        """A DELETE for which these plans are made."""
        self.deletes.see(None, call(), lambda: "")
        number = self.deletes.begin(command(**counts), kind, call(), "job.py:3")
        for plan in plans:
            self.deletes.see(None, plan, lambda: "")
        assert self.deletes.ends(number, is_failed=is_failed)
        assert not self.deletes.ends(number)

    @property
    def deleted(self) -> list[tuple[str, str]]:
        """(name, reason) of the sinks."""
        nodes = self.events.of(contract.NODE_REGISTERED)
        return [(node["name"], node["reason"]) for node in nodes if node["kind"] == "sink" and node["exact"]]


def commit(operation: str = "DELETE", *, transaction: str = "tx", **file: Any) -> list[dict[str, Any]]:
    said = {name: str(count) for name, count in METRICS.items()}
    removed = {"path": "a.parquet", "size": 10, "stats": json.dumps({"numRecords": 5}), **file}
    return [
        {"commitInfo": {"operation": operation, "txnId": transaction, "operationMetrics": said}},
        {"remove": removed},
    ]


GONE = "these rows were deleted: version {} of /t is without them"


def test_rows_of_whole_files_are_a_source_and_what_became_of_them_a_sink() -> None:
    world = World([commit(transaction="another"), commit()])
    world.run(SCANNING)
    source, sink = world.events.of(contract.NODE_REGISTERED)
    assert (source["kind"], source["node"], source["relation"]) == ("source", 10, contract.SOURCE)
    assert (sink["kind"], sink["node"], sink["relation"]) == ("sink", 11, contract.IDENTITY)
    assert (sink["dataset"]["operation"], sink["dataset"]["version"]) == ("delete", "2")
    assert world.deleted == [("DELETE: deleted rows", GONE.format(2))]
    [files] = world.events.of(contract.PARTITIONS)
    [part] = files["partitions"][0]["parts"]
    assert (files["node"], part["path"], part["first"], part["row"]) == (10, "/t/a.parquet", 0, 0)
    [run] = world.events.of(contract.RUN_COMMITTED)
    assert (run["input"], run["nodes"], run["inputs"], run["outputs"]) == (10, [11], 5, 5)
    assert not world.events.gaps


def test_rows_that_were_deleted_before_are_left_out() -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 2}
    world = World([commit(deletionVector=vector)])
    world.run(SCANNING)
    [run] = world.events.of(contract.RUN_COMMITTED)
    assert run["outputs"] == 3


def test_a_delete_whose_plans_read_rows_is_told_by_these() -> None:
    world = World([commit()])
    world.run(SCANNING, WRITING)
    assert not world.events.events


def test_files_that_are_compacted_behind_a_delete_are_none_of_its_rows() -> None:
    world = World([commit()])
    world.run(SCANNING, COMPACTING)
    assert world.deleted == [("DELETE: deleted rows", GONE.format(1))]
    assert not world.events.gaps


def test_a_delete_that_removes_no_file_says_nothing() -> None:
    world = World()
    world.run(SCANNING, numRemovedFiles=0)
    world.run(SCANNING, is_failed=True)
    assert not world.events.events
    assert not world.events.gaps


def test_what_is_not_known_is_a_gap() -> None:
    cases = [
        ([commit(stats="{}")], [SCANNING], "how many rows a.parquet had"),
        (
            [commit()],
            [call("x", "Snapshot", "DeleteCommand", transaction="")],
            "its transaction was not seen",
        ),
        ([], [SCANNING], "its commit was not seen"),
        ([commit()], [SCANNING, OTHERS], "another one ran at the same time"),
    ]
    for commits, plans, why in cases:
        world = World(commits)
        world.run(*plans)
        assert world.deleted == []
        [gap] = world.events.gaps
        assert why in gap
        source, sink = world.events.of(contract.NODE_REGISTERED)
        assert {source["dataset"]["name"], sink["dataset"]["name"]} == {"/t"}
        assert source["relation"] == contract.CARRIED
        assert not source["exact"]


def test_a_truncate_is_known_by_what_it_counted() -> None:
    other = commit("TRUNCATE")
    other[0]["commitInfo"]["operationMetrics"]["executionTimeMs"] = "78"
    world = World([other, commit("DELETE"), commit("TRUNCATE")])
    world.run(kind="TruncateDeltaTableCommand")
    assert world.deleted == [("TRUNCATE: deleted rows", GONE.format(3))]


def test_a_write_that_deletes_first_is_told_once_it_is_committed() -> None:
    world = World([commit("WRITE")])
    world.deletes.see(SimpleNamespace(), SCANNING, lambda: "job.py:4")
    assert world.deleted == []
    world.deletes.end_all()
    assert world.deleted == [("DELETE: deleted rows", GONE.format(1))]


def test_of_a_write_that_reads_what_it_deletes_nothing_more_is_told() -> None:
    world = World([commit("WRITE")])
    for plan in (SCANNING, WRITING):
        world.deletes.see(SimpleNamespace(), plan, lambda: "job.py:4")
    world.deletes.end_all()
    assert not world.events.events
