"""How records of databases are named: by the primary key of their table, where a query reads or writes it.

A database is asked once for each table, with the options of the query, within bounded time. What goes wrong
is a reason, never an error of the user's. Promises that no query reads a column more for it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.sql import tables
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Expression, Plan

if TYPE_CHECKING:
    from spark_agent.sql.jvm_gateway import Jvm

#: How long a query waits for the answer of a database, once for each table.
_WAIT_MS = 3_000
_NAMED = (
    "each record has the primary key of its row, which may have been changed since: it is the row as it was "
    "when it was read"
)
_BY_PLACE = "known by their places in what the database returned"
_WRITTEN = (
    "each record has the primary key of the row that was written, which may have been changed since: a query "
    "that reads the row is not linked with it"
)
_IN_ORDER = "known by their places in what was written"
_OF_QUERY = "computed by the database itself, of rows that are not known here (a query)"


@dataclass(frozen=True, slots=True)
class RecordNames:
    """How records of a table are named: `texts` are expressions over its rows. None: by their places."""

    columns: Sequence[str] = ()
    texts: Sequence[Expression] = ()
    reason: str = ""
    is_exact: bool = True  # are the records rows of the table


class DatabaseKeys:
    """The primary keys that one application knows."""

    def __init__(self, catalyst: Catalyst, jvm: Jvm, *, is_on: bool) -> None:
        self._catalyst, self._jvm, self._is_on = catalyst, jvm, is_on
        self._answers: dict[str, tuple[list[str], str]] = {}  # (columns, reason) by a hash of what was asked

    def names_of(self, leaf: Plan, kind: str, query: Plan) -> RecordNames | None:
        """Of the records of a scan in a query; None where it reads no database. Never raises."""
        try:
            options = tables.jdbc_options(leaf, kind)
            return None if options is None else self._names(options, leaf, query)
        except Exception:  # noqa: BLE001 - a name is never worth a query
            logger.debug("what names the records of a database is not known", exc_info=True)
            return None

    def names_of_written(self, options: Any, query: Plan) -> RecordNames | None:
        """Of the rows of a query that are written into the table of these options; None: nothing is said.

        The database is asked each time: it may have made the table anew, with another key. Never raises.
        """
        if options is None or not self._is_on:
            return None
        try:
            self._answers.pop(self._asked(options), None)
            key, reason = self._primary_key(options)
            if not key:
                return RecordNames(reason=f"{_IN_ORDER}: {reason}")
            columns = self._columns_written(query, key)
            if not columns:
                return RecordNames(
                    reason=f"{_IN_ORDER}: the query does not write the primary key ({', '.join(key)})"
                )
            return RecordNames(key, [self._text(query, column) for column in columns], _WRITTEN)
        except Exception:  # noqa: BLE001 - a name is never worth a query
            logger.debug("what names the records of a database is not known", exc_info=True)
            return None

    def _columns_written(self, query: Plan, key: Sequence[str]) -> list[Expression]:
        """The columns of a query that go into those of the key, as Spark finds them; none where one lacks."""
        is_exact = self._catalyst.conf(query, "spark.sql.caseSensitive", "false").lower() == "true"
        named: dict[str, list[Expression]] = defaultdict(list)
        output = query.output()
        for name, column in zip(self._catalyst.names(output), self._catalyst.items(output), strict=True):
            named[name if is_exact else name.lower()].append(column)
        columns = [named[name if is_exact else name.lower()] for name in key]
        return [column[0] for column in columns] if all(len(column) == 1 for column in columns) else []

    def _names(self, options: Any, leaf: Plan, query: Plan) -> RecordNames:
        if not tables.is_name(str(options.tableOrQuery())):
            return RecordNames(reason=_OF_QUERY, is_exact=False)
        if not self._is_on:
            return RecordNames()
        key, reason = self._primary_key(options)
        if not key:
            return RecordNames(reason=f"{_BY_PLACE}: {reason}")
        columns = self._columns(leaf, key)
        if not columns or not self._jvm.table_keys.areRead(query, self._jvm.java_list(columns)):
            return RecordNames(
                reason=f"{_BY_PLACE}: the query does not read the primary key ({', '.join(key)})"
            )
        return RecordNames(key, [self._text(leaf, column) for column in columns], _NAMED)

    def _primary_key(self, options: Any) -> tuple[list[str], str]:
        asked = self._asked(options)
        if asked not in self._answers:
            answer = json.loads(self._jvm.table_keys.of(options, _WAIT_MS))
            self._answers[asked] = list(answer.get("columns", ())), str(answer.get("reason", ""))
        return self._answers[asked]

    @staticmethod
    def _asked(options: Any) -> str:
        """Names a table. An address may hold a password."""
        return hashlib.sha256(f"{options.url()}\n{options.tableOrQuery()}".encode()).hexdigest()

    def _columns(self, leaf: Plan, key: Sequence[str]) -> list[Expression]:
        """The columns of the key among those of a scan; none where one is not among them."""
        output = self._catalyst.items(leaf.output())
        by_name = dict(zip(self._catalyst.names(leaf.output()), output, strict=True))
        return [by_name[name] for name in key] if by_name.keys() >= set(key) else []

    def _text(self, leaf: Plan, column: Expression) -> Expression:
        if self._catalyst.types([column]) == ["binary"]:
            return self._catalyst.hexadecimal(column)
        zone = self._catalyst.conf(leaf, "spark.sql.session.timeZone", "")
        return self._catalyst.text(column, zone or None)
