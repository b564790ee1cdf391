"""Ways from one application to the next: a file that one wrote and another read.

What Newt (Logothetis and others, 2013) calls ghost links: nobody captured them, they follow from the files. A
file counts as the same where its path and, as far as both applications know them, its size and time are; of
several writers the last one that began before the reader. So a file that was written anew in between links
nothing. Rows are counted, so a file in which a record has several rows links nothing either. A record that is
a whole file (of wholeTextFiles, binaryFiles) is made of all that was written there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from lineage_service.tracing.places import normal_path
from spark_agent import contract

__all__ = ["FileSplit", "FilesOfApplications"]


@dataclass(frozen=True, slots=True)
class FileSplit:
    """A part of a text file that is one split of a source, or a file that is one of a sink.

    Or a file that is one record of a source: `record` is its offset in the split.
    """

    application_id: str
    began: int
    node: int
    split: int
    path: str
    start: int
    size: int | None
    modified: int | None
    record: int | None = None

    def is_same_file(self, other: FileSplit) -> bool:
        """As far as both know its size and its time."""
        pairs = ((self.size, other.size), (self.modified, other.modified))
        return all(mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None)


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
        self._read: dict[str, tuple[object, list[FileSplit], list[FileSplit]]] = {}  # with its version
        self._written_to: dict[str, list[FileSplit]] = {}
        self._read_from: dict[str, list[FileSplit]] = {}

    def writer_of(self, read: FileSplit) -> FileSplit | None:
        """Who wrote what a source read."""
        writers = [
            each
            for each in self._written_to.get(read.path, ())
            if each.is_same_file(read)
            and (each.began < read.began or each.application_id == read.application_id)
        ]
        return max(writers, key=lambda each: (each.began, each.node), default=None)

    def readers_of(self, written: FileSplit) -> list[FileSplit]:
        """The splits of sources that read what a sink wrote."""
        return [each for each in self._read_from.get(written.path, ()) if self.writer_of(each) == written]

    def splits(self, application_id: str, path: str, node: int) -> list[FileSplit]:
        """All splits of a source that read a file, in order."""
        found = self._read_from.get(path, ())
        mine = [each for each in found if (each.application_id, each.node) == (application_id, node)]
        return sorted(mine, key=lambda each: each.start)

    def of(self, application_id: str, node: int) -> Iterator[FileSplit]:
        """The files of a source or a sink."""
        _, read, written = self._read.get(application_id, (None, [], []))
        return (each for each in (*read, *written) if each.node == node)

    def refresh(self) -> None:
        """Read what came since."""
        with self._lock:
            version = self._store.version()
            if version == self._version:
                return
            known, self._read = self._read, {}
            for application_id, its_version in self._store.versions("events").items():
                held = known.get(application_id)
                if held is None or held[0] != its_version:
                    held = (its_version, *_files_of(application_id, self._store.events(application_id)))
                self._read[application_id] = held
            self._read_from = _by_path(each for _, read, _ in self._read.values() for each in read)
            self._written_to = _by_path(each for _, _, written in self._read.values() for each in written)
            self._version = version


def _by_path(splits: Iterable[FileSplit]) -> dict[str, list[FileSplit]]:
    found: dict[str, list[FileSplit]] = defaultdict(list)
    for each in splits:
        found[each.path].append(each)
    return found


def _files_of(
    application_id: str, events: Iterable[Mapping[str, Any]]
) -> tuple[list[FileSplit], list[FileSplit]]:
    """(read, written)."""
    began, kinds, told = 0, dict[int, str](), list[Mapping[str, Any]]()
    for event in events:
        if event["type"] == contract.APPLICATION_STARTED:
            began = int(event["time"])
        elif event["type"] == contract.NODE_REGISTERED and _is_followed(event):
            kinds[event["node"]] = str(event["kind"])
        elif event["type"] == contract.PARTITIONS:
            told.append(event)
    splits: dict[tuple[int, int], list[FileSplit]] = {}
    for event in told:
        for partition in event["partitions"]:
            if event["node"] in kinds:
                place = event["node"], partition["split"]
                splits[place] = [
                    FileSplit(
                        application_id,
                        began,
                        *place,
                        normal_path(str(file["path"])),
                        int(file.get("start", 0)),
                        file.get("size"),
                        file.get("modified"),
                        record,
                    )
                    for record, file in _files_in(partition)
                ]
    every = [each for found in splits.values() for each in found]
    return (
        [each for each in every if kinds[each.node] == "source"],
        [each for each in every if kinds[each.node] == "sink"],
    )


def _files_in(partition: Mapping[str, Any]) -> list[tuple[int | None, Mapping[str, Any]]]:
    """(the record that it is, None where its rows are records; the file)."""
    if "files" in partition:
        return list(enumerate(partition["files"]))
    return [(None, partition)] if "path" in partition and "record_length" not in partition else []


def _is_followed(node: Mapping[str, Any]) -> bool:
    """Its records are rows of text files, or whole files that were read."""
    dataset = node.get("dataset")
    format = dataset.get("format") if isinstance(dataset, Mapping) else None
    return format == "text" or (format == "file" and node["kind"] == "source")
