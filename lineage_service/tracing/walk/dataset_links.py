"""Links from one application to the next: a file that one wrote and another read.

Newt (Logothetis and others, 2013) calls them ghost links: they were not captured, they follow from the files.
A file counts as the same where its path and, as far as both applications know them, its size and time are.
Of several writers the last one counts that began before the reader, or of one application the operation
before. Another one counts where both know size and time: a session may read for weeks what younger
applications write. So a file that was rewritten in between links nothing. Rows are counted, so a file in
which a record has several rows links nothing either. A record that is a whole file (of wholeTextFiles,
binaryFiles) is made of all that was written there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import TypeVar

from lineage_service.store.application_cache import ApplicationCache, EventReader
from lineage_service.tracing.walk.linked_files import (
    EVENT_TYPES,
    FileSplit,
    LinkedFiles,
    UnfollowedReader,
    UnseenWriter,
    linked_files,
)

__all__ = ["FilesOfApplications"]

T = TypeVar("T")


class FilesOfApplications:
    """The text files that applications read and wrote. Threads may share it.

    An application's events are read once, and again when more of them came.
    """

    def __init__(self, store: EventReader) -> None:
        self._lock = Lock()
        self._files = ApplicationCache(store, linked_files, EVENT_TYPES)
        self._unfollowed: dict[str, list[UnfollowedReader]] = {}  # by their places
        self._unseen: dict[str, list[UnseenWriter]] = {}  # by their places
        self._written_to: dict[str, list[FileSplit]] = {}
        self._read_from: dict[str, list[FileSplit]] = {}
        #: Applications whose events cannot be read: it is not known what they read and wrote.
        self.unread: frozenset[str] = frozenset()

    def writer_of(self, read: FileSplit) -> FileSplit | None:
        """Who wrote what a source read."""
        writers = [
            written
            for written in self._written_to.get(read.path, ())
            if written.is_same_file(read)
            and written.can_follow(read)
            and (written.is_before(read) or (written.has_known_state and read.has_known_state))
        ]
        return max(
            writers, key=lambda written: (written.is_before(read), written.began, written.node), default=None
        )

    def writers_of(self, read: FileSplit) -> list[FileSplit]:
        """The same, and the other pieces of its rows that went into that file."""
        writer = self.writer_of(read)
        return [] if writer is None else self.pieces_of(writer)

    def pieces_of(self, written: FileSplit) -> list[FileSplit]:
        """Which rows of a sink went into a file: they need not be one piece of its rows."""
        return [
            piece
            for piece in self._written_to.get(written.path, ())
            if (piece.application_id, piece.node) == (written.application_id, written.node)
            and piece.is_same_file(written)
        ]

    def readers_of(self, written: FileSplit) -> list[FileSplit]:
        """Where sources read what a sink wrote."""
        return [read for read in self._read_from.get(written.path, ()) if written in self.writers_of(read)]

    def unseen_reader_of(self, written: FileSplit) -> UnfollowedReader | None:
        """A query of another application, which was not followed, and has read there since."""
        readers = _at_or_above(written.path, self._unfollowed)
        return next((reader for reader in readers if reader.may_have_read(written)), None)

    def unseen_writer_of(self, read: FileSplit) -> UnseenWriter | None:
        """Who may have written a file of which no writer is known."""
        writers = _at_or_above(read.path, self._unseen)
        writer = next((writer for writer in writers if writer.may_have_written(read)), None)
        return None if writer is None or self.writer_of(read) is not None else writer

    def file_splits(self, application_id: str, path: str, node: int) -> list[FileSplit]:
        """All pieces of a file that a source read, in order."""
        file_splits = self._read_from.get(path, ())
        mine = [
            file_split
            for file_split in file_splits
            if (file_split.application_id, file_split.node) == (application_id, node)
        ]
        return sorted(mine, key=lambda file_split: file_split.start)

    def of(self, application_id: str, node: int) -> Iterator[FileSplit]:
        """The files of a source or a sink."""
        files = self._files.of(application_id) or LinkedFiles()
        return (file_split for file_split in (*files.read, *files.written) if file_split.node == node)

    def of_file(self, path: str) -> tuple[list[FileSplit], list[FileSplit]]:
        """(who wrote it, who read it), those that began last first."""

        def began(file_split: FileSplit) -> int:
            return file_split.began

        return (
            sorted(self._written_to.get(path, ()), key=began, reverse=True),
            sorted(self._read_from.get(path, ()), key=began, reverse=True),
        )

    def users_of(self, fits: Callable[[str], bool]) -> list[tuple[bool, int, str]]:
        """(wrote, began, application) of those that wrote or read a file that fits.

        Who wrote goes before who read, and of these the one that began last.
        """
        users = {
            (is_written, file_split.began, file_split.application_id)
            for by_path, is_written in ((self._read_from, False), (self._written_to, True))
            for path, file_splits in by_path.items()
            if fits(path)
            for file_split in file_splits
        }
        return sorted(users, reverse=True)

    def refresh(self) -> None:
        """Read what came since."""
        with self._lock:
            if not self._files.refresh():
                return
            every = list(self._files.values.values())
            self._read_from = _by("path", (split for files in every for split in files.read))
            self._written_to = _by("path", (split for files in every for split in files.written))
            self._unfollowed = _by("place", (reader for files in every for reader in files.unfollowed))
            self._unseen = _by("place", (writer for files in every for writer in files.unseen))
            self.unread = self._files.unread


def _at_or_above(path: str, by_place: Mapping[str, list[T]]) -> Iterator[T]:
    """What is at this path, and at each folder above it."""
    while path:
        yield from by_place.get(path, ())
        path = path.rpartition("/")[0]


def _by(name: str, items: Iterable[T]) -> dict[str, list[T]]:
    """By a field that is a text."""
    by_text: dict[str, list[T]] = defaultdict(list)
    for item in items:
        by_text[getattr(item, name)].append(item)
    return by_text
