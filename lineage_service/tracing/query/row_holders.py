"""Which records of which applications rows of data files are, by who wrote each file, else who read it.

A data file of a table is written once and never changes. So its path alone says which application has a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lineage_service.errors import NotFoundError
from lineage_service.lineage import Application, Choice, Direction
from lineage_service.queries import RowQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.columnar_rows import json_text
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.json_values import bounded
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.tables.table_search import rows_of_file
from lineage_service.tracing.tables.table_version import DataFile, TableVersion
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.linked_files import FileSplit
from spark_agent import contract

__all__ = ["HeldRows", "RowHolders"]

Opened = OpenedApplication[Snapshot]
#: Rows that are named where nobody has them.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class HeldRows:
    """`application` is the one of these rows that began last; `direction` where a trace of them goes.

    `unknown` says which rows no application has. None: there are none.
    """

    choices: tuple[Choice, ...]
    direction: Direction
    application: Application | None
    unknown: str | None


class RowHolders:
    """Of the applications of one flow store."""

    def __init__(
        self,
        open_application: Callable[[str], Opened],
        files: FilesOfApplications,
        locations: RecordLocations,
    ) -> None:
        self._open, self._files, self._locations = open_application, files, locations

    def of(
        self, version: TableVersion, rows: Sequence[tuple[DataFile, int]], query: RowQuery, check: Check
    ) -> HeldRows:
        """In the order of the rows."""
        self._files.refresh()
        choices: list[Choice] = []
        unknown: list[str] = []
        applications: dict[str, Application] = {}
        directions: set[Direction] = set()
        for file in dict.fromkeys(file for file, _ in rows):
            numbers = [row for of_file, row in rows if of_file == file]
            holder, direction = self._holder(file.path, query)
            if holder is None:
                unknown += [f"row {row} of {file.path}" for row in numbers]
                continue
            opened = self._open(holder.application_id)
            shown, not_shown = self._choices(version, file, numbers, opened, direction, check)
            unknown += not_shown
            choices += shown
            if shown:
                directions.add(direction)
                applications[holder.application_id] = opened.application
        return HeldRows(
            tuple(choices),
            "backward" if "backward" in directions else "forward",
            max(applications.values(), key=lambda application: application.started, default=None),
            _unknown(version, query, unknown) if unknown else None,
        )

    def application(self, application_id: str) -> Application:
        """Raises NotFoundError."""
        return self._open(application_id).application

    def record_of(self, path: str, row: int, check: Check) -> tuple[Application, str, str] | None:
        """(application, node id, record id) of who wrote the file; None where nobody is known that did."""
        self._files.refresh()
        written, _ = self._files.of_file(path)
        if not written:
            return None
        opened = self._open(written[0].application_id)
        topology = opened.graph.topology
        try:
            [(node, partition, offset), *_] = self._locations.find(topology, path, row, check)
        except NotFoundError:
            return None
        record_id = contract.record_id(topology.nodes[node].kind, partition, offset)
        return opened.application, contract.node_id(opened.application.application_id, node), record_id

    def applications_of(self, path: str) -> tuple[list[str], list[str]]:
        """(who wrote a file, who read it), by their ids."""
        self._files.refresh()
        written, read = self._files.of_file(path)
        return (
            list(dict.fromkeys(split.application_id for split in written)),
            list(dict.fromkeys(split.application_id for split in read)),
        )

    def _holder(self, path: str, query: RowQuery) -> tuple[FileSplit | None, Direction]:
        """Who wrote a file, else who read it; and where a trace of its rows goes."""
        written, read = (
            [split for split in splits if query.application in (None, split.application_id)]
            for splits in self._files.of_file(path)
        )
        holder = next(iter([*written, *read]), None)
        return holder, query.direction or ("backward" if written else "forward")

    def _choices(
        self,
        version: TableVersion,
        file: DataFile,
        rows: Sequence[int],
        opened: Opened,
        direction: Direction,
        check: Check,
    ) -> tuple[list[Choice], list[str]]:
        """And what is said of rows that are no record of the application."""
        files, topology = self._locations.file_rows.files, opened.graph.topology
        warning = None
        try:
            columns_of = rows_of_file(files, version, file, rows, check)
        except UnreadableError as error:
            columns_of, warning = {}, str(error)
        choices, unknown = [], []
        for row in rows:
            try:
                [(node, partition, offset), *_] = self._locations.find(
                    topology, file.path, row, check, direction=direction
                )
            except NotFoundError as error:
                unknown.append(f"row {row} of {file.path} ({error})")
                continue
            columns = columns_of.get(row)
            choices.append(
                Choice(
                    node_id=contract.node_id(opened.application.application_id, node),
                    record_id=contract.record_id(topology.nodes[node].kind, partition, offset),
                    path=file.path,
                    row=row,
                    line=row + 1,
                    columns=None if columns is None else bounded(columns)[0],
                    text=None if columns is None else json_text(columns),
                    warning=warning,
                )
            )
        return choices, unknown


def _unknown(version: TableVersion, query: RowQuery, unknown: Sequence[str]) -> str:
    who = query.application or "no application that is known"
    did = "wrote or read" if query.application is None else "neither wrote nor read"
    rows = "1 row" if len(unknown) == 1 else f"{len(unknown):,} rows"
    more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
    return (
        f"{who} {did} {rows} of {version.name} of {version.table} that {query.where} is true of: "
        f"{', '.join(unknown[:_NAMED])}{more}"
    )
