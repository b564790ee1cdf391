"""Ways from one application to the next: a file that one wrote and another read.

What Newt (Logothetis and others, 2013) calls ghost links: nobody captured them, they follow from the files. A
file counts as the same where its path and, as far as both applications know them, its size and time are; of
several writers the last one that began before the reader, or of one application the operation before. Another
one counts where both know size and time: a session may read for weeks what younger applications write. So a
file that was written anew in between links nothing. Rows are counted, so a file in which a record has several
rows links nothing either. A record that is a whole file (of wholeTextFiles, binaryFiles) is made of all that
was written there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from lineage_service.store.errors import StoreUnavailableError
from lineage_service.tracing.files.file_parts import LINES, NUMBERED, TEXT, normal_path, parts_in
from lineage_service.tracing.model.event_log import add_partitions
from spark_agent import contract

__all__ = ["FileSplit", "FilesOfApplications"]


@dataclass(frozen=True, slots=True)
class FileSplit:
    """A part of a file of rows that is (a part of) one split of a source, or a file that is one of a sink.

    Or a file that is one record of a source: `record` is its offset in the split. `first`, `last` and `row`
    are those of a `parts.FilePart`.
    """

    application_id: str
    began: int
    node: int
    partition: int
    path: str
    start: int
    size: int | None
    modified: int | None
    record: int | None = None
    format: str = TEXT
    first: int = 0
    last: int | None = None
    row: int | None = None

    @property
    def is_whole_partition(self) -> bool:
        return self.first == 0 and self.last is None

    def records(self, count: int) -> int:
        """How many of the `count` records of the split are here."""
        return max((count if self.last is None else min(self.last, count)) - self.first, 0)

    def can_follow(self, read: FileSplit) -> bool:
        """Can it be told which of these rows are those that were read?"""
        if read.record is not None:
            return self.is_whole_partition and self.format == TEXT
        return read.format == self.format or {read.format, self.format} <= LINES

    def is_same_file(self, other: FileSplit) -> bool:
        """As far as both know its size and its time."""
        pairs = ((self.size, other.size), (self.modified, other.modified))
        return all(mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None)

    @property
    def has_known_state(self) -> bool:
        """Its state is known, so that another one at the same path is noticed."""
        return self.size is not None and self.modified is not None

    def is_before(self, other: FileSplit) -> bool:
        """By the beginnings of the applications; within one by its operations."""
        if other.application_id == self.application_id:
            return self.node < other.node
        return self.began < other.began


@dataclass(frozen=True, slots=True)
class UnfollowedReader:
    """A source of a query that was not followed: `place` is the file or folder that it read, at `time`."""

    application_id: str
    time: int
    place: str

    def may_have_read(self, written: FileSplit) -> bool:
        """A file below its place, in another application: who asks within one knows its own."""
        return self.application_id != written.application_id and self.time >= written.began


class _Store(Protocol):
    def version(self) -> object: ...

    def versions(self, table: str) -> Mapping[str, object]: ...

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]: ...


class FilesOfApplications:
    """The text files that applications read and wrote. Threads may share it.

    An application's events are read once, and again when more of them came.
    """

    def __init__(self, store: _Store) -> None:
        self._store = store
        self._lock = Lock()
        self._version: object = None
        #: By application: its version, what it read, wrote, and read without being followed.
        self._read: dict[str, tuple[object, list[FileSplit], list[FileSplit], list[UnfollowedReader]]] = {}
        self._unfollowed: dict[str, list[UnfollowedReader]] = {}  # by their places
        self._written_to: dict[str, list[FileSplit]] = {}
        self._read_from: dict[str, list[FileSplit]] = {}
        #: Applications whose events cannot be read: nobody knows what they read and wrote.
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

    def readers_of(self, written: FileSplit) -> list[FileSplit]:
        """The splits of sources that read what a sink wrote."""
        return [read for read in self._read_from.get(written.path, ()) if self.writer_of(read) == written]

    def may_be_read_unseen(self, written: FileSplit) -> bool:
        """Has a query of another application, which was not followed, read there since?"""
        return any(
            reader.may_have_read(written)
            for folder in _folders_of(written.path)
            for reader in self._unfollowed.get(folder, ())
        )

    def file_splits(self, application_id: str, path: str, node: int) -> list[FileSplit]:
        """All splits of a source that read a file, in order."""
        file_splits = self._read_from.get(path, ())
        mine = [
            file_split
            for file_split in file_splits
            if (file_split.application_id, file_split.node) == (application_id, node)
        ]
        return sorted(mine, key=lambda file_split: file_split.start)

    def of(self, application_id: str, node: int) -> Iterator[FileSplit]:
        """The files of a source or a sink."""
        _, read, written, _ = self._read.get(application_id, (None, [], [], []))
        return (file_split for file_split in (*read, *written) if file_split.node == node)

    def refresh(self) -> None:
        """Read what came since."""
        with self._lock:
            version = self._store.version()
            if version == self._version:
                return
            before, self._read, unread = self._read, {}, set[str]()
            for application_id, its_version in self._store.versions("events").items():
                files = before.get(application_id)
                if files is None or files[0] != its_version:
                    try:
                        files = (its_version, *_files_of(application_id, self._store.events(application_id)))
                    except StoreUnavailableError:
                        unread.add(application_id)
                        continue
                self._read[application_id] = files
            self._read_from = _by_path(
                file_split for _, read, _, _ in self._read.values() for file_split in read
            )
            self._written_to = _by_path(
                file_split for _, _, written, _ in self._read.values() for file_split in written
            )
            unfollowed: dict[str, list[UnfollowedReader]] = defaultdict(list)
            for *_, readers in self._read.values():
                for reader in readers:
                    unfollowed[reader.place].append(reader)
            self._unfollowed = unfollowed
            self.unread = frozenset(unread)
            self._version = None if unread else version


def _folders_of(path: str) -> Iterator[str]:
    """The path itself, and each folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _by_path(file_splits: Iterable[FileSplit]) -> dict[str, list[FileSplit]]:
    by_path: dict[str, list[FileSplit]] = defaultdict(list)
    for file_split in file_splits:
        by_path[file_split.path].append(file_split)
    return by_path


def _files_of(
    application_id: str, events: Iterable[Mapping[str, Any]]
) -> tuple[list[FileSplit], list[FileSplit], list[UnfollowedReader]]:
    """(read, written, read by queries that were not followed)."""
    unfollowed: list[UnfollowedReader] = []
    began, kinds = 0, dict[int, tuple[str, str]]()
    reported, kept = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
    for event in events:
        if event["type"] == contract.APPLICATION_STARTED:
            began = int(event["time"])
        elif event["type"] == contract.NODE_REGISTERED and _is_unfollowed_source(event):
            place = normal_path(str(event["dataset"]["name"])).rstrip("/")
            unfollowed.append(UnfollowedReader(application_id, int(event["time"]), place))
        elif event["type"] == contract.NODE_REGISTERED and _has_rows_of_files(event):
            kinds[event["node"]] = str(event["kind"]), str(event["dataset"]["format"])
        elif event["type"] == contract.PARTITIONS:
            reported.append(event)
        elif event["type"] == contract.RUN_KEPT and event.get("parts"):
            info = {"split": event["split"], "parts": event["parts"]}
            kept.append({"node": event["input"], "partitions": [info]})
    partitions: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for event in (*kept, *reported):  # where both say as much, the driver's word counts
        if event["node"] in kinds:
            add_partitions(partitions[event["node"]], event["partitions"])
    every = [
        piece
        for node, by_partition in partitions.items()
        for partition, info in by_partition.items()
        for piece in _file_splits_in(application_id, began, node, partition, *kinds[node], info)
    ]
    return (
        [piece for piece in every if kinds[piece.node][0] == "source"],
        [piece for piece in every if kinds[piece.node][0] == "sink"],
        unfollowed,
    )


def _file_splits_in(
    application_id: str,
    began: int,
    node: int,
    partition: int,
    kind: str,
    format: str,
    info: Mapping[str, Any],
) -> Iterator[FileSplit]:
    place = application_id, began, node, partition
    parts = parts_in(format, kind, info)
    for part in parts:
        if format in LINES or part.row is not None:
            about = part.path, part.start if part.row is None else 0, part.size, part.modified
            yield FileSplit(
                *place,
                normal_path(about[0]),
                *about[1:],
                format=format,
                first=part.first,
                last=part.last,
                row=part.row,
            )
    for record, file in [] if parts else _files_in(info):
        start = int(file.get("start", 0))
        yield FileSplit(
            *place, normal_path(str(file["path"])), start, file.get("size"), file.get("modified"), record
        )


def _files_in(info: Mapping[str, Any]) -> list[tuple[int | None, Mapping[str, Any]]]:
    """(the record that it is, None where its rows are records; the file)."""
    if "files" in info:
        return list(enumerate(info["files"]))
    return [(None, info)] if "path" in info and "record_length" not in info else []


def _is_unfollowed_source(node: Mapping[str, Any]) -> bool:
    is_unfollowed = node.get("relation") == contract.CARRIED and not node.get("exact", True)
    return is_unfollowed and node["kind"] == "source" and bool(node.get("dataset"))


def _has_rows_of_files(node: Mapping[str, Any]) -> bool:
    """Its records are rows of files, or whole files that were read."""
    dataset = node.get("dataset")
    format = dataset.get("format") if isinstance(dataset, Mapping) else None
    return format in LINES | NUMBERED or (format == "file" and node["kind"] == "source")
