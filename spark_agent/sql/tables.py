"""What a plan reads or writes that is no folder of files: tables of databases and of catalogs, topics.

Asks the JVM over py4j alone, so it does without the agent's jar. Promises that no password leaves the driver:
of a database's address what is behind its name is left out, and of a source's options only those are read
that say where it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_agent.contract import dataset_names
from spark_agent.delivery.database_names import address, table_name, unquoted
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


def is_of_files(dataset: dict[str, str] | None) -> bool:
    """Is it a folder of files, whose rows people can be shown?"""
    return dataset is not None and dataset_names.is_of_files(dataset["format"])


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
    if kind == "LogicalRelation":
        return _of_relation(leaf.relation())
    if kind in ("DataSourceV2Relation", "DataSourceV2ScanRelation"):
        relation = leaf if kind == "DataSourceV2Relation" else leaf.relation()
        return _of_table(relation.table())
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
    if kind == "HadoopFsRelation":
        roots = relation.location().rootPaths()
        format = str(relation.fileFormat().toString()).lower()
        if roots.isEmpty():
            return Endpoint(format)
        folder = of_files(format, str(roots.apply(0).toString()))
        more = f" and {roots.size() - 1} more" if roots.size() > 1 else ""
        return Endpoint(f"Scan {format}", folder.description + more, folder.dataset)
    return None


def of_files(format: str, path: str) -> Endpoint:
    """A folder of files."""
    path = partitions.local_path(path)
    return Endpoint(format.lower(), path, partitions.dataset(path, format.lower()))


def _of_table(table: Any) -> Endpoint:
    """A table of a source of version 2. Where it says in which folder its files are, that is its name."""
    if class_name(table) == "JDBCTable":
        options = table.jdbcOptions()
        return of_database(str(options.url()), str(options.tableOrQuery()))
    name, properties = str(table.name()), table.properties()
    location = properties.get("location") if properties is not None else None
    if location is None:
        return Endpoint("table", name)
    format = str(properties.get("provider") or "table")
    return Endpoint("table", name, partitions.dataset(str(location), format))


#: The options that say where a source is. Others are never looked at: they may be secrets.
_LOCATING_OPTIONS = (
    "url",
    "dbtable",
    "query",
    "path",
    "topic",
    "subscribe",
    "subscribePattern",
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
    if topic and "kafka" in source.lower():
        return of_topic(values.get("kafka.bootstrap.servers", ""), topic)
    return Endpoint(format)


def of_topic(servers: str, topic: str) -> Endpoint:
    """A topic of Kafka."""
    dataset = {"namespace": f"kafka://{servers.partition(',')[0]}", "name": topic, "format": "kafka"}
    return Endpoint("kafka", topic, dataset)


def _written_by(command: Plan) -> Endpoint | None:
    kind = class_name(command)
    if kind == "SaveIntoDataSourceCommand":
        return of_options(str(command.dataSource().getClass().getName()), _texts(command.options()))
    if kind in TABLE_WRITES:
        table = command.table()
        return (
            _of_table(table.table())
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
