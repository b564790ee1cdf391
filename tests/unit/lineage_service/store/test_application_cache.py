from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lineage_service.store.application_cache import ApplicationCache
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.testing.flow_store import MemoryFlowStore
from spark_agent import contract
from tests.support.dataset_applications import Job, store_all

TYPES = (contract.APPLICATION_STARTED, contract.APPLICATION_ENDED)


class Counting(MemoryFlowStore):
    """Counts what is read, and cannot read some applications."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.damaged: set[str] = set()

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        return {application_id: self.events(application_id) for application_id in application_ids}

    def events(self, application_id: str) -> list[dict[str, Any]]:
        self.read.append(application_id)
        if application_id in self.damaged:
            raise StoreUnavailableError(f"{application_id} is damaged")
        return super().events(application_id)


def count(_application_id: str, events: Sequence[Mapping[str, Any]]) -> int:
    return len(events)


def test_an_application_is_read_once_and_again_when_more_of_it_came() -> None:
    store = Counting()
    first, second = Job("first"), Job("second")
    store_all(store, first, second)
    cache = ApplicationCache(store, count, TYPES)
    assert cache.refresh()
    assert cache.values == {"first": 1, "second": 1}
    assert not cache.refresh()
    second.end()
    store_all(store, second)
    assert cache.refresh()
    assert cache.values == {"first": 1, "second": 2}
    assert sorted(store.read) == ["first", "second", "second"]


def test_a_deleted_application_goes() -> None:
    store = Counting()
    store_all(store, Job("first"), Job("second"))
    cache = ApplicationCache(store, count, TYPES)
    cache.refresh()
    store.delete("first")
    assert cache.refresh()
    assert cache.values == {"second": 1}
    assert cache.of("first") is None


def test_one_that_cannot_be_read_is_told_apart_and_read_later() -> None:
    store = Counting()
    store_all(store, *(Job(f"app-{number}") for number in range(5)))
    store.damaged = {"app-3"}
    cache = ApplicationCache(store, count, TYPES)
    assert cache.refresh()
    assert cache.unread == {"app-3"}
    assert sorted(cache.values) == ["app-0", "app-1", "app-2", "app-4"]
    store.damaged = set()
    store.read.clear()
    assert cache.refresh()
    assert store.read == ["app-3"]
    assert (cache.unread, cache.of("app-3")) == (frozenset(), 1)


def test_many_applications_are_read_in_pieces() -> None:
    store = Counting()
    store_all(store, *(Job(f"app-{number}") for number in range(450)))
    cache = ApplicationCache(store, count, TYPES)
    cache.refresh()
    assert len(cache.values) == 450
    assert len(store.read) == 450


def test_an_application_without_events_of_the_types_has_no_value() -> None:
    store = MemoryFlowStore()
    store_all(store, Job("first").end(), Job("second"))
    cache = ApplicationCache(store, count, (contract.APPLICATION_ENDED,))
    cache.refresh()
    assert cache.values == {"first": 1}
    assert cache.version_of("first") is not None
    assert cache.version_of("second") is None
