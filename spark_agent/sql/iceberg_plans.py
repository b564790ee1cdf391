"""What plans read and write of tables of Iceberg, by Iceberg's own classes in the JVM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from spark_agent.sql.types import Expression, Plan

if TYPE_CHECKING:
    from spark_agent.sql.jvm_gateway import Jvm


class IcebergPlans:
    """Those of one JVM. `java` has the agent's classes, which do without Iceberg where there is none."""

    def __init__(self, jvm: Any, java: Jvm) -> None:
        self._jvm, self._java = jvm, java

    def table(self, leaf: Plan) -> dict[str, Any] | None:
        """What a leaf reads of a table: see IcebergScans.java. None of what is none of Iceberg."""
        text = str(self._java.iceberg_scans.describe(leaf))
        return dict(json.loads(text)) if text else None

    def with_positions(self, leaf: Plan) -> tuple[Plan, Expression] | None:
        """A leaf that `table` knows, and the position of each row in its data file.

        None where it cannot be had.
        """
        positioned = self._java.iceberg_scans.withPositions(leaf)
        return None if positioned is None else (positioned, self._java.iceberg_scans.position(positioned))

    def write(self, command: Plan) -> Any:
        """Of a command that writes data files: see IcebergWrite.java. None of others."""
        return self._java.iceberg_writes.of(command)

    def delete(self, command: Plan) -> Any:
        """Of a command that only removes whole files: see IcebergDelete.java. None of another table."""
        return self._java.iceberg_deletes.of(command)

    def function(self, name: str, arguments: list[Expression]) -> Expression:
        """A function of Iceberg's catalogs over these. Raises what py4j raises where there is none."""
        schema = self._jvm.org.apache.spark.sql.types.StructType()
        for at, argument in enumerate(arguments):
            schema = schema.add(f"argument{at}", argument.dataType())
        function = self._jvm.org.apache.iceberg.spark.functions.SparkFunctions.load(name).bind(schema)
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        return expressions.V2ExpressionUtils.resolveScalarFunction(function, self._java.seq(arguments))
