"""Plans as DataFrames of the running session, and rows of plans that are no part of the job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_agent.sql.catalyst import Catalyst, singleton
from spark_agent.sql.types import Plan

_MARK = "lineage_asked"


class Frames:
    """Of one JVM."""

    def __init__(self, catalyst: Catalyst, jvm: Any) -> None:
        self._catalyst, self._jvm = catalyst, jvm
        self._taken: set[tuple[int, ...]] = set()  # columns of the plans that are taken of

    def of(self, plan: Plan) -> Any:
        from pyspark.sql import DataFrame

        spark = self.spark()
        plan.setAnalyzed()
        java_session = spark._jsparkSession
        package = self._jvm.org.apache.spark.sql
        if str(java_session.getClass().getName()).endswith(".classic.SparkSession"):
            package = package.classic  # since Spark 4.0
        return DataFrame(singleton(package, "Dataset").ofRows(java_session, plan), spark)

    def take(self, plan: Plan, most: int) -> list[Any]:
        """At most so many rows of a plan, as Catalyst holds them. `is_ours` is true while it runs."""
        catalyst = self._catalyst
        marked = catalyst.project_as(plan, plan, [catalyst.alias(catalyst.long(1), _MARK)])
        columns = catalyst.column_ids(marked)
        self._taken.add(columns)
        try:
            return list(self.of(marked)._jdf.queryExecution().executedPlan().executeTake(most))
        finally:
            self._taken.discard(columns)

    def is_ours(self, plan: Plan) -> bool:
        return bool(self._taken) and self._catalyst.column_ids(plan) in self._taken

    def struct(self, fields: Iterable[tuple[str, Any]]) -> Any:
        """A StructType of the JVM."""
        schema = self._jvm.org.apache.spark.sql.types.StructType()
        for name, data_type in fields:
            schema = schema.add(name, data_type)
        return schema

    @staticmethod
    def spark() -> Any:
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate()
