"""All datasets of all applications, and which of them each source and sink belongs to. Pure.

What a sink names is a dataset. What a source names may be more or less than that: a file belongs to the
innermost folder that some application wrote, else to its folder where any application read several files of
it or all of it. So whoever reads a part of a dataset is among its readers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from lineage_service.datasets.places import (
    folder_of,
    has_wildcards,
    in_folder,
    is_in,
    matches,
    with_folders,
    without_wildcards,
)
from lineage_service.datasets.uses import ApplicationUses, Use
from spark_agent.contract.dataset_names import DatasetName, is_of_files, path_of

__all__ = ["Catalogue", "Entry", "Placed"]


class Placed(NamedTuple):
    """A source or a sink, and the application that it is of."""

    application: ApplicationUses
    use: Use

    @property
    def order(self) -> tuple[int, int, str, int]:
        """In time."""
        return self.use.at, self.application.began, self.application.application_id, self.use.node


@dataclass(slots=True)
class Entry:
    """One dataset, with all that wrote or read it, in time."""

    place: DatasetName
    writes: list[Placed] = field(default_factory=list)
    reads: list[Placed] = field(default_factory=list)

    @property
    def uses(self) -> Iterator[Placed]:
        """The latest first, those that wrote before those that read."""
        return chain(reversed(self.writes), reversed(self.reads))

    @property
    def format(self) -> str:
        return next((used.use.format for used in self.uses if used.use.format), "")

    @property
    def path(self) -> str:
        """As a job would write it."""
        return path_of(*self.place, self.format)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its names in catalogs."""
        return tuple(dict.fromkeys(alias for used in self.uses for alias in used.use.aliases))


class Catalogue:
    """The datasets of these applications. It does not change."""

    def __init__(self, applications: Iterable[ApplicationUses]) -> None:
        self.applications = list(applications)
        uses = [Placed(application, use) for application in self.applications for use in application.uses]
        written = {used.use.place for used in uses if used.use.is_write}
        resolver = _Resolver(written, _folders_read(used.use for used in uses if not used.use.is_write))
        self.entries: dict[DatasetName, Entry] = {}
        #: (application id, node) -> the datasets that a source or a sink belongs to.
        self.places: dict[tuple[str, int], tuple[DatasetName, ...]] = {}
        for used in sorted(uses, key=lambda used: used.order):
            is_write = used.use.is_write
            places = (used.use.place,) if is_write else tuple(resolver.places_of(used.use))
            self.places[used.application.application_id, used.use.node] = places
            for place in places:
                entry = self.entries.setdefault(place, Entry(place))
                (entry.writes if is_write else entry.reads).append(used)


def _folders_read(uses: Iterable[Use]) -> set[DatasetName]:
    """The folders that some source read as a whole, or of which it read several files.

    Files that were named stand here, too: nothing is in them.
    """
    folders = set()
    for use in uses:
        is_pattern = has_wildcards(use.place)
        folders.add(without_wildcards(use.place) if is_pattern else use.place)
        folders.update(folder for folder, files in use.files.items() if is_pattern or len(files) != 1)
    return folders


class _Resolver:
    """Which datasets a source reads."""

    def __init__(self, written: Collection[DatasetName], folders_read: Collection[DatasetName]) -> None:
        self._written, self._folders_read = written, folders_read
        self._written_in: dict[DatasetName, list[DatasetName]] = defaultdict(list)
        for place in written:
            for folder in with_folders(place):
                if folder != place:
                    self._written_in[folder].append(place)

    def places_of(self, use: Use) -> Iterable[DatasetName]:
        """At least one, each once."""
        if not is_of_files(use.format):
            return [use.place]
        places: dict[DatasetName, None] = {}
        for folder, files in use.files.items():
            places.update(dict.fromkeys(self._of_folder(use, folder, files)))
        if not places or not use.is_followed:
            places.update(dict.fromkeys(self._of_place(use)))
        return places

    def _of_folder(self, use: Use, folder: DatasetName, files: Sequence[str]) -> Iterator[DatasetName]:
        """Those that the files of a folder belong to; `files` is empty of the partitions of a table."""
        alone = self._written_alone(folder, files)
        yield from alone
        if files and len(alone) == len(files):
            return
        outer = self._innermost_written(folder)
        if outer is not None:
            yield outer
        elif use.place == folder or is_in(folder, use.place):
            yield use.place
        elif folder in self._folders_read:
            yield folder
        else:
            yield in_folder(folder, files[0])

    def _written_alone(self, folder: DatasetName, files: Iterable[str]) -> list[DatasetName]:
        """Those of the files that are datasets of their own, because a program wrote them one by one."""
        if folder not in self._written_in:
            return []
        return [file for file in (in_folder(folder, name) for name in files) if file in self._written]

    def _of_place(self, use: Use) -> Iterator[DatasetName]:
        """Those that it names, where its files are not known, or not all of them."""
        if has_wildcards(use.place):
            base = without_wildcards(use.place)
            inside = [place for place in self._written_in.get(base, ()) if matches(use.place, place)]
            yield from inside or [self._innermost_written(base) or base]
            return
        yield self._of_named(use.place)
        yield from self._written_in.get(use.place, ())

    def _of_named(self, place: DatasetName) -> DatasetName:
        outer = self._innermost_written(place)
        folder = folder_of(place)
        if outer is None and folder is not None and folder in self._folders_read:
            return folder
        return outer or place

    def _innermost_written(self, place: DatasetName) -> DatasetName | None:
        return next((folder for folder in with_folders(place) if folder in self._written), None)
