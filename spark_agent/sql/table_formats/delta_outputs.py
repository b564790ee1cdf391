"""What a transaction of Delta Lake writes: which rows of which data file its records have become.

Its tasks write before it commits, so its files are looked up in the table's log afterwards. Delta Lake sorts
the rows of a task by the columns of partitions behind the query. The same order is put into the query, so
that the rows that are counted are those of the files. Promises to say nothing of a file whose number of rows
is not that of its records.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from spark_agent.delivery.log import logger
from spark_agent.driver import partitions
from spark_agent.sql.catalog_names import symlinks
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files import written_files
from spark_agent.sql.files.outputs import Output
from spark_agent.sql.plan_schemas import schema_given
from spark_agent.sql.table_formats import change_rows, delta_log, row_operations
from spark_agent.sql.table_formats.change_rows import ChangeColumns
from spark_agent.sql.table_formats.delta_log import AddedFile, Commit, CommitMark
from spark_agent.sql.table_formats.table_work import TableWork, Transaction
from spark_agent.sql.types import Expression, OutputFiles, Plan

_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
_MOST_ROWS = "spark.sql.files.maxRecordsPerFile"
_FORMAT = "delta"
#: The files that a statement of Delta Lake reads.
_BATCH_INDEX = "TahoeBatchFileIndex"
#: The path of a file of changes, and of the data file at the same place. Where folders have random names, the
#: former is in one of these.
_CHANGES, _AS_DATA = re.compile(r"\A(?:_change_data/)?((?:.*/)?)cdc-"), r"\1part-"
Place = tuple[str, written_files.File]
"""The folder of a file below its table, or its partition, and which one of a task's it is."""
#: How the folder of a partition begins.
_FOLDER = re.compile(r"[^/=]+=")
#: What a folder is called if the value of its column is null.
_NULL = "__HIVE_DEFAULT_PARTITION__"


def _nothing(path: str) -> str | None:
    return None


@dataclass
class DeltaOutput(Output):
    """Data files of one transaction. Up to `version` of its table there is no commit of it."""

    mark: CommitMark = CommitMark()  # noqa: RUF009 - frozen
    version: int = -1
    #: Delta Lake makes null of empty texts behind the query, and sorts its rows once more.
    is_sorted_again: bool = False
    read: delta_log.ReadText = _nothing
    names_in_log: Sequence[str] = ()  # of the columns of partitions

    def _take_places(self, split: int, rows: int, report: Mapping[str, Any]) -> None:
        if self.is_sorted_again and report.get("spilled"):
            logger.debug("the order of the rows of a task that spilled is not known (%s)", self.path)
            return
        super()._take_places(split, rows, report)

    @property
    def is_committed_later(self) -> bool:
        return True

    @property
    def transaction(self) -> str:
        return self.mark.transaction

    def commit(self) -> Commit | None:
        """What has come of it; None as long as that is not known."""
        commit, self.version = delta_log.commit_of(self.path, self.mark, self.version, self.read)
        return commit

    def files_of(self, commit: Commit) -> list[dict[str, Any]]:
        """The files of each partition; empty where they are not known."""
        if self._is_divided and not any(self._pieces.values()):
            return []
        written, pieces = self._written(commit), self._pieces
        is_by_folders = self._is_by_folders(written)
        if not is_by_folders:
            pieces = {
                split: [piece._replace(folder=_values_in(piece.folder)) for piece in of_task]
                for split, of_task in pieces.items()
            }
        rows: Counter[Place] = Counter()
        for split, of_task in pieces.items():
            ends = [*(piece.first for piece in of_task[1:]), self._rows.get(split, 0)]
            for piece, end in zip(of_task, ends, strict=bool(of_task)):
                rows[piece.folder, piece.file] += end - piece.first
        files = _files_at(rows, self._by_place(written, is_by_folders=is_by_folders))
        if files is None:
            logger.debug("which rows of %s a transaction wrote is not known", self.path)
            return []
        return [
            _partition(split, of_task, files, self.path)
            for split, of_task in sorted(pieces.items())
            if of_task
        ]

    def _written(self, commit: Commit) -> Sequence[tuple[str, AddedFile]]:
        """The files of a commit that its rows may be in, with the paths that data files would have there."""
        return [(file.path, file) for file in commit.files]

    def _is_by_folders(self, written: Sequence[tuple[str, AddedFile]]) -> bool:
        """Are folders named by partitions? In a table that maps columns they have random names."""
        folders = (name for path, _ in written for name in path.split("/")[:-1])
        is_mapped = tuple(self.names_in_log) != tuple(self.dataset.get("partitions", ()))
        return not is_mapped and all(map(_FOLDER.match, folders))

    def _by_place(
        self, written: Sequence[tuple[str, AddedFile]], *, is_by_folders: bool
    ) -> dict[Place, list[AddedFile]]:
        by_place: dict[Place, list[AddedFile]] = defaultdict(list)
        for path, file in written:
            folder, _, name = path.rpartition("/")
            match = written_files.PART.match(name)
            if match is None:
                continue
            if not is_by_folders:
                folder = json.dumps([file.partition.get(name) for name in self.names_in_log])
            place = written_files.File(int(match[1]), written_files.NO_BUCKET, int(match[4]))
            by_place[folder, place].append(file)
        return by_place


@dataclass
class ChangeRows(DeltaOutput):
    """Files of a change data feed. They lie below a folder of their own, and have names of their own."""

    def _written(self, commit: Commit) -> Sequence[tuple[str, AddedFile]]:
        return [(_CHANGES.sub(_AS_DATA, file.path), file) for file in commit.changes]


@dataclass
class DeletedRows(DeltaOutput):
    """What a transaction deletes: rows without files. The commit says which version is without them."""

    def files_of(self, commit: Commit) -> list[dict[str, Any]]:
        return []


def of_deletion(
    catalyst: Catalyst, work: TableWork, query: Plan, read: delta_log.ReadText
) -> DeletedRows | None:
    """Where the rows of a query go that a statement of Delta Lake deletes; None as for `of_write`."""
    transaction = work.transaction
    if transaction is None:
        return None
    path, dataset = place_of(query, transaction)
    dataset["operation"] = "delete"
    output = DeletedRows(
        path, dataset, mark=CommitMark(transaction.id), version=transaction.version, read=read
    )
    output.reason = row_operations.DELETED
    return output


def of_write(
    catalyst: Catalyst, work: TableWork, query: Plan, read: delta_log.ReadText
) -> DeltaOutput | None:
    """Where the rows of a query go that Delta Lake writes; None where its transaction is not known."""
    removed = ""
    transaction = work.transaction
    if transaction is None:  # a rewrite of files, in a thread of its own
        transaction, removed = _of_rewrite(catalyst, query)
    if transaction is None:
        return None
    path, dataset = place_of(query, transaction)
    mark = CommitMark(transaction.id, removed)
    output = DeltaOutput(path, dataset, mark=mark, version=transaction.version, read=read)
    output.names_in_log = transaction.names_in_log
    output.schema = schema_given(catalyst, query)
    try:
        output.most_rows = max(int(catalyst.conf(query, _MOST_ROWS, "0")), 0)
        changes = ChangeColumns.of(catalyst, query)
        if changes is not None:
            output.left_out = lambda: changes.is_change
        output.output_files, output.order = _files(catalyst, query, transaction, changes)
        output.is_sorted_again = "string" in catalyst.types(output.order)
    except Exception:  # noqa: BLE001 - then its rows are followed all the same, but not to files
        logger.debug("which rows go into which file of %s is not known", path, exc_info=True)
        output.output_files, output.order = None, []
    return output


def of_changes(output: DeltaOutput) -> ChangeRows:
    """Where the changes go that are among the rows of a query."""
    dataset = {**output.dataset, "operation": change_rows.OPERATION}
    changes = ChangeRows(output.path, dataset, mark=output.mark, version=output.version, read=output.read)
    changes.output_files, changes.most_rows = output.output_files, output.most_rows
    changes.names_in_log = output.names_in_log
    changes.is_sorted_again = output.is_sorted_again
    return changes


def of_truncate(catalyst: Catalyst, command: Plan) -> Transaction:
    """What is known of the transaction of a TRUNCATE before it begins. Raises what py4j raises."""
    table = command.child().table()
    log, names = table.deltaLog(), table.catalogTable()
    snapshot = log.unsafeVolatileSnapshot()
    return Transaction(
        "",
        str(log.dataPath().toString()),
        int(snapshot.version()),
        tuple(map(str, catalyst.items(snapshot.metadata().partitionColumns()))),
        str(names.get().identifier().unquotedString()) if names.isDefined() else "",
    )


def place_of(query: Plan, transaction: Transaction) -> tuple[str, dict[str, Any]]:
    """The folder of a transaction's table, and what a node says of it."""
    path = partitions.local_path(transaction.table).rstrip("/")
    dataset: dict[str, Any] = partitions.dataset(path, _FORMAT)
    if transaction.catalog_name.count(".") == 1:
        dataset["symlinks"] = symlinks(query, transaction.catalog_name)
    elif transaction.catalog_name.count(".") > 1:
        dataset["symlinks"] = symlinks(query, transaction.catalog_name.partition(".")[2])
    if transaction.partition_columns:
        dataset["partitions"] = list(transaction.partition_columns)
    return path, dataset


def _of_rewrite(catalyst: Catalyst, query: Plan) -> tuple[Transaction | None, str]:
    """The table whose files a query reads to write them anew, and one of the files."""
    for leaf in catalyst.items(query.collectLeaves()):
        if catalyst.kind(leaf) != "LogicalRelation" or catalyst.kind(leaf.relation()) != "HadoopFsRelation":
            continue
        location = leaf.relation().location()
        if catalyst.kind(location) == _BATCH_INDEX and not location.addFiles().isEmpty():
            metadata = location.metadata()
            columns, names_in_log = (
                tuple(map(str, catalyst.items(names)))
                for names in (metadata.partitionColumns(), metadata.physicalPartitionColumns())
            )
            table, version = str(location.path().toString()), int(location.version())
            transaction = Transaction("", table, version, columns, names_in_log=names_in_log)
            return transaction, str(location.addFiles().head().path())
    return None, ""


def _files(
    catalyst: Catalyst, query: Plan, transaction: Transaction, changes: ChangeColumns | None
) -> tuple[OutputFiles | None, list[Expression]]:
    """Into which files rows go, and the order of the rows of a task. Changes and others go apart."""
    writers = int(catalyst.conf(query, _WRITERS, "0"))
    first = [] if changes is None else [changes.is_change]
    if not transaction.partition_columns:
        return OutputFiles(), [] if writers else first
    by_name = {str(column.name()).casefold(): column for column in catalyst.items(query.output())}
    columns = [by_name[name.casefold()] for name in transaction.partition_columns]
    zone = str(query.conf().sessionLocalTimeZone())
    values = [catalyst.text(column, zone) for column in columns]
    key = catalyst.key([*columns, *values])
    files = OutputFiles(key, None, list(transaction.partition_columns), values, writers)
    return files, [] if writers else [*first, *columns]


def _files_at(
    rows: Mapping[Place, int], files: Mapping[Place, Sequence[AddedFile]]
) -> dict[Place, AddedFile] | None:
    """The files of a commit that are at these places and have so many rows, as far as the log counts them.

    None where one is missing, or where more than one fits: a transaction may write by several queries.
    """
    chosen = {}
    for place, count in rows.items():
        fitting = [file for file in files.get(place, ()) if file.rows in (None, count)]
        if len(fitting) != 1:
            return None
        chosen[place] = fitting[0]
    return chosen


def _values_in(folder: str) -> str:
    """The values of a partition as JSON, by the folder that a table without mapped columns has for it."""
    values = [unquote(name.partition("=")[2]) for name in folder.split("/")] if folder else []
    return json.dumps([None if value == _NULL else value for value in values])


def _partition(
    split: int,
    pieces: list[written_files.Piece],
    files: Mapping[Place, AddedFile],
    table: str,
) -> dict[str, Any]:
    """A task's rows in the terms of the contract."""
    parts = []
    for piece in pieces:
        file = files[piece.folder, piece.file]
        state = {"size": file.size, "modified": file.modified}
        part = {
            "path": delta_log.data_path(table, file.path),
            **state,
            "first": piece.first,
            "row": piece.row,
        }
        if file.first_row_id is not None:
            part["row_id_first"] = file.first_row_id + piece.row
        parts.append(part)
    return {"split": split, "parts": parts}
