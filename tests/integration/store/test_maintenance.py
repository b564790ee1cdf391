from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lineage_service.cli import main
from lineage_service.graph.graph_store import GraphUnavailableError
from lineage_service.store import delta_table, maintenance, maintenance_pass
from lineage_service.store.errors import StoreConflictError
from lineage_service.store.flow_store import DeltaFlowStore, FlowStore, Written
from lineage_service.store.maintenance import Maintenance
from lineage_service.store.maintenance_pass import MaintenanceOptions, one_pass
from lineage_service.store.tables import TABLES
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.testing.graph import MemoryGraph
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.flow_store_suite import SOURCE, events, flows, rows, state
from tests.support.lineage_messages import APP, block, event

NOW = 2_000_000_000.0
CONTEXT = multiprocessing.get_context("spawn")  # a fork would take the library's threads along, dead
BATCHES = 6
CONTENTS = ("flows", "records", "annotations")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "flows"


def fill(store: FlowStore, application_id: str = APP, *, is_ended: bool = True, prefix: str = "") -> None:
    """Runs whose rows interleave between the batches, keys, and an application that is complete."""
    texts = {"text": [("str", "a"), ("int", "1")]}
    for at in range(BATCHES):
        store.write_flows(
            flows(
                block(1 + at % 2, at // 2, application_id=application_id, base_out=100 - at),
                block(7, at, contract.KEYS, texts, application_id=application_id, base_out=2 * at),
                block(
                    *(7, BATCHES + at, contract.WINNERS, {"out": [100 - at], "in": [at]}),
                    application_id=application_id,
                ),
                first=3 * at,
                source=f"{prefix}{application_id}/flow-0",
            )
        )
        body = event(contract.LINK, application_id=application_id, time=at, port=at)
        store.write_events(events(body, first=at, source=f"{prefix}{application_id}/node-0"))
    last = [
        event(
            contract.RUN_COMMITTED,
            application_id=application_id,
            run=run,
            blocks=blocks,
            time=50,
        )
        for run, blocks in ((1, 3), (2, 3), (7, 2 * BATCHES))
    ]
    if is_ended:
        last.append(event(contract.APPLICATION_ENDED, application_id=application_id, time=99))
    store.write_events(events(*last, first=BATCHES, source=f"{prefix}{application_id}/node-0"))


def oracle(*application_ids: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    store = MemoryFlowStore()
    for application_id in application_ids:
        fill(store, application_id)
    return state(store)


def files(store: DeltaFlowStore, application_id: str = APP) -> dict[str, int]:
    return {name: len(store.files(name, application_id)) for name in TABLES}


def run_pass(store: DeltaFlowStore, graph: MemoryGraph | None = None, **options: Any) -> list[str]:
    said: list[str] = []
    one_pass(Maintenance(store, graph), MaintenanceOptions(**options), said.append)
    return said


# -- compaction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sorted_rows", [1, maintenance.SORTED_ROWS], ids=["node by node", "in one piece"])
def test_compaction_leaves_one_sorted_file_of_each_table_with_the_same_rows(
    folder: Path, sorted_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SORTED_ROWS", sorted_rows)
    store = DeltaFlowStore(folder)
    fill(store)
    assert files(store) == {"events": 7, **dict.fromkeys(("blocks", *CONTENTS), 6)}
    [said] = run_pass(store)
    assert said.startswith("app-1: compacted events, blocks, flows, records, annotations: 31 files to 5")
    assert files(store) == dict.fromkeys(TABLES, 1)
    assert state(store) == state(DeltaFlowStore(folder)) == oracle(APP)
    keys = {
        "flows": ("node", "run", "out_pos", "in_pos"),
        "records": ("node", "run", "kind", "pos"),
        "annotations": ("node", "run", "relation", "pos"),
    }
    for table, columns in keys.items():
        [path] = store.files(table, APP)
        held = [tuple(row[name] for name in columns) for row in pq.ParquetFile(path).read().to_pylist()]
        assert held == sorted(held)
    assert run_pass(store) == []


def alive(store: DeltaFlowStore, count: int) -> None:
    for at in range(count):
        body = event(contract.ALIVE, time=60_000 * at)
        store.write_events(events(body, first=at, source=f"{SOURCE}/alive"))


def test_of_signs_of_life_compaction_leaves_the_newest_and_of_all_else_everything(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    alive(store, 5)
    run_pass(store)
    found = store.events(APP)
    assert [each["time"] for each in found if each["type"] == contract.ALIVE] == [240_000]
    others = [each for each in found if each["type"] != contract.ALIVE]
    wanted = MemoryFlowStore()
    fill(wanted)
    assert sorted(map(repr, others)) == sorted(map(repr, wanted.events(APP)))
    alive(store, 7)  # the first five again: they were stored
    times = [message["time"] for message in store.events(APP) if message["type"] == contract.ALIVE]
    assert times == [240_000, 300_000, 360_000]


def test_events_of_an_application_that_still_runs_are_compacted_once_they_are_in_many_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeltaFlowStore(folder)
    fill(store, is_ended=False)
    assert run_pass(store, quiet_hours=1) == []
    monkeypatch.setattr(maintenance_pass, "MAX_EVENT_FILES", 6)
    [said] = run_pass(store, quiet_hours=1)
    assert said.startswith("app-1: compacted events: 7 files to 1")
    assert files(store) == {"events": 1, **dict.fromkeys(("blocks", *CONTENTS), 6)}


def test_compacted_files_are_laid_out_as_fresh_ones(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    run_pass(store)
    [path] = store.files("flows", APP)
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert "application_id" not in columns
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    for name in ("out_pos", "in_pos"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings
    assert store.files("flows", APP, node=1) == [path]
    assert store.files("flows", APP, node=2) == []


def test_an_application_that_runs_is_left_alone_until_it_is_quiet(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    fill(store, is_ended=False)
    assert run_pass(store) == []
    assert files(store)["flows"] == BATCHES
    said: list[str] = []
    one_pass(
        Maintenance(store),
        MaintenanceOptions(quiet_hours=2),
        said.append,
        clock=lambda: time.time() + 3 * 3600,
    )
    assert len(said) == 1
    assert files(store)["flows"] == 1


def test_offsets_and_known_blocks_outlive_a_compaction(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    other = DeltaFlowStore(folder)
    run_pass(other)
    source = f"{APP}/flow-0"
    assert store.offset(source) == DeltaFlowStore(folder).offset(source) == 3 * BATCHES
    for each in (store, DeltaFlowStore(folder)):
        assert each.write_flows(flows(block(1, 0), source=source)) == Written(repeated=1)
    sent_again = flows(block(1, 0), first=3 * BATCHES, source=source)
    assert DeltaFlowStore(folder).write_flows(sent_again) == Written(repeated=1)
    assert state(store) == oracle(APP)


def test_a_reader_of_an_older_snapshot_goes_on_until_old_files_are_removed(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    held = store.files("flows", APP)
    before = rows(store, "flows")
    run_pass(store)
    query = f"SELECT count(*) FROM read_parquet({held!r})"
    assert duckdb.sql(query).fetchall() == [(len(before),)]
    assert run_pass(store, file_hours=0) == ["31 files that nothing named any more are removed"]
    assert not any(Path(path).exists() for path in held)
    assert state(store) == oracle(APP)
    assert run_pass(store, file_hours=0) == []


@contextmanager
def while_sorting(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> Iterator[None]:
    """Something happens between the reading of a snapshot and the commit of its replacement."""
    write = maintenance.write_deltalake

    def write_after_it_happened(*arguments: Any, **options: Any) -> None:
        happen()
        write(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "write_deltalake", write_after_it_happened)
        yield


def test_rows_that_come_meanwhile_make_it_give_way_and_nothing_is_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    late = flows(block(9), first=3 * BATCHES, source=f"{APP}/flow-0")
    expected = MemoryFlowStore()
    fill(expected)
    expected.write_flows(late)
    with while_sorting(monkeypatch, lambda: store.write_flows(late)):
        with pytest.raises(StoreConflictError):
            Maintenance(store).compact(APP, ["flows"])
    assert state(store) == state(expected)
    Maintenance(store).compact(APP)
    assert files(store) == dict.fromkeys(TABLES, 1)
    assert state(store) == state(expected)


def test_rows_of_other_applications_that_come_meanwhile_are_no_hindrance(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    with while_sorting(monkeypatch, lambda: fill(store, "app-2", prefix="b")):
        Maintenance(store).compact(APP)
    assert files(store) == dict.fromkeys(TABLES, 1)
    assert state(store) == oracle(APP, "app-2")


def test_of_two_compactions_at_once_one_gives_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    first = Maintenance(DeltaFlowStore(folder))
    with while_sorting(monkeypatch, lambda: _undisturbed(monkeypatch, first)):
        with pytest.raises(StoreConflictError):
            Maintenance(store).compact(APP)
    assert state(store) == oracle(APP)
    assert files(store)["events"] == 1


def _undisturbed(monkeypatch: pytest.MonkeyPatch, first: Maintenance) -> None:
    monkeypatch.setattr(maintenance, "write_deltalake", delta_table.write_deltalake)
    first.compact(APP)


# -- crashes ------------------------------------------------------------------------------------------


def _maintain_and_die(folder: Path, at: int, *, is_after: bool, options: MaintenanceOptions) -> None:
    """In a process of its own: killed before or after its commit number `at`."""
    commits = count()

    def dying(commit: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            number = next(commits)
            if number == at and not is_after:
                for argument in arguments[1:2]:
                    if hasattr(argument, "read_all"):
                        argument.read_all()  # the sort is done, and nothing written
                os.kill(os.getpid(), signal.SIGKILL)
            found = commit(*arguments, **options)
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return wrapped

    maintenance.write_deltalake = dying(maintenance.write_deltalake)
    delta_table.write_deltalake = dying(delta_table.write_deltalake)
    DeltaTable.delete = dying(DeltaTable.delete)  # type: ignore[method-assign]
    DeltaTable.vacuum = dying(DeltaTable.vacuum)  # type: ignore[method-assign]
    one_pass(Maintenance(DeltaFlowStore(folder)), options, print)


def _kill(folder: Path, at: int, *, is_after: bool, options: MaintenanceOptions) -> None:
    process = CONTEXT.Process(
        target=_maintain_and_die, args=(folder, at), kwargs={"is_after": is_after, "options": options}
    )
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.thorough
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("at", range(7))
def test_a_compaction_that_is_killed_loses_and_doubles_nothing(folder: Path, at: int, is_after: bool) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    fill(store, "app-2", prefix="b")
    # Commits 0 to 4 are the tables of app-1, 5 and 6 the first of app-2.
    _kill(folder, at, is_after=is_after, options=MaintenanceOptions())
    assert state(store) == state(DeltaFlowStore(folder)) == oracle(APP, "app-2")
    run_pass(store, file_hours=0)
    assert files(store) == files(store, "app-2") == dict.fromkeys(TABLES, 1)
    assert state(store) == oracle(APP, "app-2")
    assert len(list(folder.glob("*/*/*.parquet"))) == 2 * len(TABLES)


@pytest.mark.thorough
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("table", range(len(TABLES)))
def test_a_removal_of_old_files_that_is_killed_loses_nothing(
    folder: Path, table: int, is_after: bool
) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    # Commits 0 to 4 compact; then each table is asked what may go, and rid of it.
    _kill(folder, 6 + 2 * table, is_after=is_after, options=MaintenanceOptions(file_hours=0))
    assert state(store) == state(DeltaFlowStore(folder)) == oracle(APP)
    run_pass(store, file_hours=0)
    assert state(store) == oracle(APP)
    assert len(list(folder.glob("*/*/*.parquet"))) == len(TABLES)


@pytest.mark.thorough
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("at", range(6))
def test_a_deletion_that_is_killed_is_finished_by_the_next_pass(
    folder: Path, at: int, is_after: bool
) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    fill(store, "app-2", prefix="b")
    _kill(folder, at, is_after=is_after, options=MaintenanceOptions(delete=(APP,)))
    is_wanted = (at, is_after) != (0, False)  # before the mark nobody can know
    assert store.deleted([APP]) == ({APP} if is_wanted else set())
    assert not store.events(APP) or files(store)["flows"] == BATCHES  # no answer from a part of it
    run_pass(store, file_hours=0, delete=() if is_wanted else (APP,))
    assert state(store) == oracle("app-2")
    assert not list(folder.glob("*/*=app-1/*.parquet"))


# -- side by side -------------------------------------------------------------------------------------


def _write_on(folder: Path, application_id: str, number: int, batches: int) -> None:
    store = DeltaFlowStore(folder)
    for at in range(batches):
        batch = flows(
            block(number, at, application_id=application_id), first=at, source=f"group/flow-{number}"
        )
        _again(lambda batch=batch: store.write_flows(batch))  # type: ignore[misc] # mypy has no types for defaults
        body = event(contract.LINK, application_id=application_id, time=at, port=number)
        batch_of_events = events(body, first=at, source=f"group/node-{number}")
        _again(lambda batch=batch_of_events: store.write_events(batch))  # type: ignore[misc] # as above


def _again(work: Callable[[], object]) -> None:
    """What a consumer does about a conflict."""
    for _ in range(50):
        try:
            work()
        except StoreConflictError:
            continue
        return
    raise AssertionError("50 conflicts")


def _maintain(folder: Path, seconds: float, file_hours: int) -> None:
    maintained, until = Maintenance(DeltaFlowStore(folder)), time.monotonic() + seconds
    while time.monotonic() < until:
        one_pass(maintained, MaintenanceOptions(quiet_hours=1e-9, file_hours=file_hours), print)


@pytest.mark.thorough
def test_compactions_beside_writers_of_other_processes_lose_and_double_nothing(folder: Path) -> None:
    batches = 40
    store = DeltaFlowStore(folder)
    fill(store, "app-0")
    work = [(_write_on, (folder, "app-1", 1, batches)), (_write_on, (folder, "app-1", 2, batches))]
    work += [(_write_on, (folder, "app-2", 3, batches))]
    work += [(_maintain, (folder, 6.0, 1)), (_maintain, (folder, 6.0, 1))]
    processes = [CONTEXT.Process(target=target, args=arguments) for target, arguments in work]
    for process in processes:
        process.start()
    for process in processes:
        process.join(200)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    expected = MemoryFlowStore()
    fill(expected, "app-0")
    for number, application_id in ((1, "app-1"), (2, "app-1"), (3, "app-2")):
        for at in range(batches):
            each = block(number, at, application_id=application_id)
            expected.write_flows(flows(each, first=at, source=f"group/flow-{number}"))
            body = event(contract.LINK, application_id=application_id, time=at, port=number)
            expected.write_events(events(body, first=at, source=f"group/node-{number}"))
    assert state(store) == state(expected)
    assert files(store, "app-0") == dict.fromkeys(TABLES, 1)  # those that nobody wrote had their turn
    run_pass(store, quiet_hours=1e-9, file_hours=0)
    assert files(store) == {**dict.fromkeys(TABLES, 1), "records": 0, "annotations": 0}
    assert state(store) == state(expected)


@pytest.mark.thorough
def test_two_removals_of_old_files_at_once_are_no_error(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    fill(store)
    processes = [CONTEXT.Process(target=_maintain, args=(folder, 3.0, 0)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert state(store) == oracle(APP)


# -- deletion and retention ---------------------------------------------------------------------------


def test_deletion_takes_rows_files_and_graph(folder: Path) -> None:
    store, graph = DeltaFlowStore(folder), MemoryGraph()
    for application_id in (APP, "app-2"):
        fill(store, application_id)
        graph.write_events(store.events(application_id))
        graph.write_events(
            [decode_event(event(contract.NODE_REGISTERED, application_id=application_id, node=1))]
        )
    run_pass(store)
    said = run_pass(store, graph, delete=(APP,), file_hours=0)
    assert said[0].startswith("app-1: deleted, ")
    assert state(store) == oracle("app-2")
    assert not list(folder.glob("*/*=app-1/*.parquet"))
    assert {key for key in map(str, vars(graph).values()) if "app-1" in key} == set()
    assert run_pass(store, graph, delete=(APP,))[0] == "app-1: deleted, 0.0 MB (nothing of it was stored)"
    assert state(store) == oracle("app-2")


def test_a_graph_that_is_away_keeps_a_deletion_for_the_next_pass(folder: Path) -> None:
    class Away(MemoryGraph):
        def delete_application(self, application_id: str) -> None:
            raise GraphUnavailableError("Neo4j does not answer")

    store = DeltaFlowStore(folder)
    fill(store)
    with pytest.raises(GraphUnavailableError):
        run_pass(store, Away(), delete=(APP,))
    assert state(store) == oracle(APP)  # still whole, and going
    run_pass(store, MemoryGraph())
    assert state(store) == {}


def test_a_block_that_was_on_its_way_into_a_deleted_application_is_taken_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = DeltaFlowStore(folder), DeltaFlowStore(folder)
    store.write_flows(flows(block(1)))
    write = delta_table.write_deltalake

    def write_after_the_deletion(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(delta_table, "write_deltalake", write)
        other.delete(APP)
        write(*arguments, **options)

    monkeypatch.setattr(delta_table, "write_deltalake", write_after_the_deletion)
    store.write_flows(flows(block(2), first=1))
    assert state(store) == {}
    assert all(not store.files(table, APP) for table in TABLES)
    assert store.offset(SOURCE) == 2


def test_retention_takes_the_oldest_that_ended_and_never_one_that_runs(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    for number, ended in enumerate([3, 1, 2, None]):
        application_id = f"app-{number}"
        store.write_flows(flows(block(1, application_id=application_id), source=f"g/flow-{number}"))
        if ended is not None:
            body = event(contract.APPLICATION_ENDED, application_id=application_id, time=ended * 86_400_000)
            store.write_events(events(body, source=f"g/node-{number}"))

    def passed(**options: Any) -> list[str]:
        one_pass(
            Maintenance(store), MaintenanceOptions(**options), lambda _line: None, clock=lambda: 4.5 * 86_400
        )
        return store.applications()

    assert passed(keep_days=3.9) == ["app-0", "app-1", "app-2", "app-3"]
    assert passed(keep_days=3) == ["app-0", "app-2", "app-3"]
    some = sum(each.bytes for each in Maintenance(store).stored().values())
    assert passed(keep_bytes=some) == ["app-0", "app-2", "app-3"]
    assert passed(keep_bytes=some - 1) == ["app-0", "app-3"]
    assert passed(keep_bytes=0) == ["app-3"]


def test_replays_go_a_day_after_their_end_and_with_their_original(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    day = 86_400_000
    for number, (of, ended) in enumerate(
        [(None, 1), ("app-0", 2), ("app-0", 3), ("app-9", 3), ("app-0", None)]
    ):
        application_id = f"app-{number}"
        replay = {} if of is None else {"replay": {"of": of}}
        bodies = [event(contract.APPLICATION_STARTED, application_id=application_id, **replay)]
        if ended is not None:
            bodies.append(event(contract.APPLICATION_ENDED, application_id=application_id, time=ended * day))
        store.write_events(events(*bodies, source=f"g/node-{number}"))
    said: list[str] = []
    one_pass(Maintenance(store), MaintenanceOptions(), said.append, clock=lambda: 3.5 * 86_400)
    assert store.applications() == ["app-0", "app-2", "app-4"]
    assert [line.partition(", ")[0] for line in said if "deleted" in line] == [
        "app-1: deleted",
        "app-3: deleted",
    ]
    one_pass(
        Maintenance(store), MaintenanceOptions(delete=("app-0",)), said.append, clock=lambda: 3.5 * 86_400
    )
    assert store.applications() == []


def test_the_command_maintains_the_store_that_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_HOME", str(folder.parent / "home"))
    store = DeltaFlowStore(folder)
    fill(store)
    fill(store, "app-2", prefix="b")
    assert main.main(["maintain", "--store", str(folder), "--delete", "app-2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["app-2", "app-1"]
    assert state(store) == oracle(APP)


@pytest.mark.parametrize(
    "argv", [["--delete", "no/id"], ["--every", "soon"], ["--every", "0"], ["--keep-bytes=-1"]]
)
def test_options_that_cannot_be_understood_exit_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["maintain", *argv]) == 2
    assert capsys.readouterr().err.startswith("lineage maintain: ")
