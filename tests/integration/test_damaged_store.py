"""Files of the flow store that are damaged: said in one line, of one application, and no other's loss."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lineage_service.answers import TraceQuery
from lineage_service.flow_store import DeltaFlowStore
from lineage_service.maintain import Wishes, one_pass
from lineage_service.maintenance import Maintenance
from lineage_service.store_errors import StoreUnavailableError
from lineage_service.tables import TABLES
from lineage_service.tracing.service import LineageQuestions
from lineage_service.unfinished import Unfinished
from spark_agent.api import LineageApi
from tests.api_store import told

BROKEN, SOUND = "broken", "sound"
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
@pytest.mark.parametrize("table", TABLES)
def test_a_question_about_it_says_which_file_and_what_to_do(folder: Path, table: str, how: str) -> None:
    damage(folder, table, how)
    questions = LineageQuestions(DeltaFlowStore(folder), time_budget_s=30)
    query = TraceQuery(direction="backward", node="1", partition=0, offset=0)
    with pytest.raises(StoreUnavailableError) as refused:
        questions.trace(BROKEN, query)
    assert "\n" not in str(refused.value)
    assert "damaged" in str(refused.value) or table in str(refused.value)
    other = questions.trace(SOUND, query)
    assert [len(each.records) for each in other.nodes] == [1, 1]
    # Which files the damaged one wrote, and that the other one may have read, is in its events.
    assert other.complete == (table != "events")


@DAMAGES
@pytest.mark.parametrize("table", ["events", "blocks"])
def test_a_list_has_the_others_and_says_what_is_wrong_with_it(folder: Path, table: str, how: str) -> None:
    damage(folder, table, how)
    sound, broken = LineageQuestions(DeltaFlowStore(folder), time_budget_s=30).applications()
    assert (sound.name, sound.complete, sound.missing) == ("job sound", True, "")
    assert (broken.application_id, broken.complete) == (BROKEN, False)
    assert "cannot be" in broken.missing
    found = Unfinished(lambda: DeltaFlowStore(folder)).look(30).applications
    assert [(each.application_id, "cannot be" in each.missing) for each in found] == [(BROKEN, True)]


@DAMAGES
def test_retention_and_compaction_go_on_with_the_others(folder: Path, how: str) -> None:
    damage(folder, "events", how)
    store, said = DeltaFlowStore(folder), list[str]()
    with pytest.raises(StoreUnavailableError):
        one_pass(
            Maintenance(store), Wishes(keep_days=1), said.append, clock=lambda: time.time() + TEN_YEARS_S
        )
    assert store.files("flows", SOUND) == []
    assert store.files("flows", BROKEN)
    assert {line.partition(":")[0] for line in said} == {BROKEN, SOUND}


def test_what_is_damaged_can_be_deleted(folder: Path) -> None:
    damage(folder, "events", "cut off")
    store = DeltaFlowStore(folder)
    one_pass(Maintenance(store), Wishes(delete=(BROKEN,)), lambda line: None)
    assert store.applications() == [SOUND]
