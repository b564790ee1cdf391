"""Where queries write, and which rows of which file their records have become.

An `Output` begins when its query is planned, takes what the query's tasks report of their rows, and looks for
their files once the query has ended. Says nothing of what the driver cannot list, and nothing of a file that
may be another query's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from spark_agent.delivery.log import logger
from spark_agent.driver import partitions
from spark_agent.sql.catalog_names import symlinks_of
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files import catalog_partitions, output_files, written_files
from spark_agent.sql.files.output_files import UnknownFilesError
from spark_agent.sql.files.text_options import text_options
from spark_agent.sql.plan_schemas import schema_written
from spark_agent.sql.schemas import Schema
from spark_agent.sql.types import Expression, OutputFiles, Plan

#: Part of the name of Hive's class that writes -> what the dataset of the node says.
_HIVE_FORMATS = {"text": "text", "orc": "orc", "parquet": "parquet", "avro": "avro"}


#: Between looks for a commit.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 60.0


def _nowhere(folder: str) -> str | None:
    return None


@dataclass
class Output:
    """Files that a command writes below a path. `output_files` say which row of a task goes into which."""

    path: str
    dataset: dict[str, Any]
    output_files: OutputFiles | None = None  # None: not known
    most_rows: int = 0  # of a file; 0: any number
    below: str = ""  # the folder below the path that all of it goes to
    #: Where the files of a partition are that is not in its folder below the path.
    location: Callable[[str], str | None] = _nowhere
    jobs_before: frozenset[str] | None = frozenset()  # with files there when it began; None: too many to know
    jobs_after: frozenset[str] | None = None  # the same when another query began to write there
    schema: Schema | None = None
    order: list[Expression] = field(default_factory=list)  # rows of a task are put into it
    label: str = ""  # what people call it, if that is not its path
    #: Gives a condition: rows that meet it go into no file. Raises UncoveredError.
    left_out: Callable[[], Expression] | None = None
    reason: str = ""  # why its rows are in no file, if they are in none
    _pieces: dict[int, list[written_files.Piece]] = field(default_factory=dict)
    _rows: dict[int, int] = field(default_factory=dict)  # of each task
    _next_look: float = 0.0  # for its commit, on the clock of `monotonic`
    _pause_s: float = 0.0

    def is_due(self) -> bool:
        """Is it time to look for its commit again? Counts that as a look."""
        now = monotonic()
        if now < self._next_look:
            return False
        self._pause_s = min(2 * self._pause_s + _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._next_look = now + self._pause_s
        return True

    def take(self, split: int, rows: int, report: Mapping[str, Any]) -> None:
        """A task that counts wrote so many rows. `report` is what its tap says beside that."""
        self._rows[split] = rows
        if report.get("shuffled"):
            logger.debug("rows go to other tasks before they are written (%s)", self.path)
        else:
            self._take_places(split, rows, report)

    def _take_places(self, split: int, rows: int, report: Mapping[str, Any]) -> None:
        runs = report.get("places")
        if self.output_files is None or report.get("lines") is False or (self._is_divided and runs is None):
            return
        pieces = written_files.pieces(split, rows, runs, self.most_rows)
        if pieces is not None:
            self._pieces[split] = pieces

    def has_unknown_files(self, file_partitions: Iterable[Mapping[str, Any]]) -> bool:
        """Are there rows of which these partitions do not say in which file they are?"""
        tasks = {partition["split"] for partition in file_partitions}
        return not self.reason and any(rows and task not in tasks for task, rows in self._rows.items())

    @property
    def node_fields(self) -> dict[str, Any]:
        """What a node says that stands for rows which go there."""
        return {"description": self.label or self.path, "dataset": self.dataset}

    @property
    def is_committed_later(self) -> bool:
        """Does the log of a table say which files it has, once a transaction is committed?"""
        return False

    @property
    def transaction(self) -> str:
        """The transaction of Delta Lake that its files are written in, by its id; empty of others."""
        return ""

    @property
    def _is_divided(self) -> bool:
        """Does a task write into several files by what is in its rows?"""
        return self.output_files is not None and self.output_files.key is not None

    def files(self, other_jobs: Iterable[str] = ()) -> tuple[str | None, list[dict[str, Any]]]:
        """The query's write job, and the files of each partition; (None, []) where they are not known."""
        pieces = [piece for of_task in self._pieces.values() for piece in of_task]
        if not self._pieces or (self._is_divided and not pieces):
            return None, []
        folders, files = {}, {}
        for folder, written in (written_files.by_folder(pieces) or {"": set()}).items():
            folders[folder], files[folder] = self._listed(folder, written, other_jobs)
        job = written_files.job_of(pieces, files)
        if job is None:
            return None, []
        paths = {
            (folder, file): f"{folders[folder]}/{name}"
            for folder, jobs in files.items()
            for file, name in jobs[job].items()
        }
        file_partitions = []
        for split, of_task in self._pieces.items():
            # The first task writes a file of no rows.
            empty = paths.get(("", written_files.File(split, written_files.NO_BUCKET, 0)))
            if of_task:
                file_partitions.append(written_files.partition(split, of_task, paths))
            elif empty is not None:
                file_partitions.append(partitions.part_file(split, empty))
        return job, sorted(file_partitions, key=lambda partition: int(partition["split"]))

    def commit(self) -> Any:
        """Of what `is_committed_later`: the transaction's commit, None as long as that is not known."""
        return None

    def files_of(self, commit: Any) -> list[dict[str, Any]]:
        """The files of each partition by a commit; empty where they are not known."""
        return []

    def _listed(
        self, folder: str, written: set[written_files.File], other_jobs: Iterable[str]
    ) -> tuple[str, written_files.Files]:
        """(path, files) of a folder of values; it may be elsewhere, by the catalog, if it lacks the files."""
        below = "/".join(filter(None, (self.below, folder)))
        path = f"{self.path}/{below}".rstrip("/")
        files = self._own(written_files.files_in(path), other_jobs)
        if any(written <= names.keys() for names in files.values()):
            return path, files
        elsewhere = self.location(below) if below else None
        if elsewhere is None:
            return path, files
        path = partitions.local_path(elsewhere)
        return path, self._own(written_files.files_in(path), other_jobs)

    def _own(self, files: written_files.Files, other_jobs: Iterable[str]) -> written_files.Files:
        """Without those of jobs that are known to be others."""
        before, after = self.jobs_before or (), self.jobs_after
        return {
            job: names
            for job, names in files.items()
            if job not in other_jobs and job not in before and (after is None or job in after)
        }


class Written(NamedTuple):
    """What an output has become: the files of its partitions, and its commit, if a transaction wrote them."""

    node: int
    output: Output
    partitions: list[dict[str, Any]]
    commit: Any = None


class Outputs:
    """The outputs of queries that have not ended, by their nodes."""

    def __init__(self) -> None:
        self._open: dict[int, Output] = {}
        self._awaited: dict[int, Output] = {}  # whose transactions are not seen in the logs of their tables
        self._jobs: set[str] = set()  # that are known to be a query's

    def begin(self, node: int, output: Output) -> None:
        """The query of this node will write."""
        for other in list(self._open.values()):
            if other.path == output.path and other.jobs_after is None:
                # It may have ended, and this one may remove its files before they were looked for.
                other.jobs_after = output.jobs_before or frozenset()
        self._open[node] = output

    def take(self, node: int, split: int, rows: int, report: Mapping[str, Any]) -> None:
        """What one task says of its rows; nothing for a node without files."""
        output = self._open.get(node)
        if output is not None:
            output.take(split, rows, report)

    def end(self, node: int, *, is_failed: bool) -> Written | None:
        """What the output of a query that has ended has become; None of one that failed, or is awaited."""
        output = self._open.pop(node, None)
        if output is None or is_failed:
            return None
        if output.is_committed_later:
            self._awaited[node] = output
            return None
        job, files = output.files(self._jobs)
        if job is not None:
            self._jobs.add(job)
        return Written(node, output, files)

    @property
    def is_awaiting(self) -> bool:
        """Are there outputs whose transactions were not committed yet?"""
        return bool(self._awaited)

    def committed(self, *, is_eager: bool) -> Iterator[Written]:
        """Those that were committed meanwhile.

        Without `is_eager`, the longer one is awaited, the more seldom it is looked for.
        """
        for node, output in list(self._awaited.items()):
            if not (is_eager or output.is_due()):
                continue
            try:
                commit = output.commit()
                files = [] if commit is None else output.files_of(commit)
            except Exception:  # noqa: BLE001 - a log that cannot be read now; the next look may
                logger.debug("the log of %s cannot be read", output.path, exc_info=True)
                continue
            if commit is not None:
                del self._awaited[node]
                yield Written(node, output, files, commit)

    def uncommitted(self) -> list[int]:
        """The nodes of those that are still awaited."""
        return list(self._awaited)


def of_command(catalyst: Catalyst, command: Plan, symlinks: Sequence[dict[str, str]] = ()) -> Output | None:
    """Where a command writes; None where that is no folder of files.

    `symlinks` are the names of the table that the rows are for, where the command does not say it.
    """
    kind = catalyst.kind(command)
    if kind == "InsertIntoHadoopFsRelationCommand":
        output = _of_data_source(catalyst, command, symlinks)
    elif kind == "InsertIntoHiveTable":
        output = _of_hive_table(catalyst, command)
    elif kind == "InsertIntoHiveDirCommand":
        output = _at(_path(command.storage().locationUri().get()), _hive_format(command.storage()))
    else:
        return None
    is_deep = bool(output.below)
    try:
        if kind == "InsertIntoHiveDirCommand":
            columns, most = command.outputColumns(), None
            output.output_files = output_files.of_one_folder(catalyst, columns, output.dataset["format"])
        else:
            options = catalyst.options(command.options())
            output.output_files = output_files.of_command(
                catalyst, command, options, output.dataset["format"]
            )
            most = options.get("maxrecordsperfile")
            is_deep |= not command.partitionColumns().isEmpty()
        output.most_rows = max(int(most or command.conf().maxRecordsPerFile()), 0)
    except UnknownFilesError as error:
        logger.debug("files of %s: %s", output.path, error)
    except Exception:  # noqa: BLE001 - then its rows are followed all the same, but not to files
        logger.debug("which rows go into which file of %s is not known", output.path, exc_info=True)
        output.output_files = None
    output.schema = schema_written(catalyst, command)
    output.jobs_before = written_files.jobs_below(output.path, is_deep=is_deep)
    return output


def _at(path: str, format: str) -> Output:
    return Output(path, partitions.dataset(path, format))


def _path(uri: Any) -> str:
    """Of a java.net.URI."""
    path = str(uri.getPath()) if uri.getScheme() in (None, "file") else str(uri.toString())
    return path.rstrip("/")


def _of_data_source(catalyst: Catalyst, command: Plan, symlinks: Sequence[dict[str, str]]) -> Output:
    format, options = str(command.fileFormat().toString()).lower(), catalyst.options(command.options())
    if format == "csv" and options.get("header", "").lower() == "true":
        format = "csv+header"
    output = _at(partitions.local_path(str(command.outputPath().toString())), format)
    output.dataset |= text_options(format, options)
    if str(command.mode().toString()) == "Append":
        output.dataset["appends"] = True
    table = command.catalogTable()
    if table.isDefined() and table.get().tracksPartitionsInCatalog():
        output.location = catalog_partitions.locations_of(catalyst, table.get())
    links = symlinks_of(command, table.get()) if table.isDefined() else symlinks
    _describe(output, links, catalyst.names(command.partitionColumns()))
    return output


def _describe(output: Output, symlinks: Sequence[dict[str, str]], partition_columns: Sequence[str]) -> None:
    """What the dataset of an output has beside its place."""
    if symlinks:
        output.dataset["symlinks"] = list(symlinks)
    if partition_columns:
        output.dataset["partitions"] = list(partition_columns)


def _of_hive_table(catalyst: Catalyst, command: Plan) -> Output:
    table = command.table()
    output = _at(_path(table.location()), _hive_format(table.storage()))
    output.below = catalog_partitions.folder_of(catalyst, table, command.staticPartitions())
    names = [str(name) for name in catalyst.items(table.partitionColumnNames())]
    if names:
        output.location = catalog_partitions.locations_of(catalyst, table)
    _describe(output, symlinks_of(command, table), names)
    return output


def _hive_format(storage: Plan) -> str:
    """By the class that writes."""
    written_by = storage.outputFormat()
    name = str(written_by.get()).lower() if written_by.isDefined() else ""
    return next((format for part, format in _HIVE_FORMATS.items() if part in name), "hadoop")
