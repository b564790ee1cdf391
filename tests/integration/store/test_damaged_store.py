"""Files of the flow store that are damaged: said in one line, of one application, and no other's loss."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lineage_service.completeness import completeness_of
from lineage_service.monitoring.incomplete_applications import IncompleteWatch
from lineage_service.queries import TraceQuery
from lineage_service.store import delta_table
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.store.maintenance import Maintenance
from lineage_service.store.maintenance_pass import MaintenanceOptions, one_pass
from lineage_service.store.tables import TABLES
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from spark_agent.emitter.lineage_api import LineageApi
from tests.support.api_store import told
from tests.support.flow_store_suite import events, flows, rows, state
from tests.support.lanes import sampled
from tests.support.lineage_messages import APP, block, event

BROKEN, SOUND = "broken", "sound"
#: The tables that have rows of both.
FILLED = tuple(name for name in TABLES if name != "annotations")
TEN_YEARS_S = 10 * 365 * 86_400


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of two applications that have ended."""
    store = DeltaFlowStore(tmp_path / "flows")
    for name in (BROKEN, SOUND):
        with LineageApi(told(store, monkeypatch, name), f"job {name}") as lineage:
            lineage.register(0, "read")
            lineage.register(1, "write")
            lineage.link(0, 1)
            for row in range(3):
                lineage.capture(f"0#{row}", f"read#0#{row}", f"row {row}")
                lineage.capture(f"1#{row}", f"row {row}", f"write#0#{row}")
    return tmp_path / "flows"


def damage(folder: Path, table: str, how: str) -> None:
    """The files of one application; what is sound is read by others first, for nothing may be kept."""
    for file in (folder / table / f"application_id={BROKEN}").glob("*.parquet"):
        data = file.read_bytes()
        if how == "cut off":
            file.write_bytes(data[: len(data) // 2])
        elif how == "empty":
            file.write_bytes(b"")
        else:
            file.write_bytes(b"PAR1" + bytes(len(data) - 8) + b"PAR1")


DAMAGES = pytest.mark.parametrize("how", ["cut off", "empty", "zeros"])


@DAMAGES
@pytest.mark.parametrize("table", FILLED)
def test_a_question_about_it_says_which_file_and_what_to_do(folder: Path, table: str, how: str) -> None:
    damage(folder, table, how)
    questions = LineageQueries(DeltaFlowStore(folder), time_budget_s=30)
    query = TraceQuery(direction="backward", node="1", partition=0, offset=0)
    with pytest.raises(StoreUnavailableError) as refused:
        questions.trace(BROKEN, query)
    assert "\n" not in str(refused.value)
    assert "damaged" in str(refused.value) or table in str(refused.value)
    other = questions.trace(SOUND, query)
    assert [len(node.records) for node in other.nodes] == [1, 1]
    # Which files the damaged one wrote, and that the other one may have read, is in its events.
    assert other.complete == (table != "events")


@DAMAGES
@pytest.mark.parametrize("table", ["events", "blocks"])
def test_a_list_has_the_others_and_says_what_is_wrong_with_it(folder: Path, table: str, how: str) -> None:
    damage(folder, table, how)
    sound, broken = LineageQueries(DeltaFlowStore(folder), time_budget_s=30).applications()
    assert (sound.name, sound.complete, sound.missing) == ("job sound", True, "")
    assert (broken.application_id, broken.complete) == (BROKEN, False)
    assert "cannot be" in broken.missing
    found = IncompleteWatch(lambda: DeltaFlowStore(folder)).look(30).applications
    assert [(each.application_id, "cannot be" in each.missing) for each in found] == [(BROKEN, True)]


@DAMAGES
def test_retention_and_compaction_go_on_with_the_others(folder: Path, how: str) -> None:
    damage(folder, "events", how)
    store, said = DeltaFlowStore(folder), list[str]()
    with pytest.raises(StoreUnavailableError):
        one_pass(
            Maintenance(store),
            MaintenanceOptions(keep_days=1),
            said.append,
            clock=lambda: time.time() + TEN_YEARS_S,
        )
    assert store.files("flows", SOUND) == []
    assert store.files("flows", BROKEN)
    assert {line.partition(":")[0] for line in said} == {BROKEN, SOUND}


def test_what_is_damaged_can_be_deleted(folder: Path) -> None:
    damage(folder, "events", "cut off")
    store = DeltaFlowStore(folder)
    one_pass(Maintenance(store), MaintenanceOptions(delete=(BROKEN,)), lambda line: None)
    assert store.applications() == [SOUND]


# -- the log ---------------------------------------------------------------------------------------------

QUERY = TraceQuery(direction="backward", node="1", partition=0, offset=0)


def log_of(folder: Path, table: str) -> list[Path]:
    return sorted((folder / table / "_delta_log").glob("*.json"))


def entry_about(folder: Path, table: str, application_id: str) -> Path:
    """The first entry that added something of the application."""
    return next(
        each for each in log_of(folder, table) if f"application_id={application_id}/" in each.read_text()
    )


@pytest.mark.parametrize("table", ["flows", "records"])
def test_who_lost_rows_with_an_empty_entry_is_not_complete_and_the_others_are(
    folder: Path, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    entry = entry_about(folder, table, BROKEN)
    entry.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        store = DeltaFlowStore(folder)
    assert f"{entry} is empty" in caplog.text
    questions = LineageQueries(store, time_budget_s=30)
    told_of = {application.application_id: application for application in questions.applications()}
    assert told_of[SOUND].complete
    assert not told_of[BROKEN].complete
    assert f"rows that the flow store has lost: {told_of[BROKEN].counters['lost_rows']} of {table}" in (
        told_of[BROKEN].missing
    )
    assert [questions.trace(each, QUERY).complete for each in (BROKEN, SOUND)] == [False, True]
    found = IncompleteWatch(lambda: store).look(30).applications
    assert [each.application_id for each in found] == [BROKEN]
    assert [Maintenance(store).is_complete(each) for each in (BROKEN, SOUND)] == [False, True]


@pytest.mark.parametrize("table", ["events", "blocks"])
def test_no_empty_entry_leaves_what_it_said_of_complete(folder: Path, tmp_path: Path, table: str) -> None:
    for number, entry in enumerate(log_of(folder, table)[1:]):
        hurt = tmp_path / f"hurt-{number}"
        shutil.copytree(folder, hurt)
        (hurt / entry.relative_to(folder)).write_bytes(b"")
        found = LineageQueries(DeltaFlowStore(hurt), time_budget_s=30).applications()
        whole = {each.application_id for each in found if each.complete}
        assert whole == {SOUND} - {each for each in (SOUND,) if entry_names(entry, SOUND)} | (
            set() if entry_names(entry, BROKEN) else {BROKEN}
        )


def entry_names(entry: Path, application_id: str) -> bool:
    return f"application_id={application_id}/" in entry.read_text()


LOG_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("how", LOG_DAMAGES)
@pytest.mark.parametrize("table", FILLED)
def test_an_entry_that_cannot_be_read_is_named_and_its_remedy_works(
    folder: Path, table: str, how: str
) -> None:
    entry = entry_about(folder, table, BROKEN)
    entry.write_bytes(LOG_DAMAGES[how](entry.read_bytes()))
    with pytest.raises(StoreUnavailableError) as refused:
        DeltaFlowStore(folder)
    assert str(entry) in str(refused.value)
    assert "empty this file" in str(refused.value)
    assert "\n" not in str(refused.value)
    entry.write_bytes(b"")  # as it says
    found = LineageQueries(DeltaFlowStore(folder), time_budget_s=30).applications()
    assert [each.application_id for each in found if each.complete] == [SOUND]


@pytest.mark.parametrize("table", FILLED)
def test_an_entry_that_is_gone_is_named_and_its_remedy_works(folder: Path, table: str) -> None:
    entry = entry_about(folder, table, BROKEN)
    entry.unlink()
    with pytest.raises(StoreUnavailableError) as refused:
        DeltaFlowStore(folder)
    assert f"{entry} is gone" in str(refused.value)
    entry.write_bytes(b"")
    found = LineageQueries(DeltaFlowStore(folder), time_budget_s=30).applications()
    assert [each.application_id for each in found if each.complete] == [SOUND]


@pytest.mark.parametrize("how", sampled(["cut off", "zeros", "empty", "gone"], 4))
def test_a_checkpoint_that_cannot_be_read_is_named_and_its_remedy_works(tmp_path: Path, how: str) -> None:
    store = DeltaFlowStore(tmp_path)
    for at in range(120):
        store.write_events(events(event(contract.LINK, time=at), first=at))
    log = tmp_path / "events" / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    data = checkpoint.read_bytes()
    if how == "gone":
        checkpoint.unlink()
    else:
        checkpoint.write_bytes({**LOG_DAMAGES, "empty": lambda _data: b""}[how](data))
    with pytest.raises(StoreUnavailableError) as refused:
        DeltaFlowStore(tmp_path)
    assert str(checkpoint if how != "gone" else log / "_last_checkpoint") in str(refused.value)
    assert "the log is whole without them" in str(refused.value)
    checkpoint.unlink(missing_ok=True)
    (log / "_last_checkpoint").unlink()
    assert len(DeltaFlowStore(tmp_path).events(APP)) == 120
    checkpoint.write_bytes(data[:100])
    for entry in sorted(log.glob("*.json"))[:50]:
        entry.unlink()  # as they go in time
    with pytest.raises(StoreUnavailableError, match="cannot be read without it: restore a copy"):
        DeltaFlowStore(tmp_path)


@pytest.mark.parametrize("table", FILLED)
def test_a_log_that_is_gone_is_no_new_table(folder: Path, table: str) -> None:
    shutil.rmtree(folder / table / "_delta_log")
    with pytest.raises(StoreUnavailableError, match="is gone, so nobody knows") as refused:
        DeltaFlowStore(folder)
    assert str(folder / table) in str(refused.value)
    assert not (folder / table / "_delta_log").exists()


def test_a_table_of_which_only_an_empty_first_entry_is_there_says_what_to_do(tmp_path: Path) -> None:
    DeltaFlowStore(tmp_path)
    [entry] = log_of(tmp_path, "flows")
    entry.write_bytes(b"")
    with pytest.raises(StoreUnavailableError, match="nothing was stored in this table: remove its folder"):
        DeltaFlowStore(tmp_path)
    shutil.rmtree(tmp_path / "flows")
    DeltaFlowStore(tmp_path)


# -- writers ---------------------------------------------------------------------------------------------

TEXTS = {"text": [("str", "a")]}


@pytest.mark.parametrize("table", ["flows", "records", "blocks"])
def test_a_commit_that_a_power_cut_emptied_is_made_up_for_when_the_batch_comes_again(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = flows(block(seq=0), block(seq=1, relation=contract.KEYS, columns=TEXTS))
    second = flows(block(seq=2), block(seq=3, relation=contract.KEYS, columns=TEXTS), first=2)
    whole, hurt = DeltaFlowStore(tmp_path / "whole"), DeltaFlowStore(tmp_path / "hurt")
    for store in (whole, hurt):
        store.write_flows(first)
    whole.write_flows(second)

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt  # between the commit and its way to the disk

    monkeypatch.setattr(hurt._tables[table]._location, "sync", lambda name, _: name == table and power_cut())
    with pytest.raises(KeyboardInterrupt):
        hurt.write_flows(second)
    log_of(tmp_path / "hurt", table)[-1].write_bytes(b"")
    again = DeltaFlowStore(tmp_path / "hurt")
    assert again.offset(second.source) == 2
    again.write_flows(second)
    assert state(again) == state(whole)
    assert completeness_of(again, APP, again.events(APP)).lost_rows == {}


def test_each_commit_is_on_the_disk_before_the_next_table_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, synced, write = DeltaFlowStore(tmp_path), set[Path](), delta_table.write_deltalake
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    def written() -> set[Path]:
        files = {
            path
            for table in TABLES
            for path in (tmp_path / table).glob("*/*")
            if not path.name.startswith("_")
        }
        return {file for file in files if file.suffix in (".json", ".parquet")}

    before = written()

    def checked(*arguments: object, **options: object) -> None:
        assert written() - before <= synced
        write(*arguments, **options)  # type: ignore[call-overload] # whatever the store gives

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(delta_table, "write_deltalake", checked)
    store.write_flows(flows(block(seq=0), block(seq=1, relation=contract.KEYS, columns=TEXTS)))
    store.write_events(events(event(contract.LINK)))
    assert len(written() - before) == 8
    assert written() - before <= synced
    assert {each.parent for each in written() - before} <= synced


def test_a_commit_of_a_writer_that_died_of_it_is_on_the_disk_before_it_is_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying, batch = DeltaFlowStore(tmp_path), flows(block(seq=0))

    def died(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dying.location, "sync", died)
        with pytest.raises(KeyboardInterrupt):
            dying.write_flows(batch)
    synced = set[str]()
    sync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda each: (synced.add(str(Path(f"/proc/self/fd/{each}").readlink())), sync(each))
    )
    DeltaFlowStore(tmp_path).write_flows(batch)
    assert str(log_of(tmp_path, "flows")[-1]) in synced


def test_a_writer_whose_receipts_are_damaged_says_whose_and_goes_on_when_they_are_deleted(
    tmp_path: Path,
) -> None:
    DeltaFlowStore(tmp_path).write_flows(flows(block(seq=0)))
    for file in (tmp_path / "blocks" / f"application_id={APP}").glob("*.parquet"):
        file.write_bytes(b"")
    store = DeltaFlowStore(tmp_path)
    with pytest.raises(StoreUnavailableError, match=f"what blocks has of {APP} cannot be read"):
        store.write_flows(flows(block(seq=1), first=1))
    Maintenance(store).delete(APP)
    store.write_flows(flows(block(seq=1), first=1))
    assert rows(store, "flows") == []


def test_a_file_system_that_cannot_sync_folders_is_no_error_and_a_disk_that_fails_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeltaFlowStore(tmp_path)

    def failing(number: int) -> Callable[[int], None]:
        def fsync(_descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        return fsync

    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    store.write_flows(flows(block(seq=0)))
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(StoreUnavailableError, match="Input/output error"):
        store.write_flows(flows(block(seq=1), first=1))
    monkeypatch.undo()
    store.write_flows(flows(block(seq=1), first=1))
    assert sorted(store.receipts(APP)) == [(1, 0), (1, 1)]


# -- a machine that loses its power ----------------------------------------------------------------------

MESSAGES = [
    message
    for seq in range(0, 12, 2)
    for message in (block(seq=seq), block(seq=seq + 1, relation=contract.KEYS, columns=TEXTS))
]
EVENTS = [event(contract.LINK, time=at, port=at) for at in range(6)]


def write_on(store: DeltaFlowStore, size: int) -> None:
    """As a consumer does: each source from where the store is, flows and events in turn."""
    sources = [(store.write_flows, flows, MESSAGES), (store.write_events, events, EVENTS)]
    while sources:
        for source in list(sources):
            write, batch_of, messages = source
            held = store.offset(batch_of(messages[0]).source) or 0
            if held < len(messages):
                write(batch_of(*messages[held : held + size], first=held))  # type: ignore[arg-type] # as listed
            else:
                sources.remove(source)


@pytest.mark.parametrize(
    "at", [pytest.param(at, marks=pytest.mark.thorough if at % 8 else ()) for at in range(0, 44, 2)]
)
def test_whenever_the_power_goes_everything_is_stored_once_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A file that was not brought onto the disk is empty then, as file systems with delayed allocation have
    it; one whose folder was not brought there after it has no name."""
    folder, synced, sync = tmp_path / "flows", list[Path](), os.fsync
    store = DeltaFlowStore(folder)
    before = {path for path in folder.rglob("*") if path.is_file()}
    calls = iter(range(at))

    def until_the_power_goes(descriptor: int) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", until_the_power_goes)
        with pytest.raises(KeyboardInterrupt):
            write_on(store, 4)
    lost = 0
    for file in {path for path in folder.rglob("*") if path.is_file()} - before:
        if file not in synced:
            file.write_bytes(b"")
            lost += 1
        elif file.parent not in synced[synced.index(file) :]:
            file.unlink()
            lost += 1
    assert lost
    again = DeltaFlowStore(folder)
    write_on(again, 3)
    whole = DeltaFlowStore(tmp_path / "whole")
    write_on(whole, 12)
    assert state(again) == state(DeltaFlowStore(folder)) == state(whole)
    assert completeness_of(again, APP, again.events(APP)).lost_rows == {}
