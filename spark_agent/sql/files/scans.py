"""What the scans of plans read, and how rows of files are known.

A Parquet file knows the index of each row, so a filter may be pushed into its scan: ids are made of what is
left. A replay that drops rows does not push what might fail on one of them. Elsewhere a row is known by its
order in the scan, so nothing may be left out before rows are numbered, but whole partitions of the data. Of
ORC the stripes before a split say how many rows there are, of Avro the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from spark_agent.contract import dataset_names
from spark_agent.driver import partitions
from spark_agent.sql import tables
from spark_agent.sql.catalog_names import name_in_catalog, symlinks, symlinks_in
from spark_agent.sql.catalyst import Catalyst, Operator
from spark_agent.sql.database_keys import DatabaseKeys, RecordNames
from spark_agent.sql.files.text_options import text_options
from spark_agent.sql.plan_schemas import schema_read
from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.rewrite.plan_walk import Answered
from spark_agent.sql.schemas import Schema
from spark_agent.sql.types import Expression, Plan

#: Class of a file format -> what the dataset of the node says.
_FORMATS = {
    "ParquetFileFormat": "parquet",
    "TextFileFormat": "text",
    "CSVFileFormat": "csv",
    "JsonFileFormat": "json",
    "OrcFileFormat": "orc",
    "AvroFileFormat": "avro",
    "DeltaParquetFileFormat": "delta",
}
#: Files of these formats know the index of each row, or how many rows are before a split.
_INDEXED, _STRIPED = frozenset(("parquet", "delta")), frozenset(("orc", "avro"))
#: What lists the files of a change data feed -> which of its rows are in them.
_OF_FEED = {
    "TahoeChangeFileIndex": "rows of change files",
    "CdcAddFileIndex": "rows that were added",
    "TahoeRemoveFileIndex": "rows that were removed",
}
#: A scan of a table of a source of version 2.
OF_TABLE = "DataSourceV2ScanRelation"
#: Options that do not change what a column of a row is, whatever they say.
_NEUTRAL_OPTIONS = frozenset(
    (
        *("path", "paths", "header", "inferschema", "samplingratio", "mergeschema", "basepath"),
        *("recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter"),
        *("serialization.format", "sep", "delimiter", "mode", "ignorecorruptfiles"),
    )
)
#: Delta Lake's: may it answer queries of its log.
_ANSWERING = "spark.databricks.delta.optimizeMetadataQuery.enabled"
_ANSWERED = "computed of what the table says of its files: no row of it was read"
_MAY_BE_ANSWERED = (
    "a list of the driver, rows in the query's text, or what a Delta table says of its files: it is not "
    "known which"
)
#: With it Spark skips the rest of a file that it cannot read.
_SKIPPING = "ignoreCorruptFiles"
#: Of these Spark leaves lines out while it reads them.
_OF_LINES = frozenset(("csv", "json"))


class PersistedNodes(Protocol):
    """Knows the nodes of cached and checkpointed DataFrames."""

    def of(self, leaf: Plan, kind: str) -> int | None: ...


class RddNodes(Protocol):
    """Knows the nodes of RDDs that DataFrames were made of."""

    def rdd_node(self, leaf: Plan, kind: str) -> int | None: ...


class FileScans:
    """`Scans` of a session."""

    def __init__(
        self,
        catalyst: Catalyst,
        persisted_nodes: PersistedNodes,
        rdd_nodes: RddNodes,
        database_keys: DatabaseKeys,
    ) -> None:
        self._catalyst = catalyst
        self._database_keys = database_keys
        self._persisted_nodes = persisted_nodes
        self._rdd_nodes = rdd_nodes

    def describe(
        self, scan: Operator, pushed: Sequence[Expression] = ()
    ) -> tuple[str, dict[str, Any] | None]:
        """Text and dataset of a scan; `pushed` are conditions that `may_be_pushed` into it."""
        files = scan.files
        if files is None:
            return "", None
        format, roots, more = format_of(files), files["roots"], files["count"] - len(files["roots"])
        if not roots:
            return format, None
        described = ", ".join(map(partitions.local_path, roots)) + (f" and {more} more" if more else "")
        if of_feed := _OF_FEED.get(files.get("index", "")):
            described += f", change data feed: {of_feed}"
        options = files["options"]
        if format == "csv" and options.get("header", "false").lower() == "true":
            format = "csv+header"
        unlike = unlike_lines(format, options)
        if _is_strict(files) and not all(self._is_of_folders(files, condition) for condition in pushed):
            unlike = "but for lines that a filter leaves out"
        dataset: dict[str, Any] = partitions.dataset(roots[0], f"{format} {unlike}".rstrip())
        dataset |= text_options(format, options) | _paths(scan, options)
        if files["folders"]:
            dataset["partitions"] = files["folders"]
        if files["version"] is not None and not of_feed:
            dataset["version"] = files["version"]
        return described, dataset

    def describe_table(self, plan: Plan) -> tuple[str, dict[str, Any]] | None:
        """The same of a table of Iceberg, whose rows have positions in its data files."""
        table = self._catalyst.iceberg.table(plan)
        if table is None:
            return None
        dataset: dict[str, Any] = partitions.dataset(table["location"], format_of_table(table["format"]))
        if table["version"] is not None:
            dataset["version"] = table["version"]
        name = name_in_catalog(plan.relation(), table["table"])
        if links := symlinks_in(plan, name):
            dataset["symlinks"] = links
        return name, dataset

    def answered(self, plan: Plan, leaf: Operator) -> Answered | None:
        """The table of whose metadata the rows of a LocalRelation were computed; None of other rows.

        Delta Lake answers a `count(*)` so, while Spark optimises the query.
        """
        if leaf.kind != "LocalRelation":
            return None
        table = self._catalyst.table_behind(plan)
        if table is None:
            may_be = "delta" in self._catalyst.conf(plan, "spark.sql.extensions", "").lower()
            is_off = self._catalyst.conf(plan, _ANSWERING, "true").lower() == "false"
            return Answered("", None, _MAY_BE_ANSWERED) if may_be and not is_off else None
        if self._catalyst.kind(table) == leaf.kind:
            return None
        endpoint, name = tables.read_by(table), self._catalyst.look(table).table
        dataset: dict[str, Any] | None = endpoint.dataset
        if dataset is not None and name is not None:
            dataset = {**dataset, "symlinks": symlinks(table, name)}
        return Answered(endpoint.description, dataset, _ANSWERED)

    def about(self, plan: Plan, leaf: Operator, dataset: dict[str, Any] | None) -> dict[str, Any]:
        """More of the node of a source: its columns, and its dataset with its names in a catalog."""
        if dataset is not None and leaf.table is not None:
            dataset = {**dataset, "symlinks": symlinks(plan, leaf.table)}
        return {"dataset": dataset, "schema": self.schema(plan, leaf)}

    def expressions(self, plan: Plan, leaf: Operator) -> dict[str, Any] | None:
        """Which columns the rows of a scan have, if these can be read from its files as Spark reads them.

        Also whether Spark may have skipped rows that it could not read.
        """
        if leaf.files is None:
            return None
        is_skipping = self._is_skipping(plan, leaf.files["options"])
        skipping = {"options": {_SKIPPING: "true"}} if is_skipping else {}
        columns = self._columns(leaf)
        if columns is None:
            return skipping or None
        options = {**columns.get("options", {}), **skipping.get("options", {})}
        return columns | ({"options": options} if options else {})

    def _is_skipping(self, plan: Plan, options: Mapping[str, str]) -> bool:
        conf = self._catalyst.conf(plan, f"spark.sql.files.{_SKIPPING}", "false")
        return str(options.get(_SKIPPING.lower(), conf)).lower() == "true"

    @staticmethod
    def _columns(leaf: Operator) -> dict[str, Any] | None:
        if leaf.expressions is None or leaf.files is None:
            return None
        format, options = format_of(leaf.files), leaf.files["options"]
        mode = options.get("mode", "permissive").lower()
        if not _NEUTRAL_OPTIONS.issuperset(options) or mode not in ("permissive", "failfast"):
            return None
        separator = options.get("sep", options.get("delimiter", ","))
        if "sep" in options and "delimiter" in options:
            return None
        return leaf.expressions | ({"options": {"sep": separator}} if format == "csv" else {})

    def schema(self, plan: Plan, leaf: Operator) -> Schema:
        """The columns of what a leaf reads."""
        return schema_read(self._catalyst, plan, leaf.kind)

    def with_row_index(self, plan: Plan, scan: Operator) -> tuple[Plan, Expression] | None:
        """The scan with the index of each row in its file; None where the format does not know it."""
        if scan.kind == OF_TABLE:
            return self._catalyst.iceberg.with_positions(plan)
        if scan.files is None or format_of(scan.files) not in _INDEXED:
            return None
        indexed = self._catalyst.with_row_index(plan)
        if indexed is None:
            return None
        indexed_plan, row_index = indexed
        if row_index is None:
            raise UncoveredError("a scan of which other parts of _metadata are asked for")
        return indexed_plan, row_index

    def is_striped(self, scan: Operator) -> bool:
        """Does the file know how many of its rows are before a split, but not the index of each?"""
        return scan.files is not None and format_of(scan.files) in _STRIPED

    def is_interleaved(self, scan: Operator) -> bool:
        """May a task read this scan and another one alternately? Then it is not known whose file it is in."""
        return scan.files is not None and bool(scan.files["is_bucketed"])

    def are_of_same_files(self, plan: Plan, other: Plan) -> bool:
        """Do two plans that Spark takes for equal read the same files? It looks at their folders only."""
        return self._catalyst.are_of_same_files(plan, other)

    def may_be_pushed(self, scan: Operator, condition: Expression) -> bool:
        """May `condition` be evaluated before rows are numbered?

        What is no file has rows only as they come. Of lines that must not be malformed Spark reads no further
        than it needs to leave one out, and reading on might end in an error.
        """
        if scan.files is None or format_of(scan.files) in _INDEXED:
            return True
        if self._is_of_folders(scan.files, condition):
            return True
        return _is_strict(scan.files) and self._catalyst.is_pushed_into_lines(condition)

    def is_of_dropped_rows(self, scan: Operator, condition: Expression) -> bool:
        """Might `condition`, if it is pushed, end in an error on a row that a replay does not mean?

        Then the replay evaluates it behind those that it drops. What chooses folders sees no rows, and what
        is not deterministic depends on all rows before.
        """
        if scan.files is None or not condition.deterministic() or self._is_of_folders(scan.files, condition):
            return False
        return self._catalyst.may_fail(condition)

    def is_evaluated_first(self, scan: Operator, condition: Expression) -> bool:
        """Would Spark evaluate `condition` before others, which might end in an error without that?"""
        if scan.files is None or format_of(scan.files) not in _OF_LINES:
            return False
        return self._catalyst.is_pushed_into_lines(condition)

    def _is_of_folders(self, files: Mapping[str, Any], condition: Expression) -> bool:
        names = self._catalyst.names_read(condition)
        return bool(condition.deterministic()) and set(files["folders"]).issuperset(names)

    def topic_place(self, plan: Plan, leaf: Operator) -> list[Expression]:
        """Of a record of Kafka: its offset, topic and partition, and the servers; else none."""
        if leaf.files is not None:
            return []
        servers = tables.kafka_servers(plan, leaf.kind)
        if servers is None:
            return []
        columns = dict(
            zip(self._catalyst.names(plan.output()), self._catalyst.items(plan.output()), strict=True)
        )
        if not columns.keys() >= {"offset", "topic", "partition"}:
            return []
        place = [columns[name] for name in ("offset", "topic", "partition")]
        return [*place, self._catalyst.text_literal(dataset_names.kafka_namespace(servers))]

    def record_names(self, plan: Plan, leaf: Operator, query: Plan) -> RecordNames | None:
        """How the records of a scan in a query are named, if it reads a database."""
        is_of_files = leaf.files is not None
        return None if is_of_files else self._database_keys.names_of(plan, leaf.kind, query)

    def published_node(self, plan: Plan, leaf: Operator) -> int | None:
        """The published node whose records a leaf reads, of a persisted plan or of an RDD."""
        persisted = self.persisted_node(plan, leaf)
        return self.rdd_node(plan, leaf) if persisted is None else persisted

    def persisted_node(self, plan: Plan, leaf: Operator) -> int | None:
        return self._persisted_nodes.of(plan, leaf.kind)

    def rdd_node(self, plan: Plan, leaf: Operator) -> int | None:
        return self._rdd_nodes.rdd_node(plan, leaf.kind)


def _paths(scan: Operator, options: Mapping[str, str]) -> dict[str, list[str]]:
    """What the dataset says of the paths that the program named: a pattern has become files here.

    Of several paths that is not known, nor of a table, whose partitions may have been chosen.
    """
    named = options.get("path")
    if named is None or scan.table is not None or scan.files is None:
        return {"paths": []}
    path = partitions.absolute(named)
    is_root = scan.files["count"] == 1 and partitions.local_path(scan.files["roots"][0]).rstrip("/") == path
    return {} if is_root else {"paths": [path]}


def _is_strict(files: Mapping[str, Any]) -> bool:
    """Is a malformed line an error?"""
    return format_of(files) in _OF_LINES and files["options"].get("mode", "").lower() == "failfast"


def unlike_lines(format: str, options: Mapping[str, str]) -> str:
    """Why the records of a text format are not its lines; empty where they are.

    Of XML, why they are not its elements in their order.
    """
    if format == "xml":
        if options.get("mode", "").lower() == "dropmalformed":
            return "without malformed rows"
        return "of lines" if options.get("multiline", "true").lower() == "false" else ""
    if format not in ("text", "csv", "csv+header", "json"):
        return ""
    if options.get("wholetext" if format == "text" else "multiline", "false").lower() == "true":
        return "of several lines"
    if "linesep" in options:
        return "whose lines end in another way"
    if format != "text" and options.get("mode", "").lower() == "dropmalformed":
        return "without malformed lines"
    if format.startswith("csv") and options.get("comment", "").strip("\0"):
        return "with comments"
    encoding = options.get("encoding", options.get("charset", "")).lower()
    return "of wide characters" if encoding.startswith(("utf-16", "utf-32", "utf16", "utf32")) else ""


def format_of_table(format: str) -> str:
    """What the dataset of a table of Iceberg says, by the format of its data files."""
    return "iceberg" if format == "parquet" else f"iceberg+{format}"


def format_of(files: Mapping[str, Any]) -> str:
    name = str(files["format"])
    return _FORMATS.get(name, name.removesuffix("FileFormat").lower())
