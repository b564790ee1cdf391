"""What a plan reads or writes that is no folder of files: tables of databases and of catalogs, topics.

Asks the JVM over py4j alone, so it does without the agent's jar. Promises that no password leaves the driver:
of a database's address what is behind its name is left out, and of a source's options only those are read
that say where it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_agent.contract import dataset_names
from spark_agent.delivery.database_names import address, table_name, unquoted, without_secrets
from spark_agent.delivery.log import logger
from spark_agent.driver import partitions
from spark_agent.sql.schemas import Schema
from spark_agent.sql.types import Plan

_QUERY = "a query"
#: A name of a table, not a query.
_NAME = re.compile(r"[\w.\"`\[\]$ -]{1,200}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where rows come from or go to. `dataset` is None where only people could make something of its name."""

    name: str
    description: str = ""
    dataset: dict[str, str] | None = None
    schema: Schema | None = None


def of_database(url: str, table: str) -> Endpoint:
    """A table of a database, or a query that the database computes, whose text is not repeated."""
    place, table = address(url), table.strip()
    if not is_name(table):
        return Endpoint("jdbc", f"{place} {_QUERY}", {"namespace": place, "name": _QUERY, "format": "jdbc"})
    namespace, name = table_name(place, url, table)
    return Endpoint(
        "jdbc", f"{place} {unquoted(table)}", {"namespace": namespace, "name": name, "format": "jdbc"}
    )


def is_name(table: str) -> bool:
    """Is it a name of a table, and not a query?"""
    return _NAME.fullmatch(table.strip()) is not None


def jdbc_options(leaf: Plan, kind: str) -> Any:
    """The options of Spark's for the table of a database that a scan reads; None where it reads none.

    Not of what a source of version 2 has pushed down into the database that makes other rows.
    """
    if kind == "LogicalRelation":
        relation = leaf.relation()
        return relation.jdbcOptions() if class_name(relation) == "JDBCRelation" else None
    if kind == "DataSourceV2ScanRelation":
        table = leaf.relation().table()
        return table.jdbcOptions() if class_name(table) == "JDBCTable" else None
    return None


def jdbc_options_written(jvm: Any, command: Plan, *, is_save: bool) -> Any:
    """The same of a table that a command writes into; `is_save`: it is a SaveIntoDataSourceCommand."""
    if not is_save:
        table = command.table()
        table = table.table() if class_name(table) == "DataSourceV2Relation" else table
        return table.jdbcOptions() if class_name(table) == "JDBCTable" else None
    if class_name(command.dataSource()) != "JdbcRelationProvider":
        return None
    options = _texts(command.options())
    of_jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
    return of_jdbc.JDBCOptions(options["url"], options["dbtable"], command.options())


def kafka_servers(leaf: Plan, kind: str) -> str | None:
    """The brokers that a scan of Kafka reads from; None of another one, or where they are not known."""
    options = _safely(lambda plan: _kafka_options(plan, kind), leaf) or {}
    return options.get("kafka.bootstrap.servers")


def _kafka_options(leaf: Plan, kind: str) -> dict[str, str] | None:
    if kind == "LogicalRelation":
        relation = leaf.relation()
        if class_name(relation) != "KafkaRelation":
            return None
        # Kafka's source keeps them to itself.
        field = relation.getClass().getDeclaredField("sourceOptions")
        field.setAccessible(True)
        return _texts(field.get(relation))
    if kind == "DataSourceV2ScanRelation" and class_name(leaf.relation().table()) == "KafkaTable":
        return _texts(leaf.relation().options())
    return None


def is_of_files(dataset: dict[str, str] | None) -> bool:
    """Is it a folder of files, whose rows people can be shown?"""
    return dataset is not None and dataset_names.is_of_files(dataset["format"])


def has_numbered_rows(dataset: dict[str, str] | None) -> bool:
    """Has each of its records a number in a file, or an offset in a partition of a topic?"""
    return is_of_files(dataset) or (dataset is not None and dataset["format"] == "kafka")


def read_by(leaf: Plan) -> Endpoint:
    """What a leaf of a plan reads. Never raises."""
    return _safely(_read_by, leaf) or Endpoint(_safely(lambda node: str(node.nodeName()), leaf) or "query")


def written_by(command: Plan) -> Endpoint | None:
    """Where a command writes; None where it is none that writes, or files that `outputs` know of."""
    endpoint: Endpoint | None = _safely(_written_by, command)
    return endpoint


def statement_of(command: Plan) -> str | None:
    """`MERGE`, `UPDATE` or `DELETE`, of a command that is one of these; None of others."""
    kinds = ("ReplaceData", "WriteDelta")
    named = class_name(command) in kinds and _safely(lambda one: str(one.operation().command()), command)
    return str(named) if named else None


def _safely(ask: Callable[[Plan], Any], plan: Plan) -> Any:
    """A name is never worth a query: where a plan is not as it is expected to be, there is none."""
    try:
        return ask(plan)
    except Exception:  # noqa: BLE001 - a source of somebody else's
        logger.debug("what a plan reads or writes has no name", exc_info=True)
        return None


def class_name(of: Any) -> str:
    """The name of the class of an object of the JVM, without its package."""
    return str(of.getClass().getSimpleName())


def _read_by(leaf: Plan) -> Endpoint | None:
    kind = class_name(leaf)
    if kafka := _kafka_options(leaf, kind):
        return of_options("kafka", kafka)
    if kind == "LogicalRelation":
        return _of_relation(leaf.relation())
    if kind in ("DataSourceV2Relation", "DataSourceV2ScanRelation"):
        relation = leaf if kind == "DataSourceV2Relation" else leaf.relation()
        return _of_table(relation.table(), relation)
    if kind == "StreamingRelation":
        source = leaf.dataSource()
        return of_options(str(source.className()), _texts(source.options()))
    if kind == "StreamingRelationV2":
        return of_options(str(leaf.sourceName()), _texts(leaf.extraOptions()))
    if kind == "HiveTableRelation":
        return Endpoint("table", str(leaf.tableMeta().identifier().unquotedString()))
    return None


def _of_relation(relation: Any) -> Endpoint | None:
    kind = class_name(relation)
    if kind == "JDBCRelation":
        options = relation.jdbcOptions()
        return of_database(str(options.url()), str(options.tableOrQuery()))
    if "HadoopFsRelation" not in (kind, str(relation.getClass().getSuperclass().getSimpleName())):
        return None
    roots = relation.location().rootPaths()
    is_of_delta = class_name(relation.fileFormat()) == "DeltaParquetFileFormat"
    format = "delta" if is_of_delta else str(relation.fileFormat().toString()).lower()
    if roots.isEmpty():
        return Endpoint(format)
    folder = of_files(format, str(roots.apply(0).toString()))
    more = f" and {roots.size() - 1} more" if roots.size() > 1 else ""
    return Endpoint(f"Scan {format}", folder.description + more, folder.dataset)


def of_files(format: str, path: str) -> Endpoint:
    """A folder of files."""
    path = partitions.local_path(path)
    return Endpoint(format.lower(), path, partitions.dataset(path, format.lower()))


#: Tables of version 2 that are folders of files, and one that is nothing.
_UNNAMED = frozenset(
    ("AvroTable", "CSVTable", "JsonTable", "NoopTable$", "OrcTable", "ParquetTable", "TextTable", "XmlTable")
)


def _of_table(table: Any, relation: Any) -> Endpoint:
    """A table of a source of version 2. Where it says in which folder its files are, that is its name.

    Others are named by their catalog, or as the source itself names them.
    """
    if class_name(table) == "JDBCTable":
        options = table.jdbcOptions()
        return of_database(str(options.url()), str(options.tableOrQuery()))
    name, properties = without_secrets(str(table.name())), table.properties()
    location = properties.get("location") if properties is not None else None
    if location is None:
        is_named = class_name(table) not in _UNNAMED
        return Endpoint("table", name, _in_catalog(relation, class_name(table), name) if is_named else None)
    format = str(properties.get("provider") or "table")
    return Endpoint("table", name, partitions.dataset(str(location), format))


def _in_catalog(relation: Any, source: str, name: str) -> dict[str, str]:
    """The dataset of a table without files: its catalog and its name there, if it is in one."""
    catalog, identifier = relation.catalog(), relation.identifier()
    if catalog.isDefined() and identifier.isDefined():
        source, identifier = str(catalog.get().name()), identifier.get()
        name = ".".join([*map(str, identifier.namespace()), str(identifier.name())])
    return {"namespace": source, "name": name, "format": dataset_names.OF_SOURCE}


#: The options that say where a source is. Others are never looked at: they may be secrets.
_LOCATING_OPTIONS = (
    "url",
    "dbtable",
    "query",
    "path",
    "topic",
    "subscribe",
    "subscribePattern",
    "assign",
    "kafka.bootstrap.servers",
)


def _texts(options: Any) -> dict[str, str]:
    """Those of `_LOCATING_OPTIONS` that are set in a map of Scala's or Java's, which ignores case."""
    texts = {}
    for name in _LOCATING_OPTIONS:
        value = options.get(name)
        if value is not None and hasattr(value, "isDefined"):
            value = value.get() if value.isDefined() else None
        if value is not None:
            texts[name] = str(value)
    return texts


def of_options(source: str, options: Mapping[str, str]) -> Endpoint:
    """By what the options of a source, or of a sink, say of where it is."""
    values = {name.lower(): value for name, value in options.items()}
    format = source.rpartition(".")[2].lower()
    if "jdbc" in source.lower():
        return of_database(values.get("url", ""), values.get("dbtable") or values.get("query", ""))
    if path := values.get("path"):
        dataset = partitions.dataset(path, format)
        return Endpoint(format, dataset_names.location_of(dataset), dataset)
    topic = values.get("topic") or values.get("subscribe") or values.get("subscribepattern")
    if "kafka" in source.lower():
        topic = topic or ",".join(json.loads(values.get("assign", "{}")))
        return of_topic(values.get("kafka.bootstrap.servers", ""), topic) if topic else Endpoint("kafka")
    return Endpoint(format)


def of_topic(servers: str, topic: str) -> Endpoint:
    """A topic of Kafka."""
    dataset = {"namespace": dataset_names.kafka_namespace(servers), "name": topic, "format": "kafka"}
    return Endpoint("kafka", topic, dataset)


def _written_by(command: Plan) -> Endpoint | None:
    kind = class_name(command)
    if kind == "SaveIntoDataSourceCommand":
        return of_options(str(command.dataSource().getClass().getName()), _texts(command.options()))
    if kind in TABLE_WRITES:
        table = command.table()
        return (
            _of_table(table.table(), table)
            if class_name(table) == "DataSourceV2Relation"
            else Endpoint(str(table.name()))
        )
    return None


#: Commands that write into a table of a source of version 2.
TABLE_WRITES = (
    "AppendData",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "WriteDelta",
)
