"""What follows from the events of each application of a flow store, computed once.

An application's events are read again only when more of them came, and those of many applications together:
one look at a thousand small files costs less than a thousand looks. Not for several threads at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from lineage_service.store.errors import StoreUnavailableError

__all__ = ["ApplicationCache", "EventReader"]

#: Applications whose events are held in memory at a time.
_AT_ONCE = 200

T = TypeVar("T")
Events = Sequence[Mapping[str, Any]]


class EventReader(Protocol):
    """What is read of a flow store."""

    def version(self) -> object: ...

    def versions(self, table: str) -> Mapping[str, object]: ...

    def events(self, application_id: str) -> Events: ...

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> Mapping[str, Events]: ...


class ApplicationCache(Generic[T]):
    """One value for each application that has events."""

    def __init__(
        self, store: EventReader, value_of: Callable[[str, Events], T], types: Collection[str]
    ) -> None:
        """`value_of` needs the events of these `types`. It may get others."""
        self._store, self._value_of, self._types = store, value_of, types
        self._version: object = None
        self._values: dict[str, tuple[object, T]] = {}  # by application, with its version
        #: Applications whose events cannot be read now.
        self.unread: frozenset[str] = frozenset()

    @property
    def values(self) -> dict[str, T]:
        """By application id."""
        return {application_id: value for application_id, (_, value) in self._values.items()}

    def of(self, application_id: str) -> T | None:
        """None of an application without events, and of one that cannot be read."""
        cached = self._values.get(application_id)
        return None if cached is None else cached[1]

    def version_of(self, application_id: str) -> object:
        """Differs from an earlier answer if more of it came. None of an application without a value."""
        cached = self._values.get(application_id)
        return None if cached is None else cached[0]

    def refresh(self) -> bool:
        """Read what came since; whether the values may differ now."""
        version = self._store.version()
        if version == self._version:
            return False
        versions = self._store.versions("events")
        before, unread = self._values, set[str]()
        values = {
            application_id: before[application_id]
            for application_id, its_version in versions.items()
            if application_id in before and before[application_id][0] == its_version
        }
        for chunk in _chunks(name for name in versions if name not in values):
            for application_id, events in self._read(chunk, unread):
                if events:
                    values[application_id] = versions[application_id], self._value_of(application_id, events)
        self._values, self.unread = values, frozenset(unread)
        self._version = None if unread else version
        return True

    def _read(self, application_ids: Sequence[str], unread: set[str]) -> Iterable[tuple[str, Events]]:
        """One that cannot be read keeps none of the others from being read."""
        try:
            return self._store.events_of(application_ids, self._types).items()
        except StoreUnavailableError:
            return self._read_each(application_ids, unread)

    def _read_each(self, application_ids: Sequence[str], unread: set[str]) -> Iterator[tuple[str, Events]]:
        for application_id in application_ids:
            try:
                yield application_id, self._store.events(application_id)
            except StoreUnavailableError:
                unread.add(application_id)


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while chunk := list(islice(rest, _AT_ONCE)):
        yield chunk
