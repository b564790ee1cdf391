"""Which application a dataset names: the last that wrote it, else the last that read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from lineage_service.datasets.catalogue import Entry
from lineage_service.datasets.catalogue_cache import StoredDatasets
from lineage_service.datasets.search import UnknownDatasetError, dataset_named
from lineage_service.errors import NotFoundError
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.tables.table_versions import DELTA, ICEBERG
from lineage_service.tracing.walk.dataset_links import FilesOfApplications

__all__ = ["DatasetUsers", "Meant", "MeantTable"]

#: Formats of tables whose versions can be read.
_VERSIONED = frozenset((DELTA, ICEBERG))


@dataclass(frozen=True, slots=True)
class Meant:
    """An application, and what is meant there: files by their path, else an operation without files."""

    application_id: str
    dataset: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class MeantTable:
    """A table of a format that keeps versions. `folder` is it, or that of one of its partitions.

    `application_id` is of the last that wrote it, else the last that read it.
    """

    path: str
    folder: str
    format: str
    application_id: str


class DatasetUsers:
    """By the files of all applications of a store, else by the names of datasets in its catalogue."""

    def __init__(self, files: FilesOfApplications, datasets: StoredDatasets) -> None:
        self._files, self._datasets = files, datasets

    def meant(
        self,
        dataset: str,
        at: int | None = None,
        application_id: str | None = None,
        *,
        as_input: bool = False,
    ) -> Meant:
        """With `at`, Unix milliseconds, of those that began until then; with an application, there.

        `as_input`: who read it goes before who wrote it.

        Raises NotFoundError, InvalidQueryError.
        """
        self._files.refresh()
        by_files = self._by_files(dataset, at, application_id, as_input=as_input)
        if by_files is not None:
            return by_files
        try:
            entry = dataset_named(self._datasets.state().catalogue, dataset)
        except UnknownDatasetError:
            if application_id is None:
                raise
            return Meant(application_id, dataset)  # which says what it has
        by_files = self._by_files(entry.path, at, application_id, as_input=as_input)
        return by_files or _without_files(entry, at, application_id)

    def table(self, dataset: str) -> MeantTable | None:
        """The table that a name, a path or the folder of a partition means; None of other datasets.

        Raises InvalidQueryError where several have the name.
        """
        try:
            entry = dataset_named(self._datasets.state().catalogue, dataset)
        except UnknownDatasetError:
            return None
        if entry.format not in _VERSIONED:
            return None
        folder: str = entry.path
        if "/" in dataset and dataset not in entry.aliases:
            path = normal_path(dataset).rstrip("/")
            if path.startswith(f"{entry.path}/"):
                folder = path
        if not all("=" in name for name in folder[len(entry.path) + 1 :].split("/") if name):
            return None  # a file, or a folder that is none of a partition
        return MeantTable(entry.path, folder, entry.format, next(entry.uses).application.application_id)

    def _by_files(self, dataset: str, at: int | None, only: str | None, *, as_input: bool) -> Meant | None:
        every = self._files.users_of(PathPattern(dataset).fits)
        if as_input:
            every.sort(key=lambda user: user[0])
        users = [
            (began, application_id) for _, began, application_id in every if only in (None, application_id)
        ]
        for began, application_id in users:
            if at is None or began <= at:
                return Meant(application_id, dataset)
        if users:
            raise _too_early(dataset, min(began for began, _ in users))
        return None


def _without_files(entry: Entry, at: int | None, only: str | None) -> Meant:
    uses = [placed for placed in entry.uses if only in (None, placed.application.application_id)]
    for application, use in uses:
        if at is None or application.began <= at:
            return Meant(application.application_id, node=str(use.node))
    if only is not None:
        raise NotFoundError(f"application {only} neither wrote nor read {entry.path}")
    raise _too_early(entry.path, min(placed.application.began for placed in entry.uses))


def _too_early(dataset: str, first: int) -> NotFoundError:
    when = datetime.fromtimestamp(first / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    return NotFoundError(f"no application wrote or read {dataset} until then: the first began at {when} UTC")
