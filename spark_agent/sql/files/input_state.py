"""The files that a query reads, as they are when it is planned, and whether they still are the same.

Spark lists the files of a scan once and reads that list. A reference to it is remembered, and compared with a
new list when the query is to run again. A file of another size or time, one that is gone and one that is new
under the same roots are all a change. Promises to leave the lists of the user's own DataFrames as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Plan

#: Leaves that hold their rows themselves, or make them of nothing.
_WITHOUT_INPUTS = frozenset(("LocalRelation", "Range", "OneRowRelation", "EmptyRelation", "CommandResult"))
#: What Hadoop's FileStatus says of itself: one call for a whole list of files.
_FILE = re.compile(
    r"FileStatus\{path=(.*?); isDirectory=false; length=([0-9]+);.*?modification_time=([0-9]+);"
)

Listing = dict[str, tuple[int, int]]
"""Path -> (size in bytes, time of the last change in Unix milliseconds)."""


class UncheckedInputError(Exception):
    """It cannot be known whether what a query read is still the same; the text says why."""


@dataclass(frozen=True)
class Scan:
    """One scan: how its files are found, and those that were (a Seq of FileStatus)."""

    index: Any
    options: Any
    files: Any


class Inputs:
    """Looks at the files of plans, in one JVM."""

    def __init__(self, catalyst: Catalyst, jvm: Any) -> None:
        self._catalyst = catalyst
        self._datasources = jvm.org.apache.spark.sql.execution.datasources

    def of(self, plan: Plan) -> list[Scan]:
        """The scans of a plan as they are now. Raises UncheckedInputError for what is no scan of files."""
        scans = []
        for leaf in self.leaves(plan):
            name = self._catalyst.kind(leaf)
            relation = leaf.relation() if name == "LogicalRelation" else None
            if relation is not None and self._catalyst.kind(relation) == "HadoopFsRelation":
                index = relation.location()
                scans.append(Scan(index, relation.options(), self._listed(index)))
            elif name not in _WITHOUT_INPUTS:
                what = str(leaf.nodeName())
                raise UncheckedInputError(
                    f"it reads {what}, and whether that is still the same cannot be checked later"
                )
        return scans

    def change(self, scans: list[Scan], java_session: Any) -> str:
        """What has changed, in words that name the file; "" for nothing."""
        for scan in scans:
            before = listing(scan.files)
            try:
                now = listing(self._listed(self._again(scan, java_session)))
            except Exception as error:  # noqa: BLE001 - py4j's: a root that is gone, a store that is down
                reason = str(error).splitlines()
                return _gone(before) or f"its inputs cannot be listed ({(reason or [''])[0][:200]})"
            changed = _change(before, now) or _change(before, listing(self._listed(scan.index)))
            if changed:
                return changed
        return ""

    def _listed(self, index: Any) -> Any:
        if self._catalyst.kind(index) == "CatalogFileIndex":
            index = index.filterPartitions(self._catalyst.seq([]))
        try:
            return index.allFiles()
        except Exception as error:  # py4j's, which are not imported here
            raise UncheckedInputError(f"the files of {index} are not known") from error

    def _again(self, scan: Scan, java_session: Any) -> Any:
        """The index as it would be made now. The one of the scan may be the user's, and is left alone."""
        if self._catalyst.kind(scan.index) == "CatalogFileIndex":
            size = scan.index.sizeInBytes()
            return self._datasources.CatalogFileIndex(java_session, scan.index.table(), size)
        return self.index(java_session, scan.index.rootPaths(), scan.options)

    def index(self, java_session: Any, roots: Any, options: Any) -> Any:
        """A list of the files below some paths, hidden ones left out, as a scan makes it."""
        none = self._catalyst.none
        no_cache = getattr(getattr(self._datasources, "NoopCache$"), "MODULE$")
        return self._datasources.InMemoryFileIndex(java_session, roots, options, none, no_cache, none, none)

    def leaves(self, plan: Plan) -> Iterator[Plan]:
        """The leaves of a plan, of its subqueries and of what it has cached.

        Raises UncheckedInputError.
        """
        for part in parts_of(self._catalyst, plan):
            if self._catalyst.kind(part) == "InMemoryRelation":
                behind = self._catalyst.behind_cache(part)
                if behind is None:
                    raise UncheckedInputError("what was cached is not known before Spark 4.0")
                yield from self.leaves(behind)
            elif part.children().isEmpty():
                yield part


def parts_of(catalyst: Catalyst, plan: Plan) -> Iterator[Plan]:
    """Every operator of a plan and of its subqueries."""
    yield plan
    for child in catalyst.items(plan.children()):
        yield from parts_of(catalyst, child)
    for subquery in catalyst.items(plan.subqueries()):
        yield from parts_of(catalyst, subquery)


def listing(files: Any) -> Listing:
    return {
        partitions.local_path(path): (int(size), int(time))
        for path, size, time in _FILE.findall(str(files.mkString("\n")))
    }


def _change(before: Listing, now: Listing) -> str:
    gone = _gone({path: state for path, state in before.items() if path not in now})
    if gone:
        return gone
    for path in sorted(now):
        if path not in before:
            return f"{path} is new"
        if now[path] != before[path]:
            (size, time), (size_now, time_now) = before[path], now[path]
            if size != size_now:
                return f"{path} has changed ({size:,} bytes then, {size_now:,} now)"
            return f"{path} was written again since (at {time} ms then, at {time_now} ms now)"
    return ""


def _gone(files: Listing) -> str:
    return f"{min(files)} is gone" if files else ""
