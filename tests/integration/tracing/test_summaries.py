"""A list of applications is made of events and receipts, and again only of what came since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.errors import NotFoundError
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages


class Store(DeltaFlowStore):
    """Knows whose events were read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.read: list[str] = []
        self._offsets = [0, 0]

    def events(self, application_id: str) -> list[dict[str, object]]:
        self.read.append(application_id)
        return super().events(application_id)

    def events_of(self, application_ids: Sequence[str], types: Any = None) -> dict[str, Any]:
        self.read += application_ids
        return super().events_of(application_ids, types)

    def tell(self, *events: bytes) -> None:
        self.write_events(event_batch("topic/0", messages(*events, first=self._offsets[0])))
        self._offsets[0] += len(events)

    def send(self, *blocks: bytes) -> None:
        self.write_flows(flow_batch("topic/1", messages(*blocks, first=self._offsets[1])))
        self._offsets[1] += len(blocks)

    def run(self, application_id: str, began: int) -> None:
        self.run_all({application_id: began})

    def run_all(self, began: Mapping[str, int]) -> None:
        self.tell(
            *(
                message
                for application_id, at in began.items()
                for message in (
                    event(contract.APPLICATION_STARTED, application_id=application_id, time=at, name="job"),
                    event(contract.RUN_COMMITTED, application_id=application_id, time=at, run=at, blocks=1),
                    event(contract.APPLICATION_ENDED, application_id=application_id, time=at + 9),
                )
            )
        )
        self.send(*(block(at, application_id=application_id) for application_id, at in began.items()))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "flows")
    made.run("old", 100)
    made.run("new", 200)
    return made


@pytest.fixture
def questions(store: Store) -> LineageQueries:
    return LineageQueries(store, time_budget_s=60)


def test_applications_are_listed_without_their_flows(store: Store, questions: LineageQueries) -> None:
    for file in (*store.files("flows", "old"), *store.files("flows", "new")):
        Path(file).unlink()
    listed = questions.applications()
    assert [each.application_id for each in listed] == ["new", "old"]
    assert all(each.complete and each.counters["flows"] == 2 for each in listed)
    assert [questions.application(each.application_id) for each in listed] == list(listed)


def test_only_what_came_since_is_read_again(store: Store, questions: LineageQueries) -> None:
    questions.applications()
    questions.applications()
    assert sorted(store.read) == ["new", "old"]
    store.read.clear()
    store.tell(event(contract.RUN_COMMITTED, application_id="old", time=101, run=7, blocks=1))
    assert [application.complete for application in questions.applications()] == [True, False]
    assert store.read == ["old"]
    store.send(block(7, application_id="old"))
    assert [application.complete for application in questions.applications()] == [True, True]


def test_an_application_whose_events_have_not_come_is_not_listed_yet(
    store: Store, questions: LineageQueries
) -> None:
    store.send(block(300, application_id="early"))
    assert [application.application_id for application in questions.applications()] == ["new", "old"]
    with pytest.raises(NotFoundError):
        questions.application("early")
    store.run("early", 300)
    assert questions.applications()[0].application_id == "early"


def test_a_deleted_application_is_not_listed_any_more(store: Store, questions: LineageQueries) -> None:
    questions.applications()
    store.delete("old")
    assert [application.application_id for application in questions.applications()] == ["new"]
    with pytest.raises(NotFoundError):
        questions.application("old")


@pytest.mark.thorough
def test_the_newest_come_first_and_no_more_are_read_than_are_taken(tmp_path: Path) -> None:
    store = Store(tmp_path / "flows")
    began = {f"app-{at}": 1_000 + at * 7 % 300 for at in range(300)}
    by_time = sorted(began.items(), key=lambda item: item[1])
    for first in range(0, len(by_time), 10):
        store.run_all(dict(by_time[first : first + 10]))
    store.tell(event(contract.ALIVE, application_id="app-0", time=99_999))  # of a session that goes on
    questions = LineageQueries(store, time_budget_s=60)
    listed = questions.newest_applications()
    newest = [next(listed).application_id for _ in range(20)]
    assert len(store.read) < 300
    order = sorted(began, key=lambda name: (-began[name], name))
    assert newest == order[:20]
    assert [*newest, *(application.application_id for application in listed)] == order
    assert [application.application_id for application in questions.applications()] == order
    assert sorted(store.read) == sorted(began)
