from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

from spark_agent import contract
from spark_agent.sql.runtime.coarse_queries import CoarseQueries
from spark_agent.sql.runtime.iceberg_deletes import IcebergDeletes
from spark_agent.sql.runtime.planned_query import PlanningCall
from spark_agent.sql.runtime.removed_rows import RemovedRows

CALL = PlanningCall.parse("SparkSession.sql@7")
OTHER = PlanningCall.parse("SparkSession.sql@8")
GONE = "these rows were deleted: version 42 of /t is without them"


class Java:
    """What IcebergDelete.java says of a statement. `removed` is that, or why it is not known."""

    def __init__(self, removed: dict[str, Any] | str = "", *, is_known: bool = True) -> None:
        self._removed, self._is_known = removed, is_known
        self.ends = 0

    def describe(self) -> str:
        return json.dumps({"table": "db.t", "location": "file:/t", "format": "parquet"})

    def end(self) -> None:
        self.ends += 1

    def removed(self, application: str, most_vectors: int, most_runs: int) -> str:
        assert application == "app"
        if not self._is_known:
            raise RuntimeError(self._removed)
        return json.dumps(self._removed) if self._removed else ""


class World:
    """One application."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.gaps: list[str] = []
        publisher = SimpleNamespace(
            emit=self.emit,
            publish_manifest=lambda fields: self.emit(contract.RUN_COMMITTED, **fields),
            gap=lambda reason, node=None: self.gaps.append(reason),
        )
        numbers = itertools.count(10)
        scope = SimpleNamespace(next_number=lambda: next(numbers))
        session: Any = SimpleNamespace(events=publisher, scope=scope, application_id="app")
        catalyst: Any = SimpleNamespace(iceberg=SimpleNamespace(delete=lambda plan: plan.java))
        self.deletes = IcebergDeletes(session, catalyst, RemovedRows(session, CoarseQueries(session)))

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.events.append((kind, fields))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [fields for one, fields in self.events if one == kind]

    def begin(
        self, java: Java | None, kind: str = "DeleteFromTableWithFilters", call: PlanningCall = CALL
    ) -> int | None:
        return self.deletes.begin(SimpleNamespace(java=java, table=lambda: None), kind, call, "job.py:3")

    def run(self, java: Java, kind: str = "DeleteFromTableWithFilters", *, is_failed: bool = False) -> None:
        number = self.begin(java, kind)
        assert number is not None
        assert self.deletes.ends(number, is_failed=is_failed)
        assert not self.deletes.ends(number)


def file(path: str, rows: int, deleted: str | None = None) -> dict[str, Any]:
    return {"path": f"file:/t/{path}", "rows": rows, "size": 10, "deleted": deleted}


def test_rows_of_whole_files_are_a_source_and_what_became_of_them_a_sink() -> None:
    world = World()
    world.run(Java({"version": "42", "files": [file("a.parquet", 5), file("b.parquet", 4, "1-3")]}))
    source, sink = world.of(contract.NODE_REGISTERED)
    assert (source["name"], source["kind"], source["description"]) == ("whole files", "source", "db.t")
    assert (sink["name"], sink["reason"]) == ("DELETE: deleted rows", GONE)
    assert (sink["dataset"]["operation"], sink["dataset"]["version"]) == ("delete", "42")
    [files] = world.of(contract.PARTITIONS)
    parts = [(part["path"], part["first"], part["row"]) for part in files["partitions"][0]["parts"]]
    assert parts == [("/t/a.parquet", 0, 0), ("/t/b.parquet", 5, 0), ("/t/b.parquet", 6, 3)]
    [run] = world.of(contract.RUN_COMMITTED)
    assert (run["input"], run["nodes"], run["outputs"]) == (source["node"], [sink["node"]], 7)
    assert not world.gaps


def test_a_truncate_has_its_own_name() -> None:
    world = World()
    world.run(Java({"version": "42", "files": [file("a.parquet", 5)]}), "TruncateTable")
    assert world.of(contract.NODE_REGISTERED)[1]["name"] == "TRUNCATE: deleted rows"


def test_a_statement_that_removes_nothing_says_nothing() -> None:
    world = World()
    world.run(Java())
    world.run(Java("not seen", is_known=False), is_failed=True)
    assert not world.events
    assert not world.gaps


def test_what_is_not_known_is_a_gap() -> None:
    world = World()
    world.run(Java("another one ran at the same time", is_known=False))
    [gap] = world.gaps
    assert "another one ran at the same time" in gap
    source, sink = world.of(contract.NODE_REGISTERED)
    assert (source["name"], sink["name"], sink["exact"]) == ("whole files", "DELETE", False)


def test_of_another_table_nothing_begins() -> None:
    world = World()
    assert world.begin(None) is None
    world.deletes.end_all()
    assert not world.events


def test_a_statement_ends_where_its_thread_goes_on() -> None:
    world, java = World(), Java({"version": "42", "files": [file("a.parquet", 5)]})
    world.begin(java)
    world.deletes.see(OTHER)
    assert java.ends == 0
    world.deletes.see(CALL)
    world.deletes.see(CALL)
    assert java.ends == 1
    world.deletes.end_all()
    assert world.of(contract.RUN_COMMITTED)
