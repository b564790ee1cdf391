"""Saves that Spark leaves to a source of version 1 (JDBC, Kafka, Delta): where their rows go.

The command says where, and hides its query. The source then runs a query with the same columns, or reads its
rows in the JVM, and that is what is followed. A save of which neither was seen is reported in the end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_agent.delivery.log import logger
from spark_agent.sql import tables
from spark_agent.sql.catalog_names import symlinks_of
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.tables import Endpoint
from spark_agent.sql.types import Plan

SAVING = "SaveIntoDataSourceCommand"
CREATING = "CreateDataSourceTableAsSelectCommand"
_OF_DELTA = "org.apache.spark.sql.delta."
_OF_VERSION_1 = "org.apache.spark.sql.connector.write.V1Write"
#: Saves that are remembered at once. Of older ones nobody waits for the query any more.
_MOST = 1_000


def is_left_to_source(command: Plan, kind: str, gateway: Any) -> bool:
    """Does a command leave writing to a source of version 1, which gets the query as it was analysed?"""
    if kind == SAVING:
        return True
    if kind not in tables.TABLE_WRITES:
        return False
    from py4j.java_gateway import is_instance_of

    write = command.write()
    return bool(write.isDefined() and is_instance_of(gateway, write.get(), _OF_VERSION_1))


def _is_of_delta(command: Plan, kind: str) -> bool:
    """By the package of what is written to: a source, a table, or one that is staged (`replaceWhere`)."""
    to = command.dataSource() if kind == SAVING else command.table()
    if kind != SAVING and tables.class_name(to) == "DataSourceV2Relation":
        to = to.table()
    return str(to.getClass().getName()).startswith(_OF_DELTA)


@dataclass
class _Save:
    endpoint: Endpoint
    method: str  # of Spark SQL that the user's program called
    is_seen: bool = False
    is_of_delta: bool = False  # Delta Lake writes its rows in a transaction
    database: Any = None  # the options of Spark's for the table of a database


class Saves:
    """Those of one application. Only calls of the planner meet here, and a dictionary is enough for these."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._by_columns: OrderedDict[tuple[int, ...], _Save] = OrderedDict()
        self._tables: OrderedDict[tuple[int, ...], list[dict[str, str]]] = OrderedDict()

    def begin(self, command: Plan, method: str) -> None:
        """A save is planned; `command` is a SaveIntoDataSourceCommand, or one that `is_left_to_source`."""
        kind = str(command.getClass().getSimpleName())
        query = command.query() if kind == SAVING else command.analyzedQuery().get()
        # With `ignore`, a table that is there keeps the query from running.
        may_do_nothing = kind == SAVING and str(command.mode()) == "Ignore"
        endpoint = tables.written_by(command) or Endpoint("save")
        save = _Save(endpoint, method, is_seen=may_do_nothing, is_of_delta=_is_of_delta(command, kind))
        save.database = self._database(command, kind)
        self._by_columns[self._catalyst.column_ids(query)] = save
        if len(self._by_columns) > _MOST:
            self._by_columns.popitem(last=False)

    def begin_table(self, command: Plan) -> None:
        """A table is created of a query; the command that writes its files does not say which table it is."""
        links = symlinks_of(command, command.table())
        self._tables[self._catalyst.column_ids(command.query())] = links
        if len(self._tables) > _MOST:
            self._tables.popitem(last=False)

    def symlinks_of(self, query: Plan | None) -> list[dict[str, str]]:
        """The names of the table that is created of a query; none where none is."""
        is_created = query is not None and bool(self._tables)
        return self._tables.get(self._catalyst.column_ids(query), []) if is_created else []

    def endpoint_of(self, query: Plan, method: str) -> Endpoint | None:
        """Where the rows of a query go, if it is that of a save that the same call of the user's began."""
        save = self._save_of(query, method)
        if save is None:
            return None
        save.is_seen = True
        return save.endpoint

    def database_of(self, query: Plan, method: str) -> Any:
        """The options of Spark's for the table of a database that such a query is written into; else None."""
        save = self._save_of(query, method)
        return None if save is None else save.database

    def _save_of(self, query: Plan, method: str) -> _Save | None:
        save = self._by_columns.get(self._catalyst.column_ids(query)) if self._by_columns else None
        return None if save is None or save.method != method else save

    def _database(self, command: Plan, kind: str) -> Any:
        """The same of a command. A name of a record is never worth a query."""
        try:
            return tables.jdbc_options_written(self._catalyst.jvm, command, is_save=kind == SAVING)
        except Exception:  # noqa: BLE001 - options that the user has to hear of, or a source of somebody else's
            logger.debug("which table of a database is written is not known", exc_info=True)
            return None

    def see_transaction(self) -> None:
        """A transaction of Delta Lake writes rows: those of the save that waits for one the longest."""
        save = next((one for one in self._by_columns.values() if one.is_of_delta and not one.is_seen), None)
        if save is not None:
            save.is_seen = True

    def unseen(self) -> Iterator[Endpoint]:
        """Where saves went of which nobody saw the query."""
        return (save.endpoint for save in self._by_columns.values() if not save.is_seen)
