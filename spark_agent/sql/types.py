"""What passes between the parts of `sql`: objects of Spark's JVM, and where the rows of an output go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Plan = Any  # org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
Expression = Any  # org.apache.spark.sql.catalyst.expressions.Expression
Seq = Any  # scala.collection.Seq


@dataclass(frozen=True)
class OutputFiles:
    """`key` is a long, neither null nor negative, that changes with the file; the rest tells which it is."""

    key: Expression | None = None  # None: all of a task goes into one folder
    bucket: Expression | None = None
    columns: list[str] = field(default_factory=list)
    values: list[Expression] = field(default_factory=list)  # their texts, as they are in names of folders
    writers: int = 0  # files that a task may have open at a time; 0: rows are sorted, and it has one
    texts: Any = None  # a java.util.List of those in which the end of a line makes another line; None: none
    is_alone: bool = False  # it is the only one, and a blank line is no row
