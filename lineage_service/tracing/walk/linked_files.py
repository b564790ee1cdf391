"""Which files an application read and wrote, by its events: links to other applications follow from them.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lineage_service.tracing.files.file_parts import LINES, NUMBERED, TEXT, normal_path, parts_in
from lineage_service.tracing.model.elements import PartitionInfo
from lineage_service.tracing.model.event_log import add_partitions
from spark_agent import contract
from spark_agent.contract.dataset_names import file_format, location_of

__all__ = ["EVENT_TYPES", "FileSplit", "LinkedFiles", "UnfollowedReader", "UnseenWriter", "linked_files"]

#: In milliseconds, by which the clock of a driver may be ahead of that of a file system.
_CLOCKS_DIFFER_MS = 10_000

#: Types of the events that say which files an application read and wrote.
EVENT_TYPES = (
    contract.APPLICATION_STARTED,
    contract.NODE_REGISTERED,
    contract.PARTITIONS,
    contract.RUN_KEPT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSplit:
    """A part of a file of rows that is (a part of) one partition of a source, or a file of a sink.

    Or a file that is one record of a source: `record` is its offset in the partition. `first`, `last` and
    `row` are those of a `FilePart`.
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

    def has(self, position: int) -> bool:
        """Is the record at this position of the partition here?"""
        return self.first <= position and (self.last is None or position < self.last)

    def records(self, count: int) -> int:
        """How many of the `count` records of the partition are here."""
        return max((count if self.last is None else min(self.last, count)) - self.first, 0)

    def can_follow(self, read: FileSplit) -> bool:
        """Is it known which of these rows are those that were read?"""
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


@dataclass(frozen=True, slots=True)
class UnseenWriter:
    """A sink of which it is not known what is in which file: its query was not followed, or its files not.

    It began to write into the file or folder `place` at `time`, in Unix milliseconds.
    """

    application_id: str
    began: int
    node: int
    time: int
    place: str

    def may_have_written(self, read: FileSplit) -> bool:
        """Of a file below its place: not one that is older, or was read before."""
        if read.modified is not None and read.modified < self.time - _CLOCKS_DIFFER_MS:
            return False
        if self.application_id == read.application_id:
            return self.node < read.node
        return self.began < read.began or read.has_known_state


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """What one application read and wrote, and what of it is not known by files."""

    read: list[FileSplit] = field(default_factory=list)
    written: list[FileSplit] = field(default_factory=list)
    unfollowed: list[UnfollowedReader] = field(default_factory=list)
    unseen: list[UnseenWriter] = field(default_factory=list)


def linked_files(application_id: str, events: Sequence[Mapping[str, Any]]) -> LinkedFiles:
    """By its events, in any order. A replay of another application links nothing."""
    is_replay = any(event.get("replay") for event in events if event["type"] == contract.APPLICATION_STARTED)
    return LinkedFiles() if is_replay else _linked_files(application_id, events)


def _linked_files(application_id: str, events: Sequence[Mapping[str, Any]]) -> LinkedFiles:
    began, files = 0, LinkedFiles(unfollowed=list(_unfollowed(application_id, events)))
    kinds: dict[int, tuple[str, str]] = {}  # node -> kind, format
    reported: list[tuple[int, Iterable[PartitionInfo]]] = []
    cached: list[tuple[int, Iterable[PartitionInfo]]] = []
    for event in events:
        if event["type"] == contract.APPLICATION_STARTED:
            began = int(event["time"])
        elif event["type"] == contract.NODE_REGISTERED and _has_rows_of_files(event):
            kinds[event["node"]] = str(event["kind"]), file_format(str(event["dataset"]["format"]))
        elif event["type"] == contract.PARTITIONS:
            reported.append((event["node"], event["partitions"]))
        elif event["type"] == contract.RUN_KEPT and event.get("parts"):
            cached.append((event["input"], [{"split": event["split"], "parts": event["parts"]}]))
    partitions: dict[int, dict[int, PartitionInfo]] = defaultdict(dict)
    for node, infos in (*cached, *reported):  # where both say as much, the driver's word counts
        if node in kinds:
            add_partitions(partitions[node], infos)
    for node, by_partition in partitions.items():
        kind, format = kinds[node]
        of_kind = {"source": files.read, "sink": files.written}.get(kind, [])
        for partition, info in by_partition.items():
            new = partial(
                FileSplit, application_id=application_id, began=began, node=node, partition=partition
            )
            of_kind += _file_splits(new, kind, format, info)
    files.unseen.extend(_unseen(application_id, began, events))
    return files


def _file_splits(
    new: Callable[..., FileSplit], kind: str, format: str, info: PartitionInfo
) -> Iterator[FileSplit]:
    """Those of one partition. `new` makes one of a file."""
    parts = parts_in(format, kind, info)
    for part in parts:
        if format in LINES or part.row is not None:
            yield new(
                path=normal_path(part.path),
                start=part.start if part.row is None else 0,
                size=part.size,
                modified=part.modified,
                format=format,
                first=part.first,
                last=part.last,
                row=part.row,
            )
    for record, file in [] if parts else _files_in(info):
        yield new(
            path=normal_path(str(file["path"])),
            start=int(file.get("start", 0)),
            size=file.get("size"),
            modified=file.get("modified"),
            record=record,
        )


def _files_in(info: PartitionInfo) -> list[tuple[int | None, Mapping[str, Any]]]:
    """(the record that it is, None where its rows are records; the file)."""
    if "files" in info:
        return list(enumerate(info["files"]))
    return [(None, info)] if "path" in info and "record_length" not in info else []


def _unfollowed(application_id: str, events: Iterable[Mapping[str, Any]]) -> Iterator[UnfollowedReader]:
    for event in events:
        if event["type"] == contract.NODE_REGISTERED and _is_unfollowed_source(event):
            yield UnfollowedReader(application_id, int(event["time"]), _place_of(event))


def _unseen(application_id: str, began: int, events: Iterable[Mapping[str, Any]]) -> Iterator[UnseenWriter]:
    times: dict[int, int] = {}  # of nodes, when they were first said
    places: dict[int, str] = {}
    for event in events:
        if event["type"] == contract.NODE_REGISTERED:
            node, time = event["node"], int(event["time"])
            times[node] = min(time, times.get(node, time))
            if _is_unseen_sink(event):
                places[node] = _place_of(event)
    for node, place in places.items():
        yield UnseenWriter(application_id, began, node, times[node], place)


def _place_of(node: Mapping[str, Any]) -> str:
    """The file or folder of its dataset."""
    return normal_path(location_of(node["dataset"])).rstrip("/")


def _is_unfollowed_source(node: Mapping[str, Any]) -> bool:
    return node["kind"] == "source" and _is_unfollowed(node) and bool(node.get("dataset"))


def _is_unfollowed(node: Mapping[str, Any]) -> bool:
    return node.get("relation") == contract.CARRIED and not node.get("exact", True)


def _is_unseen_sink(node: Mapping[str, Any]) -> bool:
    """Did it write files, and are rows in them of which it is not known in which?"""
    if node["kind"] != "sink" or not node.get("dataset"):
        return False
    return _is_unfollowed(node) or node["dataset"].get("unknown_files") is True


def _has_rows_of_files(node: Mapping[str, Any]) -> bool:
    """Its records are rows of files, or whole files that were read, and its query was followed."""
    dataset = None if _is_unfollowed_source(node) else node.get("dataset")
    format = file_format(str(dataset.get("format"))) if isinstance(dataset, Mapping) else None
    return format in LINES | NUMBERED or (format == "file" and node["kind"] == "source")
