"""The functions of Python that operators of a plan call over many rows, over py4j.

Knows how an operator is given another function (PythonFunctions.java), and nothing of what that one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_agent.sql.types import Expression, Plan

if TYPE_CHECKING:
    from spark_agent.sql.jvm_gateway import Jvm

#: The lines of PySpark of which it is known how their workers call a function.
_KNOWN_VERSIONS = ("3.5", "4.0", "4.1", "4.2", "4.3")
#: How many results of a function for rows workers give back at once.
_AT_ONCE, _DEFAULT_AT_ONCE = "spark.sql.execution.python.udf.maxRecordsPerBatch", "100"


def results_at_once(conf: Callable[[str, str], str]) -> int:
    """How many results of a function for rows workers give back. `conf` takes a name and a default."""
    from pyspark import __version__

    if __version__.startswith("3."):  # these workers ask no conf
        return int(_DEFAULT_AT_ONCE)
    return int(conf(_AT_ONCE, _DEFAULT_AT_ONCE))


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """What Python's workers get of a function."""

    evaluation: int  # how it is called: PySpark's number for that
    command: bytes  # it and the type of its rows, pickled


class PythonFunctions:
    """Those of one JVM."""

    def __init__(self, java: Jvm) -> None:
        self._java, self._functions = java, java.python_functions

    def of(self, plan: Plan) -> PythonFunction | None:
        """None where the operator or its worker may be made otherwise than expected."""
        from pyspark import __version__

        if ".".join(__version__.split(".")[:2]) not in _KNOWN_VERSIONS:
            return None
        evaluation = int(self._functions.evaluation(plan))
        return None if evaluation < 0 else PythonFunction(evaluation, bytes(self._functions.command(plan)))

    def replaced(
        self, plan: Plan, command: bytes, arguments: list[Expression], results: list[Expression]
    ) -> Plan:
        """The operator with another command, which takes and gives columns more."""
        java = self._java
        includes = list(self._functions.includes(plan))
        includes += [name for name in java.agent_archives() if name not in includes]
        return self._functions.withCommand(
            plan, command, java.java_list(includes), java.java_list(arguments), java.java_list(results)
        )
