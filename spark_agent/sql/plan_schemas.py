"""The columns of what plans read and write. Asks Spark over py4j, and starts no job of it.

Promises never to raise: where the columns cannot be had, the schema has a note that says so.
"""

from __future__ import annotations

from collections.abc import Callable

from spark_agent.delivery.log import logger
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.schemas import Schema, read_schema
from spark_agent.sql.types import Plan

__all__ = ["schema_given", "schema_of_plan", "schema_read", "schema_written"]


def schema_given(catalyst: Catalyst, plan: Plan) -> Schema:
    """Of the rows that a plan gives."""
    return _safely(lambda: catalyst.schema(plan))


def schema_written(catalyst: Catalyst, command: Plan) -> Schema:
    """Of the files that a command writes, which may name columns otherwise than its query."""
    return _safely(lambda: catalyst.schema(command.outputColumns()))


def schema_read(catalyst: Catalyst, leaf: Plan, kind: str) -> Schema:
    """Of what a leaf of the class `kind` reads, whether the query wants all of it or not."""
    is_of_version_2 = kind == "DataSourceV2ScanRelation"
    return _safely(lambda: catalyst.schema(leaf.relation() if is_of_version_2 else leaf))


def schema_of_plan(plan: Plan) -> Schema:
    """Of the rows that a plan gives, where there is no jar."""
    return _safely(lambda: str(plan.schema().json()))


def _safely(ask: Callable[[], str]) -> Schema:
    try:
        return read_schema(ask())
    except Exception as error:  # noqa: BLE001 - columns are never worth a query
        logger.debug("the columns of a plan are not known", exc_info=True)
        return Schema(note=f"left out: Spark did not say what the columns are ({in_short(error)})")
