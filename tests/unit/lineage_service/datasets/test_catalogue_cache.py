from __future__ import annotations

from typing import Any

from lineage_service.datasets.catalogue_cache import StoredDatasets
from lineage_service.datasets.pages import dataset_page, datasets_page
from lineage_service.errors import UnknownApplicationError
from lineage_service.lineage import Datasets
from lineage_service.queries import DatasetQuery, DatasetsQuery
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.testing.flow_store import MemoryFlowStore
from tests.support.dataset_applications import Job, store_all


def job(application_id: str, began: int = 1) -> Job:
    copy = Job(application_id, "Copy", began)
    copy.write("/out", [copy.read("/in", rows=3)], rows=3)
    return copy.end()


def listed(datasets: StoredDatasets, text: str = "out") -> Datasets:
    return datasets_page(datasets.state(), DatasetsQuery(text=text))


def test_a_list_has_what_came_since() -> None:
    store = MemoryFlowStore()
    store_all(store, job("first"))
    datasets = StoredDatasets(store, lambda _name: True)
    assert listed(datasets).datasets[0].runs == 1
    assert datasets.state().catalogue is datasets.state().catalogue
    store_all(store, job("second", 5))
    (out,) = listed(datasets).datasets
    assert out.written is not None
    assert (out.runs, out.written.application_id, out.written.rows) == (2, "second", 3)


def test_an_application_may_become_complete_though_no_event_of_it_came() -> None:
    store, complete = MemoryFlowStore(), [False]
    store_all(store, job("first"))
    datasets = StoredDatasets(store, lambda _name: complete[0])
    (before,) = listed(datasets).datasets
    complete[0] = True
    (after,) = listed(datasets).datasets
    assert before.written is not None
    assert after.written is not None
    assert (before.written.complete, after.written.complete) == (False, True)


def test_an_application_that_is_deleted_meanwhile_is_shown_without_details() -> None:
    store = MemoryFlowStore()
    store_all(store, job("first"), job("second", 5))
    datasets = StoredDatasets(store, lambda _name: True)
    state = datasets.state()
    store.delete("second")
    history = dataset_page(state, DatasetQuery(name="/out")).history
    assert [(use.application_id, use.rows) for use in history] == [("second", None), ("first", 3)]
    history = dataset_page(datasets.state(), DatasetQuery(name="/out")).history
    assert [use.application_id for use in history] == ["first"]


def test_one_of_which_nothing_can_be_read_is_not_complete_and_the_others_are_shown() -> None:
    store = MemoryFlowStore()
    store_all(store, job("first"), job("second", 5))

    def is_complete(name: str) -> bool:
        if name == "second":
            raise StoreUnavailableError("damaged")
        return True

    history = dataset_page(StoredDatasets(store, is_complete).state(), DatasetQuery(name="/out")).history
    assert [(use.application_id, use.complete) for use in history] == [("second", False), ("first", True)]


def test_one_that_is_unknown_by_now_is_not_complete() -> None:
    store = MemoryFlowStore()
    store_all(store, job("first"))

    def is_complete(name: str) -> bool:
        raise UnknownApplicationError(name)

    (out,) = listed(StoredDatasets(store, is_complete)).datasets
    assert out.written is not None
    assert not out.written.complete


def test_the_number_of_applications_that_cannot_be_read_is_told() -> None:
    class Damaged(MemoryFlowStore):
        def events(self, application_id: str) -> list[dict[str, Any]]:
            if application_id == "second":
                raise StoreUnavailableError("damaged")
            return super().events(application_id)

    store = Damaged()
    store_all(store, job("first"), job("second", 5))
    page = listed(StoredDatasets(store, lambda _name: True))
    assert page.unread_applications == 1
    assert page.datasets[0].runs == 1
