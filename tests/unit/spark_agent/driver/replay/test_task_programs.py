"""Which recipes are no program of one task."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.serializers import UTF8Deserializer

from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.task_programs import NotInOneTaskError, TaskPrograms


class Lines:
    """What of an RDD says that its records are lines."""

    _jrdd_deserializer = UTF8Deserializer(True)


LINES = Recipe(0, "textFile", source=Lines())


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        (Recipe(1, "mapPartitions", (LINES, len)), "mapPartitions is run by Spark alone"),
        (Recipe(1, "randomSplit", (LINES, [1, 2]), place=1), "randomSplit is run by Spark alone"),
        (Recipe(0, "parallelize", source=object()), "parallelize gives no lines of a file"),
        (Recipe(0, "textFile", source=object(), why_whole="it was checkpointed"), "textFile gives no lines"),
    ],
)
def test_what_one_task_cannot_do_is_named(recipe: Recipe, why: str) -> None:
    session: Any = None
    with pytest.raises(NotInOneTaskError, match=why):
        TaskPrograms(session, recipe)
