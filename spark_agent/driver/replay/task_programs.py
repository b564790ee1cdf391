"""A recipe as a program of one task, which runs on few lines of text within milliseconds.

Spark runs an operation with shuffles in many tasks, each of which takes longer than few records do. Promises
to refuse by name what cannot be run so: sources that are no lines, and operations that PySpark has not
written in Python or that tell partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent.driver.monkeypatch import rdd_module
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.few_partitions import in_one_partition
from spark_agent.driver.replay.functions_then import FunctionsThen
from spark_agent.driver.replay.restriction import literal, reads_texts
from spark_agent.worker.record_lists import Of, Step, TaskProgram, TaskRun

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

__all__ = ["NotInOneTaskError", "TaskPrograms"]

_OPERATIONS = frozenset(
    (
        "aggregateByKey", "cartesian", "coalesce", "cogroup", "combineByKey", "distinct", "filter", "flatMap",
        "flatMapValues", "foldByKey", "fullOuterJoin", "groupBy", "groupByKey", "groupWith", "intersection",
        "join", "keyBy", "keys", "leftOuterJoin", "map", "mapValues", "partitionBy", "reduceByKey",
        "repartition", "rightOuterJoin", "sortBy", "sortByKey", "subtract", "subtractByKey", "union",
        "values",
    )
)  # fmt: skip


class NotInOneTaskError(Exception):
    """The recipe cannot be run in one task. The text says why."""


class TaskPrograms:
    """Of one recipe in a session. Raises NotInOneTaskError when it is made.

    `functions` of the program are taken in the place of those of now, where they are others.
    """

    def __init__(self, session: Session, recipe: Recipe, functions: FunctionsThen | None = None) -> None:
        lineage = recipe.lineage()
        for step in lineage:
            _check(step)
        sources = [step for step in lineage if step.source is not None]
        if not sources:
            raise NotInOneTaskError("it has no source")
        self.sources = frozenset(step.number for step in sources)
        self._steps = _steps(lineage, functions)
        self._base = literal(sources[0].source, {"0": [""]}, 1)
        self._base._lineage_node = session.scope.left_out_source("textFile", is_plain=True)

    def run(self, lines: Mapping[int, Sequence[str]], look: Any, keyed: frozenset[int]) -> TaskRun:
        """On these lines of the sources, by their nodes. Raises what Spark raises for a failed task."""
        steps = [
            Step(step.number, step.name, lines=list(lines.get(step.number, ())))
            if step.number in self.sources
            else step
            for step in self._steps
        ]
        [result] = self._base.mapPartitions(TaskProgram(steps, look, keyed)).collect()
        assert isinstance(result, TaskRun)
        return result


def _check(step: Recipe) -> None:
    if step.source is None:
        if step.name not in _OPERATIONS or step.place is not None:
            raise NotInOneTaskError(f"{step.name} is run by Spark alone")
    elif step.why_whole or step.name != "textFile" or not reads_texts(step.source):
        raise NotInOneTaskError(f"{step.name} gives no lines of a file")


def _steps(lineage: Sequence[Recipe], functions: FunctionsThen | None) -> list[Step]:
    at = {id(step): number for number, step in enumerate(lineage)}
    then: Mapping[int, Any] = {}

    def argument(value: Any) -> Any:
        if id(value) in then:
            return then[id(value)]
        if isinstance(value, Recipe):
            return Of(at[id(value)])
        if isinstance(value, list) and value and isinstance(value[0], Recipe):
            return [Of(at[id(one)]) for one in value]
        return value

    steps = []
    for step in lineage:
        if step.source is not None:
            steps.append(Step(step.number, step.name))
            continue
        then = {} if functions is None else functions.of(step)
        arguments, keywords = step.arguments, step.keywords
        if not step.is_of_context:
            operation = getattr(rdd_module().RDD, step.name)
            arguments, keywords = in_one_partition(operation, arguments, keywords)
        steps.append(
            Step(
                step.number,
                step.name,
                [argument(value) for value in arguments],
                {name: argument(value) for name, value in keywords.items()},
                is_of_context=step.is_of_context,
            )
        )
    return steps
