"""What a statement writes into a table of Iceberg: which rows of which data file its records have become.

Its tasks write before it commits. Once the query has ended, Iceberg's own classes say which snapshot has
files of this write, how many rows each has, and which partition it is of. That takes no listing of folders,
so it works wherever the table is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from spark_agent.delivery.log import logger
from spark_agent.driver import partitions
from spark_agent.sql.catalog_names import name_in_catalog, symlinks_in
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.outputs import Output
from spark_agent.sql.files.scans import format_of_table
from spark_agent.sql.plan_schemas import schema_given
from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.table_formats import iceberg_files, row_level_commands, row_operations
from spark_agent.sql.table_formats.iceberg_files import DataFile
from spark_agent.sql.tables import Endpoint, class_name, written_by
from spark_agent.sql.types import Expression, OutputFiles, Plan

#: As Iceberg writes a transform: `day`, `bucket[16]`.
_TRANSFORM = re.compile(r"([a-z]+)(?:\[([0-9]+)\])?")
#: Transforms -> the functions of Iceberg's catalogs that compute them.
_FUNCTIONS = {
    "year": "years",
    "month": "months",
    "day": "days",
    "hour": "hours",
    "bucket": "bucket",
    "truncate": "truncate",
}
#: Of a statement that deletes by positions: the column that says what is done with a row, and a deletion.
_OPERATION, _DELETE = "__row_operation", 1
#: Of a table that is created or replaced with what is written into it.
_STAGED = "StagedSparkTable"
#: Statements that keep the ids of rows, so that a file's own numbers are not theirs.
_KEEPING_ROW_IDS = frozenset(("ReplaceData", "WriteDelta"))


class IcebergCommit(NamedTuple):
    """What has come of a statement: a snapshot of the table, and its new data files."""

    version: str
    files: tuple[DataFile, ...]


class UnknownPartitionsError(Exception):
    """Which partition a row goes into is not known; the text says why."""


@dataclass
class IcebergOutput(Output):
    """Data files of one statement. `write` is its IcebergWrite of the JVM, `id` what their names hold."""

    write: Any = None
    id: str = ""
    keeps_row_ids: bool = False
    #: What the same statement writes, of the rows that it deletes, or the other way round.
    beside: IcebergOutput | None = None
    _runs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # of its rows, by partitions

    def _take_places(self, split: int, rows: int, report: Mapping[str, Any]) -> None:
        runs = report.get("places")
        if self.output_files is None or (self._is_divided and runs is None):
            return
        ordered = [0, 0] if runs is None else runs["runs"]
        self._runs[split] = list(zip(ordered[::2], ordered[1::2], strict=True)) if rows else []

    @property
    def is_committed_later(self) -> bool:
        """A statement that has no rows may leave no file by which its snapshot could be told."""
        others = () if self.beside is None else self.beside._rows.values()
        return any(self._rows.values()) or any(others)

    def commit(self) -> IcebergCommit | None:
        text = text_of(self.write.commit())
        if not text:
            return None
        committed = json.loads(text)
        files = (
            DataFile(
                partitions.local_path(file["path"]),
                file["rows"],
                file["size"],
                file["partition"],
                None if self.keeps_row_ids else file["row_id"],
            )
            for file in committed["files"]
        )
        return IcebergCommit(committed["version"], tuple(files))

    def files_of(self, commit: IcebergCommit) -> list[dict[str, Any]]:
        of_tasks = iceberg_files.files_of_tasks(commit.files, self.id)
        described = []
        for split, runs in sorted(self._runs.items()):
            if not runs:
                continue
            pieces = iceberg_files.pieces_of(self._rows[split], runs, of_tasks.get(split, []))
            if pieces is None:
                logger.debug("which rows of %s task %d wrote is not known", self.path, split)
                continue
            files = {piece.file.path: piece.file for piece in pieces}
            states = {path: {**partitions.status(path), "size": file.size} for path, file in files.items()}
            described.append({"split": split, "parts": iceberg_files.parts_of(pieces, states)})
        return described


def text_of(said: Any) -> str:
    """A text of the JVM, which may come in pieces."""
    # py4j's iterator would ask twice, and end with an error.
    return said if isinstance(said, str) else "".join(said.get(at) for at in range(said.size()))


class UnknownTableError(Exception):
    """What a command writes is a table of Iceberg, of which nothing more is known; the text says why."""


def of_command(catalyst: Catalyst, command: Plan, kind: str, query: Plan) -> IcebergOutput | None:
    """Where a command writes; None where that is no table of Iceberg. Raises UnknownTableError."""
    write = catalyst.iceberg.write(command)
    if write is None:
        return None
    try:
        said = json.loads(write.describe())
        stays = what_stays(catalyst, command, kind, said["partitions"])
    except Exception as error:  # another Iceberg than is expected
        logger.debug("a table that is written is not known", exc_info=True)
        raise UnknownTableError(in_short(error)) from error
    path, dataset, name = place_of(command, command.table(), said)
    if stays is not None:
        dataset[stays] = True
    output = IcebergOutput(path, dataset, write=write, id=said["id"], keeps_row_ids=kind in _KEEPING_ROW_IDS)
    output.label = name
    if row_level_commands.is_only_deleting(command, kind):
        output.dataset, output.reason = {**dataset, "operation": "delete"}, row_operations.DELETED
        return output
    output.schema = schema_given(catalyst, query)
    if kind == "WriteDelta":
        output.left_out = partial(_deletions, catalyst, query)
    try:
        output.output_files = _files(catalyst, query, said["partitions"])
    except Exception:  # noqa: BLE001 - then its rows are followed all the same, but not to files
        logger.debug("which rows go into which file of %s is not known", path, exc_info=True)
    return output


def place_of(command: Plan, table: Any, said: Mapping[str, Any]) -> tuple[str, dict[str, Any], str]:
    """The folder of a table, what a node says of it, and what people call it.

    `table` is that of a command, `said` what Iceberg's classes say of it: table, location, format.
    """
    path = partitions.local_path(said["location"]).rstrip("/")
    dataset: dict[str, Any] = partitions.dataset(path, format_of_table(said["format"]))
    name = name_in_catalog(table, said["table"])
    if links := symlinks_in(command, name):
        dataset["symlinks"] = links
    return path, dataset, name


def of_deletion(output: IcebergOutput) -> IcebergOutput:
    """Where the rows go that a statement deletes beside those that it writes: they have no files."""
    deletion = IcebergOutput(
        output.path,
        {**output.dataset, "operation": "delete"},
        label=output.label,
        reason=row_operations.DELETED,
        write=output.write,
        id=output.id,
        beside=output,
    )
    output.beside = deletion
    return deletion


def of_unknown(catalyst: Catalyst, command: Plan, kind: str, query: Plan) -> Output | None:
    """Where a command writes for which `of_command` raises; None where all rows of its query are written.

    Rows that only say which row is deleted are no records, whatever else is known.
    """
    if kind != "WriteDelta":
        return None
    endpoint = written_by(command) or Endpoint("")
    left_out = partial(_deletions, catalyst, query)
    return Output(endpoint.description, dict(endpoint.dataset or {}), left_out=left_out)


def what_stays(catalyst: Catalyst, command: Plan, kind: str, fields: Sequence[object]) -> str | None:
    """What is left of the rows that were there before.

    `appends`: all of them, `replaces_part`: some, None: none.
    """
    if kind == "AppendData":
        is_new = class_name(command.table().table()) == _STAGED
        return None if is_new else "appends"
    if kind == "OverwriteByExpression":
        is_whole = catalyst.kind(command.deleteExpr()) == "Literal" and str(command.deleteExpr()) == "true"
    else:  # a statement that changes rows; of an overwrite the partitions that it has rows for
        is_whole = kind == "OverwritePartitionsDynamic" and not fields
    return None if is_whole else "replaces_part"


def _deletions(catalyst: Catalyst, query: Plan) -> Expression:
    """Rows that only say which row of the table is deleted. Raises UncoveredError."""
    operations = [column for column in catalyst.items(query.output()) if str(column.name()) == _OPERATION]
    if len(operations) != 1:
        raise UncoveredError("a statement that does not say what it does with each row")
    return catalyst.same(operations[0], catalyst.number(_DELETE))


def _files(catalyst: Catalyst, query: Plan, fields: Sequence[Mapping[str, str]]) -> OutputFiles:
    """Raises UnknownPartitionsError, and what py4j raises."""
    fields = [field for field in fields if field["transform"] != "void"]
    if not fields:
        return OutputFiles()
    columns: dict[str, Expression] = {}
    for column in catalyst.items(query.output()):
        columns.setdefault(str(column.name()).casefold(), column)
    keys, texts = [], []
    for partition in fields:
        column = columns.get(partition["column"].casefold())
        if column is None:
            raise UnknownPartitionsError(f"no column {partition['column']}")
        value = _transformed(catalyst, column, partition["transform"])
        keys += [value, catalyst.is_null(column)]
        texts.append(catalyst.text(value, "UTC"))
    return OutputFiles(catalyst.key(keys), None, [field["name"] for field in fields], texts)


def _transformed(catalyst: Catalyst, column: Expression, transform: str) -> Expression:
    """The value of a partition, by Iceberg's own functions."""
    match = _TRANSFORM.fullmatch(transform)
    if match is None or (match[1] != "identity" and match[1] not in _FUNCTIONS):
        raise UnknownPartitionsError(f"partitioned by {transform}")
    if match[1] == "identity":
        return column
    arguments = [column] if match[2] is None else [catalyst.number(int(match[2])), column]
    return catalyst.iceberg.function(_FUNCTIONS[match[1]], arguments)
