"""A trace that goes on from file to file: one walk for each application on the way.

Where a walk comes to a source, the records of the sink that wrote its file are a start in the application of
that sink; forward, the other way round. A start that comes late makes the walk go on from there. Within one
application too, where one job reads what another wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np

from lineage_service.answers import Direction, NotFoundError
from lineage_service.tracing.engine import TraceWalk, Walked
from lineage_service.tracing.flow_files import Integers
from lineage_service.tracing.ghost_links import FilesOfApplications, FileSplit
from lineage_service.tracing.opened import OpenedApplication

__all__ = ["Journey", "RowsBefore"]


class RowsBefore(Protocol):
    def __call__(self, path: str, start: int, check: Callable[[], None]) -> int | None:
        """The rows of a file before the first one of the split at `start`; None where nobody knows."""


class Journey:
    """All applications that a trace reaches. For one thread.

    What was broken off goes on with the next `advance`.
    """

    def __init__(
        self,
        opened: OpenedApplication,
        walk: TraceWalk,
        direction: Direction,
        *,
        open_application: Callable[[str], OpenedApplication],
        files: FilesOfApplications | None,
        rows_before: RowsBefore,
    ) -> None:
        """`files` None: the trace stays in its application."""
        self.legs: dict[str, tuple[OpenedApplication, TraceWalk]] = {
            opened.application.application_id: (opened, walk)
        }
        #: (who wrote, who read) of the files that were passed -> rows of the file before what was read.
        self.passed: dict[tuple[FileSplit, FileSplit], int] = {}
        self.is_exact = True  # of the steps from file to file
        self._first = walk
        self._direction = direction
        self._open, self._files, self._rows_before = open_application, files, rows_before
        self._told: dict[tuple[FileSplit, FileSplit], int] = {}

    @property
    def bytes(self) -> int:
        return sum(walk.bytes for _, walk in self.legs.values())

    @property
    def is_whole(self) -> bool:
        return all(walk.is_whole for _, walk in self.legs.values())

    @property
    def has_found(self) -> bool:
        """At least one node is done."""
        return self._first.has_found

    def start(self, node: int, run: int, positions: Integers) -> None:
        """Begin at these records of the first application, too. Positions ascend."""
        self._first.start(node, run, positions)

    def is_current(self) -> bool:
        """Nothing more of its applications was stored since."""
        return all(self._open(each).snapshot is opened.snapshot for each, (opened, _) in self.legs.items())

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end. `check` is called now and then, and ends it by what it raises."""
        if self._files is not None:
            self._files.refresh()
        is_new = True
        while is_new:
            is_new = False
            for _, walk in list(self.legs.values()):
                walk.advance(check)
            for application_id in list(self.legs):
                is_new |= self._follow(application_id, check)

    def page(
        self, limit: int, after: Mapping[str, tuple[int, int]] | None, check: Callable[[], None]
    ) -> list[tuple[OpenedApplication, Walked]]:
        """Up to `limit` records of each node that is done, application by application; see TraceWalk.page.

        `after` has node ids.
        """
        pages = []
        for application_id, (opened, walk) in self.legs.items():
            mine = None
            if after is not None:
                found = (each.rpartition("#") for each in after)
                mine = {
                    int(number): after[f"{of}#{number}"]
                    for of, _, number in found
                    if of == application_id and number.isdigit()
                }
            pages.append((opened, walk.page(limit, mine, check)))
        return pages

    def _follow(self, application_id: str, check: Callable[[], None]) -> bool:
        """Start where the files of this leg lead; whether anything new came of it."""
        is_new = False
        for here, there, positions in self._links(application_id):
            check()
            key, reached = (here, there), len(positions)
            if self._told.get(key) == reached:
                continue
            read = here if self._direction == "backward" else there
            before = self._rows_before(read.path, read.start, check)
            try:
                has_rows = self._has_row_for_record(read, there if read is here else here)
                if before is None or not has_rows:
                    self.is_exact = False
                    self._told[key] = reached
                    continue
                opened, walk = self._leg(there.application_id)
            except NotFoundError:  # deleted just now
                continue
            if self._direction == "backward":
                positions = positions + np.int64(before)
            else:
                positions = positions[positions >= before] - np.int64(before)
            for run in opened.holders_of(there.node, there.split, self._direction):
                count = opened.snapshot.count(there.node, run.number)
                inside = positions[positions < count]
                if len(inside):
                    walk.start(there.node, run.number, inside)
                    is_new = True
            self.passed[(there, here) if self._direction == "backward" else (here, there)] = before
            self._told[key] = reached
        return is_new

    def _links(self, application_id: str) -> Iterator[tuple[FileSplit, FileSplit, Integers]]:
        """(a split that the walk has reached, what it leads to, the positions reached)."""
        if self._files is None:
            return
        opened, walk = self.legs[application_id]
        wanted = "source" if self._direction == "backward" else "sink"
        for number in walk.done_nodes():
            if opened.snapshot.topology.nodes[number].kind != wanted:
                continue
            reached = walk.positions_by_split(number)
            for here in self._files.of(application_id, number):
                if here.split not in reached:
                    continue
                if self._direction == "backward":
                    writer = self._files.writer_of(here)
                    others = [] if writer is None else [writer]
                else:
                    others = self._files.readers_of(here)
                for there in others:
                    yield here, there, reached[here.split]

    def _leg(self, application_id: str) -> tuple[OpenedApplication, TraceWalk]:
        if application_id not in self.legs:
            opened = self._open(application_id)
            self.legs[application_id] = opened, TraceWalk(opened.snapshot, self._direction)
        return self.legs[application_id]

    def _has_row_for_record(self, read: FileSplit, written: FileSplit) -> bool:
        """The readers of a file have not seen more rows than its writer has records."""
        assert self._files is not None
        splits = self._files.splits(read.application_id, read.path, read.node)
        reader, writer = self._open(read.application_id), self._open(written.application_id)
        return sum(_largest(reader, each) for each in splits) <= _largest(writer, written)


def _largest(opened: OpenedApplication, each: FileSplit) -> int:
    runs = opened.holders_of(each.node, each.split, "forward")
    return max((opened.snapshot.count(each.node, run.number) for run in runs), default=0)
