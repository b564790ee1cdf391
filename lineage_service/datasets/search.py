"""Which dataset is meant by what a person types. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches

from lineage_service.datasets.catalogue import Catalogue, Entry
from lineage_service.datasets.places import with_folders
from lineage_service.errors import InvalidQueryError, NotFoundError
from spark_agent.contract.dataset_names import one_path, place_named

__all__ = ["UnknownDatasetError", "dataset_named", "datasets_with"]

#: So many names are listed where one has to be chosen, or is near.
_MOST_LISTED = 10
_NEAREST = 3
#: How alike two names must be, from 0 to 1 (difflib).
_ALIKE = 0.5
#: The beginning of `catalog.database.table`.
_CATALOG = re.compile(r"[^./]+\.(?=[^./]+\.[^/]+$)")


class UnknownDatasetError(NotFoundError):
    """No application wrote or read a dataset of that name."""


def datasets_with(catalogue: Catalogue, text: str | None) -> list[Entry]:
    """Those whose names hold a text, in any case; all without one."""
    if not text:
        return list(catalogue.entries.values())
    part = _path_of(text).casefold()
    return [
        entry
        for entry in catalogue.entries.values()
        if any(part in name.casefold() for name in _names_of(entry))
    ]


def dataset_named(catalogue: Catalogue, name: str, namespace: str | None = None) -> Entry:
    """By its path, URI, name in a catalog with or without that of the catalog, or an ending of these.

    Raises UnknownDatasetError; InvalidQueryError if several match, as several may have an ending.
    """
    entries = [
        entry
        for entry in catalogue.entries.values()
        if namespace is None or entry.place.namespace == namespace
    ]
    for search in (_at, _called, _around, _ending, _in_catalog):
        matches = search(entries, name)
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise InvalidQueryError(f"{name!r} may be any of several datasets: {_listed(matches)}")
    raise UnknownDatasetError(_unknown(catalogue, entries, name))


def _at(entries: Iterable[Entry], name: str) -> list[Entry]:
    """The one at a path."""
    path = _path_of(name)
    return [entry for entry in entries if entry.path == path]


def _called(entries: Iterable[Entry], name: str) -> list[Entry]:
    """Those that are called so where they are, or in a catalog."""
    return [entry for entry in entries if name in (entry.place.name, *entry.aliases)]


def _around(entries: Iterable[Entry], name: str) -> list[Entry]:
    """The innermost that a file or folder is in, or the table whose partition it is."""
    path = _path_of(name)
    if not path.startswith("/") and "://" not in path:
        return []
    by_place = {entry.place: entry for entry in entries}
    folders = with_folders(place_named(path))
    return [by_place[place] for place in folders if place in by_place][:1]


def _ending(entries: Iterable[Entry], name: str) -> list[Entry]:
    """Those with a name that ends so, at the beginning of a folder's name or of a table's."""
    ending = name.strip("/")
    if not ending:
        return []
    database, dot, table = ending.rpartition(".")
    endings = (f"/{ending}", f".{ending}", *([f"/{database}.db/{table}"] if dot else []))
    return [
        entry
        for entry in entries
        if any(whole == ending or whole.endswith(endings) for whole in _names_of(entry))
    ]


def _in_catalog(entries: Iterable[Entry], name: str) -> list[Entry]:
    """Those with an alias that a catalog's name stands before: agents may leave it out.

    Not those of which another catalog is known.
    """
    table = _CATALOG.sub("", name, count=1)
    return [
        entry
        for entry in entries
        if "." in table
        and table in entry.aliases
        and not any(alias.endswith(f".{table}") for alias in entry.aliases)
    ]


def _names_of(entry: Entry) -> tuple[str, ...]:
    return entry.path, entry.place.name, *entry.aliases


def _path_of(name: str) -> str:
    """As datasets are called: without `file:`, and with one scheme for those of one store."""
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    path = one_path(name)
    return path.rstrip("/") or path if "://" in path or not path.startswith("/") else os.path.normpath(path)


def _unknown(catalogue: Catalogue, entries: Iterable[Entry], name: str) -> str:
    """That nobody wrote or read it; who did without being followed, and what is near."""
    sentence = f"no application wrote or read a dataset {name!r}"
    unfollowed = [
        f"{application.name!r} ({application.application_id}) "
        f"{'wrote' if thing.is_write else 'read'} {thing.text!r}, which was not followed: {thing.reason}"
        for application in catalogue.applications
        for thing in application.unnamed
        if name.casefold().strip("/") in thing.text.casefold()
    ]
    if unfollowed:
        more = f", and {len(unfollowed) - 1} more did" if len(unfollowed) > 1 else ""
        return f"{sentence} that is known by name. {unfollowed[-1]}{more}"
    near = _nearest(entries, name)
    return f"{sentence}; nearest: {', '.join(near)}" if near else sentence


def _nearest(entries: Iterable[Entry], name: str) -> list[str]:
    """By their whole names, else by the last parts of these."""
    by_path = {entry.path: entry for entry in entries}
    folded = name.casefold()
    names = {path.casefold(): path for path in by_path}
    near = get_close_matches(folded, names, n=_NEAREST, cutoff=_ALIKE)
    if "/" not in name.strip("/"):
        lasts: dict[str, list[str]] = {}
        for path in by_path:
            lasts.setdefault(path.rpartition("/")[2].casefold(), []).append(path)
        alike = get_close_matches(folded.strip("/"), lasts, n=_NEAREST, cutoff=_ALIKE)
        return [path for last in alike for path in lasts[last]][:_NEAREST]
    return [names[alike] for alike in near]


def _listed(entries: Iterable[Entry]) -> str:
    paths = sorted(entry.path for entry in entries)
    more = len(paths) - _MOST_LISTED
    return ", ".join(paths[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
