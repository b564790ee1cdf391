from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lineage_service.store import delta_table
from lineage_service.store.errors import StoreConflictError, StoreUnavailableError
from lineage_service.store.flow_store import DeltaFlowStore, FlowStore, Written
from lineage_service.store.maintenance import Maintenance
from lineage_service.store.tables import ROW_GROUP, TABLES
from spark_agent import contract
from tests.support.flow_store_suite import SOURCE, FlowStoreSuite, events, flows, rows, state
from tests.support.lineage_messages import APP, block, event


class TestDeltaFlowStore(FlowStoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FlowStore:
        return DeltaFlowStore(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "flows"


def test_a_second_process_sees_what_the_first_wrote(folder: Path) -> None:
    first, second = DeltaFlowStore(folder), DeltaFlowStore(folder)
    first.write_flows(flows(block(seq=0)))
    assert second.offset(SOURCE) == 1
    assert second.write_flows(flows(block(seq=0), block(seq=1))) == Written(rows=2, repeated=1)
    assert first.version() == second.version()
    assert state(first) == state(second) == state(DeltaFlowStore(folder))


def test_a_block_that_another_process_stored_is_known(folder: Path) -> None:
    first, second = DeltaFlowStore(folder), DeltaFlowStore(folder)
    second.write_flows(flows(block(7), source="group/flow-1"))  # the second knows the application by now
    first.write_flows(flows(block(1, 0)))
    assert second.write_flows(flows(block(1, 0), first=1)) == Written(repeated=1)
    assert sorted(second.receipts(APP)) == [(1, 0), (7, 0)]


def test_a_block_that_another_process_stored_meanwhile_is_known(folder: Path) -> None:
    first, second = DeltaFlowStore(folder), DeltaFlowStore(folder)
    first.write_flows(flows(block(seq=0)))
    second.write_flows(flows(block(seq=1), first=1))  # the partition moved to the second, and now back
    assert first.write_flows(flows(block(seq=1), block(seq=2), first=2)) == Written(rows=2, repeated=1)
    assert sorted(first.receipts(APP)) == [(1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_crash_between_the_tables_loses_and_doubles_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    others = (
        block(seq=1, relation=contract.KEYS, columns={"text": [("str", "a")]}),
        block(seq=3, relation=contract.WINNERS, columns={"out": [0], "in": [7]}),
    )
    batch = flows(block(seq=0), *others)
    crashing = DeltaFlowStore(folder)
    for name in ["flows", "records", "annotations", "blocks"][steps:]:
        monkeypatch.setattr(crashing._tables[name], "append", _crash)
    with pytest.raises(RuntimeError):
        crashing.write_flows(batch)
    store = DeltaFlowStore(folder)
    assert store.offset(SOURCE) is None
    # The batch comes again, cut differently, and with a copy of a block in it.
    store.write_flows(flows(block(seq=0), *others, block(seq=0), block(seq=2)))
    assert sorted(store.receipts(APP)) == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert sorted(row["in_pos"] for row in rows(store, "flows")) == [0, 1, 20, 21]
    assert len(rows(store, "records")) == len(rows(store, "annotations")) == 1


def test_annotations_have_a_table_from_their_first_rows_on_and_every_reader_notices(folder: Path) -> None:
    reader, other = DeltaFlowStore(folder), DeltaFlowStore(folder)
    other.write_flows(flows(block(seq=0)))
    assert sorted(path.name for path in folder.iterdir()) == ["blocks", "events", "flows", "records"]
    assert (rows(reader, "annotations"), reader.files("annotations", APP)) == ([], [])
    assert (reader.rows(APP)["annotations"], len(reader.version())) == (0, 5)
    assert not Maintenance(reader).compact(APP)
    before = reader.version()
    winners = block(seq=1, relation=contract.WINNERS, columns={"out": [0], "in": [1]})
    for at, store in enumerate((other, DeltaFlowStore(folder), reader)):
        assert store.write_flows(flows(winners, first=1)) == Written(rows=int(not at), repeated=int(at > 0))
    assert reader.version() != before
    assert [(row["pos"], row["value"]) for row in rows(reader, "annotations")] == [(0, 1)]
    reader.delete(APP)
    assert rows(other, "annotations") == []


def _crash(*_: object, **__: object) -> None:
    raise RuntimeError("crash")


def test_a_writer_whose_source_moved_on_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zombie, owner = DeltaFlowStore(folder), DeltaFlowStore(folder)
    write = delta_table.write_deltalake

    def write_after_the_owner_wrote(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(delta_table, "write_deltalake", write)
        owner.write_flows(flows(block(seq=0), block(seq=1)))
        write(*arguments, **options)

    monkeypatch.setattr(delta_table, "write_deltalake", write_after_the_owner_wrote)
    batch = flows(block(seq=0))
    with pytest.raises(StoreConflictError):
        zombie.write_flows(batch)
    assert zombie.write_flows(batch) == Written(repeated=1)  # trying again reads the store anew, and skips
    assert sorted(zombie.receipts(APP)) == [(1, 0), (1, 1)]
    assert len(rows(zombie, "flows")) == 4


def _write_source(folder: Path, number: int, commits: int) -> None:
    store = DeltaFlowStore(folder)
    for at in range(commits):
        batch = flows(block(number, at), first=at, source=f"group/flow-{number}")
        store.write_flows(batch)
        store.write_events(
            events(event(contract.LINK, time=at, port=number), first=at, source=f"group/node-{number}")
        )


def test_processes_that_start_at_once_all_succeed(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write_source, args=(folder, number, 5)) for number in range(1, 5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    store = DeltaFlowStore(folder)
    assert sorted(store.receipts(APP)) == [(run, seq) for run in range(1, 5) for seq in range(5)]
    assert len(rows(store, "flows")) == 2 * 20
    assert len(store.events(APP)) == 20


def test_threads_share_one_store(folder: Path) -> None:
    store = DeltaFlowStore(folder)

    def write(number: int) -> None:
        for at in range(5):
            store.write_flows(flows(block(number, at), first=at, source=f"group/flow-{number}"))
            store.files("flows", APP)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    assert len(rows(store, "flows")) == 2 * 20


@pytest.mark.thorough
def test_many_commits_are_joined_in_checkpoints(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    for at in range(230):
        store.write_events(events(event(contract.LINK), first=at))
    log = folder / "events" / "_delta_log"
    assert len(list(log.glob("*.checkpoint.parquet"))) >= 2
    assert DeltaFlowStore(folder).offset("group/node-0") == 230


def test_a_log_that_was_cleared_meanwhile_is_read_anew(folder: Path) -> None:
    idle, busy = DeltaFlowStore(folder), DeltaFlowStore(folder)
    assert idle.offset(SOURCE) is None
    for at in range(3):
        busy.write_flows(flows(block(seq=at), first=at))
    for name in ("flows", "blocks"):
        table = DeltaTable(str(folder / name))
        table.create_checkpoint()
        for version in range(table.version()):
            (folder / name / "_delta_log" / f"{version:020}.json").unlink()
    assert idle.write_flows(flows(block(seq=2), block(seq=3), first=2)) == Written(rows=2, repeated=1)
    assert sorted(DeltaFlowStore(folder).receipts(APP)) == [(1, 0), (1, 1), (1, 2), (1, 3)]


def test_flow_files_are_laid_out_as_the_architecture_says(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    columns = {"code": [(7 * k) % 1000 for k in range(contract.MAX_COLUMN_VALUES)]}
    store.write_flows(flows(*(block(seq=seq, relation=contract.CODES, columns=columns) for seq in range(2))))
    [path] = store.files("flows", APP)
    metadata = pq.ParquetFile(path).metadata
    whole, rest = divmod(2 * contract.MAX_COLUMN_VALUES, ROW_GROUP)
    sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    assert sizes == [*[ROW_GROUP] * whole, rest]
    columns_of = {
        metadata.row_group(0).column(at).path_in_schema: metadata.row_group(0).column(at)
        for at in range(metadata.num_columns)
    }
    for name in ("out_pos", "in_pos"):
        assert "DELTA_BINARY_PACKED" in columns_of[name].encodings
        assert not columns_of[name].has_dictionary_page
    assert {column.compression for column in columns_of.values()} == {"ZSTD"}
    assert all(column.is_stats_set for column in columns_of.values())
    assert not any(column.has_column_index for column in columns_of.values())  # of pages there are none


def test_duckdb_reads_the_files_of_one_application(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    store.write_flows(flows(block(1, columns={"in": [4, 5]}), block(2, application_id="app-2")))
    found = duckdb.sql(
        f"SELECT node, run, out_pos, in_pos FROM read_parquet({store.files('flows', APP)!r})"
    ).fetchall()
    assert found == [(1, 1, 0, 4), (1, 1, 1, 5)]


def test_files_without_a_node_are_left_out(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    store.write_flows(flows(block(1, node=1)))
    store.write_flows(flows(block(2, node=5), first=1))
    assert len(store.files("flows", APP)) == 2
    assert len(store.files("flows", APP, node=5)) == 1
    assert store.files("flows", APP, node=9) == []


def test_a_folder_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="file/flows"):
        DeltaFlowStore(tmp_path / "file" / "flows")


def test_a_store_that_went_away_is_an_error_that_can_be_tried_again(folder: Path) -> None:
    store = DeltaFlowStore(folder)
    store.write_flows(flows(block(seq=0)))
    hidden = folder.with_name("hidden")
    folder.rename(hidden)
    folder.write_text("a file")
    with pytest.raises(StoreUnavailableError):
        store.write_flows(flows(block(seq=1), first=1))
    folder.unlink()
    hidden.rename(folder)
    assert store.write_flows(flows(block(seq=1), first=1)) == Written(rows=2)


OTHER_COLUMNS = {
    "lacks": lambda schema: schema.remove(len(schema) - 1),
    "has more": lambda schema: schema.append(pa.field("newer", pa.int64())),
    "other type": lambda schema: schema.set(2, schema.field(2).with_type(pa.float64())),
}


@pytest.mark.parametrize("how", OTHER_COLUMNS)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_another_version_is_neither_read_nor_written(folder: Path, table: str, how: str) -> None:
    other = OTHER_COLUMNS[how](TABLES[table])
    DeltaTable.create(str(folder / table), other, partition_by=["application_id"])
    with pytest.raises(StoreUnavailableError, match="made by another version") as refused:
        DeltaFlowStore(folder)
    column = {"lacks": TABLES[table].names[-1], "has more": "newer", "other type": TABLES[table].names[2]}
    assert f"differs in {column[how]}." in str(refused.value)
    assert str(folder / table) in str(refused.value)


TEXTS = {"text": [("str", "a")]}
MESSAGES = [
    message
    for seq in range(0, 8, 2)
    for message in (
        block(seq=seq),
        block(seq=seq + 1, relation=contract.KEYS, columns=TEXTS)
        if seq % 4
        else block(seq=seq + 1, relation=contract.WINNERS, columns={"out": [seq], "in": [1]}),
    )
]


@pytest.mark.parametrize("cuts", [(3,), (6,), (3, 6), (8,), (2, 8)])
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("table", ["flows", "records", "annotations", "blocks"])
def test_an_owner_that_hangs_in_the_middle_of_a_batch_and_the_next_one_store_everything_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, table: str, is_after: bool, cuts: tuple[int, ...]
) -> None:
    hanging, owner = DeltaFlowStore(folder), DeltaFlowStore(folder)
    append = hanging._tables[table].append

    def next_owner_writes() -> None:
        monkeypatch.setattr(hanging._tables[table], "append", append)
        for since, until in zip((0, *cuts), cuts, strict=False):
            owner.write_flows(flows(*MESSAGES[since:until], first=since))

    def hang(*arguments: Any, **options: Any) -> int:
        if not is_after:
            next_owner_writes()
        count = append(*arguments, **options)
        if is_after:
            next_owner_writes()
        return count

    monkeypatch.setattr(hanging._tables[table], "append", hang)
    try:
        hanging.write_flows(flows(*MESSAGES[:6]))
    except StoreConflictError:
        hanging.write_flows(flows(*MESSAGES[:6]))  # as its consumer does while it does not know
    owner.write_flows(flows(*MESSAGES))
    assert sorted(owner.receipts(APP)) == [(1, seq) for seq in range(8)]
    whole = DeltaFlowStore(folder.parent / "whole")
    whole.write_flows(flows(*MESSAGES))
    assert state(DeltaFlowStore(folder)) == state(whole)
