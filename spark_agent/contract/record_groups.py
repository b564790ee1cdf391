"""Operations by the records that they look at together, by their names: of RDDs and of plans of queries."""

from __future__ import annotations

__all__ = ["GROUPING", "NARROW", "REORDERING", "UNIONS", "is_grouping"]

#: A record is made of one record, whatever others there are; or it is moved.
NARROW = frozenset(
    (
        *("map", "filter", "flatMap", "mapValues", "flatMapValues", "keyBy", "keys", "values", "union"),
        *("repartition", "coalesce", "partitionBy", "sortBy", "sortByKey", "cache", "persist"),
        *("Filter", "Project", "Generate", "Union", "Sort", "Repartition", "RepartitionByExpression"),
        *("RebalancePartitions", "BatchEvalPython"),
    )
)
#: Of the narrow ones, those with several inputs.
UNIONS = frozenset(("union", "Union"))
#: Of the narrow ones, those behind which the place of a record depends on how many others there are.
REORDERING = frozenset(
    (
        *("repartition", "coalesce", "partitionBy"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
    )
)
#: Records are made of those with the same key, all of which are in their lineage. None of an outer join is
#: among them: whether a record is there without a match depends on rows that are not in its lineage.
GROUPING = frozenset(
    (
        *("reduceByKey", "foldByKey", "aggregateByKey", "combineByKey", "groupByKey", "groupBy"),
        *("distinct", "cogroup", "groupWith", "join", "subtract", "subtractByKey", "intersection"),
        *("Aggregate", "Deduplicate", "Distinct"),
    )
)
_JOIN, _INNER = "Join", frozenset(("Inner", "Cross", "LeftSemi", "LeftAnti"))


def is_grouping(name: str, description: str) -> bool:
    """Is an operation one of these? The join of a query is known by its description, as `Inner, (a = b)`."""
    return name in GROUPING or (name == _JOIN and description.partition(",")[0].strip() in _INNER)
