from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.errors import UnavailableError
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.store.flow_store import DeltaFlowStore, FlowStore
from lineage_service.store.location import KEEP_COPIES_S, StoreLocation
from lineage_service.store.maintenance import Maintenance
from lineage_service.store.maintenance_pass import MaintenanceOptions, one_pass
from lineage_service.store.tables import TABLES
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.tracing.query import open_applications
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.flow_store_suite import FlowStoreSuite, flows, state
from tests.support.lineage_messages import APP, block, event, messages


class FarPlace(StoreLocation):
    """A folder that is treated like an object store."""

    def __init__(self, folder: Path, copies: Path) -> None:
        super().__init__(folder, copies)
        folder.mkdir(parents=True, exist_ok=True)
        self.uri = folder.as_uri()
        self.is_local = False


@pytest.fixture
def far(tmp_path: Path) -> FarPlace:
    return FarPlace(tmp_path / "far away", tmp_path / "copies")


class TestFarFlowStore(FlowStoreSuite):
    @pytest.fixture
    def store(self, far: FarPlace) -> FlowStore:
        return DeltaFlowStore(far)


def write(store: FlowStore, run: int, batches: int, application_id: str = APP) -> None:
    for at in range(batches):
        batch = flows(
            block(run, at, application_id=application_id, base_out=2 * at),
            first=at,
            source=f"group/flow-{run}",
        )
        store.write_flows(batch)


@pytest.mark.parametrize("name", ["plain", "with space"])
def test_a_url_of_a_folder_is_that_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    write(DeltaFlowStore(folder.as_uri()), 1, 2)
    assert (folder / "flows" / "_delta_log").is_dir()
    assert state(DeltaFlowStore(folder)) == state(DeltaFlowStore(folder.as_uri()))


@pytest.mark.parametrize("application_id", ["app.1", "a:b", "x_y-z"])
def test_files_are_found_whatever_the_application_is_called(far: FarPlace, application_id: str) -> None:
    for store in (DeltaFlowStore(far), DeltaFlowStore(Path(far.uri.removeprefix("file://")).parent / "near")):
        write(store, 1, 2, application_id)
        assert sorted(store.receipts(application_id)) == [(1, 0), (1, 1)]
        Maintenance(store).compact(application_id)
        assert len(store.files("flows", application_id)) == 1
        assert Maintenance(store).remove_old_files(0) == 4
        assert sorted(store.receipts(application_id)) == [(1, 0), (1, 1)]
        store.delete(application_id)
        assert store.receipts(application_id) == []


@pytest.mark.parametrize("application_id", ["app.1", "a:b"])
def test_the_bounds_of_files_are_those_of_their_rows(far: FarPlace, application_id: str) -> None:
    for store in (DeltaFlowStore(far), DeltaFlowStore(Path(far.uri.removeprefix("file://")).parent / "near")):
        assert store.bounds(application_id) == {}
        for at, name in enumerate((application_id, application_id, "another")):
            columns = {"out": [9 + at, 5], "in": [8, 7]}
            winners = block(1, at, contract.WINNERS, columns, application_id=name, node=3 + at)
            store.write_flows(flows(winners, first=at))
        for files in (2, 1):
            bounds = store.bounds(application_id)
            assert list(bounds) == store.files("annotations", application_id)
            assert len(bounds) == files
            for path, of_file in bounds.items():
                rows = pq.read_table(path, partitioning=None)
                assert of_file.keys() == {"node", "run", "pos", "value"}
                for column, of_column in of_file.items():
                    assert of_column == (pc.min(rows[column]).as_py(), pc.max(rows[column]).as_py())
            Maintenance(store).compact(application_id)


def test_each_file_is_copied_once_and_goes_when_nothing_asked_for_it_in_a_day(
    far: FarPlace, tmp_path: Path
) -> None:
    store = DeltaFlowStore(far)
    write(store, 1, 3)
    [*copies] = store.files("flows", APP)
    made = {path: Path(path).stat().st_ino for path in copies}
    assert store.files("flows", APP) == copies
    assert {path: Path(path).stat().st_ino for path in copies} == made
    assert {Path(path).parent for path in copies} == {tmp_path / "copies"}
    old = time.time() - 2 * KEEP_COPIES_S
    for path in copies[1:]:
        os.utime(path, (old, old))
    FarPlace(tmp_path / "far away", tmp_path / "copies").files("flows", [])
    assert [Path(path).exists() for path in copies] == [True, False, False]
    assert state(store)[("flows", APP)]


def test_an_application_that_stays_open_has_its_copies_for_as_long(
    far: FarPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeltaFlowStore(far)
    write_application(store)
    questions = LineageQueries(store, time_budget_s=60)
    asked = TraceQuery(direction="backward", node="1", partition=0, offset=0, values=True)
    before = questions.trace(APP, asked)
    assert before.nodes[0].records[0].value == "one"
    for path in (tmp_path / "copies").iterdir():  # nobody asked for a day, and another process swept
        path.unlink()
    monkeypatch.setattr(open_applications, "_FILES_LISTED_S", 0.0)
    for question in (asked, replace(asked, direction="forward", node="0")):
        assert questions.trace(APP, question).nodes
    assert questions.records(APP, RecordQuery(node="1", text="one")).records


def test_files_that_went_within_a_question_are_an_error_that_can_be_tried_again(
    far: FarPlace, tmp_path: Path
) -> None:
    store = DeltaFlowStore(far)
    write_application(store)
    questions = LineageQueries(store, time_budget_s=60)
    assert questions.records(APP, RecordQuery(node="1", text="one")).records
    for path in (tmp_path / "copies").iterdir():
        path.unlink()
    with pytest.raises(UnavailableError, match="ask again"):
        questions.records(APP, RecordQuery(node="1", text="one"))


def write_application(store: FlowStore) -> None:
    told = [
        event(contract.APPLICATION_STARTED, name="job"),
        *(
            event(contract.NODE_REGISTERED, node=node, name=kind, kind=kind, relation=relation, exact=True)
            for node, kind, relation in ((0, "source", contract.SOURCE), (1, "operator", contract.FLOWS))
        ),
        event(contract.LINK, source=0, target=1, port=0),
        event(contract.RUN_COMMITTED, run=1, split=0, input=0, nodes=[1], inputs=2, outputs=1, blocks=2),
    ]
    store.write_events(event_batch("topic/0", messages(*told)))
    made = [
        block(1, 0, contract.POSITIONS, {"in": [1]}, node=1),
        block(1, 1, contract.VALUES, {"text": [("str", "one")]}, node=1),
    ]
    store.write_flows(flow_batch("flows/0", messages(*made)))


def test_a_file_that_is_gone_is_an_error_that_can_be_tried_again(far: FarPlace) -> None:
    store = DeltaFlowStore(far)
    write(store, 1, 2)
    for path in Path(far.uri.removeprefix("file://").replace("%20", " ")).glob("flows/*/*.parquet"):
        path.unlink()
    with pytest.raises(StoreUnavailableError):
        store.table("flows", APP)


def _write_to(url: str, run: int) -> None:
    write(DeltaFlowStore(url), run, 5)


@pytest.mark.thorough
def test_processes_share_a_store_in_s3_and_maintenance_works_on_it(bucket: str, tmp_path: Path) -> None:
    url = f"{bucket}/some/flows"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write_to, args=(url, run)) for run in (1, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    expected = MemoryFlowStore()
    write(expected, 1, 5)
    write(expected, 2, 5)
    store = DeltaFlowStore(StoreLocation(url, tmp_path / "copies"))
    assert state(store) == state(expected)
    said: list[str] = []
    one_pass(Maintenance(store), MaintenanceOptions(quiet_hours=1e-9, file_hours=0), said.append)
    assert state(store) == state(expected)
    assert {table: len(store.files(table, APP)) for table in TABLES} == {
        "events": 0,
        "blocks": 1,
        "flows": 1,
        "records": 0,
        "annotations": 0,
    }
    assert said[-1] == "20 files that nothing named any more are removed"
    one_pass(Maintenance(store), MaintenanceOptions(delete=(APP,), file_hours=0), said.append)
    assert state(store) == {}
    assert said[-1] == "2 files that nothing named any more are removed"


def test_a_copy_is_on_the_disk_before_it_has_its_name(far: FarPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    store, synced, sync = DeltaFlowStore(far), list[str](), os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().suffix)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    store.write_flows(flows(block()))
    assert synced == []  # the object store sees to what it took itself
    [copy] = store.files("flows", APP)
    assert len(synced) == 1
    assert synced != [Path(copy).suffix]
