"""Which application a data set names: the last that wrote it, else the last that read it."""

from __future__ import annotations

from datetime import datetime, timezone
from difflib import get_close_matches

from lineage_service.errors import NotFoundError
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.walk.dataset_links import FilesOfApplications

__all__ = ["DatasetUsers"]

_ALIKE, _LISTED = 0.6, 3


class DatasetUsers:
    """By the files of all applications of a store."""

    def __init__(self, files: FilesOfApplications) -> None:
        self._files = files

    def application_of(self, dataset: str, at: int | None = None) -> str:
        """With `at`, Unix milliseconds, of those that began until then. Raises NotFoundError."""
        self._files.refresh()
        pattern = PathPattern(dataset)
        users = self._files.users_of(pattern.fits)
        for _, began, application_id in users:
            if at is None or began <= at:
                return application_id
        if users:
            first = min(began for _, began, _ in users)
            when = datetime.fromtimestamp(first / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
            raise NotFoundError(
                f"no application wrote or read {pattern.path} until then: the first began at {when} UTC"
            )
        raise NotFoundError(
            f"no application wrote or read {pattern.path} as files whose records are known"
            f"{self._nearest(pattern.path)}"
        )

    def _nearest(self, path: str) -> str:
        folders = {
            place for folder in self._files.folders() for place in (folder, _without_partitions(folder))
        }
        near = get_close_matches(path, folders, n=_LISTED, cutoff=_ALIKE)
        if near:
            return f": did you mean {' or '.join(near)}?"
        return ": `lineage graph APP` lists the data sets of an application"


def _without_partitions(folder: str) -> str:
    """The table that a folder such as `/table/month=1/day=2` belongs to."""
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder
