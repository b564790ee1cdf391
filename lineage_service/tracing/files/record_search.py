"""What every search for records has, whatever it looks at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, TypeVar

import duckdb

from lineage_service.tracing.files.decompression import Check

__all__ = ["Matching", "RecordSearch"]

Search = TypeVar("Search", bound="RecordSearch")


class Matching(Protocol):
    """What a search is asked, partition by partition."""

    def __call__(
        self, partition: int, *, first: int, last: int, check: Check
    ) -> Iterator[tuple[int, bool]]: ...


class RecordSearch(ABC):
    """A search for records of one node. It is closed with its block, and its database with it."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self.database = database
        #: What was not looked at, and why, and files that changed since.
        self.warnings: dict[str, None] = {}

    def __enter__(self: Search) -> Search:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.database.close()

    @abstractmethod
    def matching(self, partition: int, *, first: int, last: int, check: Check) -> Iterator[tuple[int, bool]]:
        """(offset, True) of the matches of a partition from `first` to before `last`, ascending.

        Between them (offset, False), when all before that one were looked at.
        """
