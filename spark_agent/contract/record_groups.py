"""Operations by the records that they look at together, by their names: of RDDs and of plans of queries."""

from __future__ import annotations

__all__ = ["GROUPING", "NARROW", "UNIONS"]

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
#: Records are made of those with the same key.
GROUPING = frozenset(
    (
        *("reduceByKey", "foldByKey", "aggregateByKey", "combineByKey", "groupByKey", "groupBy"),
        *("distinct", "cogroup", "groupWith", "join", "leftOuterJoin", "rightOuterJoin", "fullOuterJoin"),
        *("subtract", "subtractByKey", "intersection"),
        *("Aggregate", "Join", "Deduplicate", "Distinct"),
    )
)
