"""Cases of functions of Python over groups of rows: queries with their oracles.

Functions give none, one or two rows for a group, by the number of its rows, so that groups and rows cannot be
matched by counting.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.util
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, Tables
from tests.support.spark.shop import Order, Shop

NO_AQE = {"spark.sql.adaptive.enabled": "false"}
SMALL_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "2"}
#: Spark shuffles both sides of a join, and sorts them.
MERGE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
ROWS = "ids string, part long"
ROWS_OF_TWO = "ids string, others string, part long"


# -- what functions give for a group ----------------------------------------------------------------------


def ids_text(ids: list[Any]) -> str:
    return " ".join(str(number) for number in sorted(ids))


def rows_for(ids: list[Any]) -> list[tuple[str, int]]:
    return [(ids_text(ids), part) for part in range(len(ids) % 3)]


def rows_for_two(ids: list[Any], others: list[Any]) -> list[tuple[str, str, int]]:
    return [
        (ids_text(ids), ids_text(others), part)
        for part in range(1 if not ids or not others else (len(ids) + len(others)) % 3)
    ]


def in_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(rows_for(frame["id"].tolist()), columns=["ids", "part"])


def in_pandas_with_key(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    assert isinstance(key, tuple)
    return in_pandas(frame)


def in_pandas_by_place(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(rows_for(frame["id"].tolist()))


def in_pandas_in_another_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns in another order, and an index that says nothing."""
    result = in_pandas(frame)[["part", "ids"]]
    result.index = pd.Index([5] * len(result))
    return result


def in_arrow(table: pa.Table) -> pa.Table:
    rows = rows_for(table["id"].to_pylist())
    return pa.table(
        {
            "ids": pa.array([ids for ids, _ in rows], pa.string()),
            "part": pa.array([part for _, part in rows], pa.int64()),
        }
    )


def in_arrow_with_key(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    assert isinstance(key, tuple)
    return in_arrow(table)


def two_in_pandas(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    rows = rows_for_two(left["id"].tolist(), right["weight"].tolist())
    return pd.DataFrame(rows, columns=["ids", "others", "part"])


def two_in_pandas_with_key(key: tuple[Any, ...], left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    assert isinstance(key, tuple)
    return two_in_pandas(left, right)


def two_in_arrow(left: pa.Table, right: pa.Table) -> pa.Table:
    rows = rows_for_two(left["id"].to_pylist(), right["weight"].to_pylist())
    types = (("ids", pa.string()), ("others", pa.string()), ("part", pa.int64()))
    return pa.table({name: pa.array([row[at] for row in rows], of) for at, (name, of) in enumerate(types)})


def two_in_arrow_with_key(key: tuple[Any, ...], left: pa.Table, right: pa.Table) -> pa.Table:
    assert isinstance(key, tuple)
    return two_in_arrow(left, right)


# -- the same by plain Python -----------------------------------------------------------------------------


def grouped(data: r.Data, key: Callable[[Any], Any], ids: Callable[[Any], Any] = lambda o: o.id) -> r.Data:
    return [
        (row, r.all_of(rows))
        for _, rows in r.groups(data, key)
        for row in rows_for([ids(source) for source, _ in rows])
    ]


def grouped_by(*columns: str) -> Callable[[Shop], r.Data]:
    return lambda s: grouped(s.orders, lambda o: tuple(getattr(o, column) for column in columns))


def cogrouped(left: r.Data, right: r.Data) -> r.Data:
    """By the tag: orders with labels."""
    sides = [dict(r.groups(side, lambda row: row.tag)) for side in (left, right)]
    return [
        (row, r.all_of(ones) | r.all_of(others))
        for tag in {**sides[0], **sides[1]}
        for ones, others in [[side.get(tag, []) for side in sides]]
        for row in rows_for_two([one.id for one, _ in ones], [other.weight for other, _ in others])
    ]


def expensive(shop: Shop) -> r.Data:
    return r.where(shop.orders, lambda o: o.amount > 12)


def pandas(t: Tables, *keys: Any, frame: DataFrame | None = None) -> DataFrame:
    return (t.orders if frame is None else frame).groupBy(*keys).applyInPandas(in_pandas, ROWS)


def both(t: Tables) -> Any:
    return t.orders.groupBy("tag").cogroup(t.labels.groupBy("tag"))


def keyed(expression: str, key: Callable[[Order], Any]) -> Case:
    """Groups by a key of any type."""
    return Case(
        lambda t: pandas(t, F.expr(expression).alias("k")),
        lambda s: grouped(s.orders, key),
        conf=SMALL_BATCHES,
    )


def heavy(t: Tables) -> DataFrame:
    """A function so large that Spark broadcasts it."""
    ballast = bytes(range(256)) * 8192

    def weighed(frame: pd.DataFrame) -> pd.DataFrame:
        assert len(ballast) == 2 << 20
        return in_pandas(frame)

    return t.orders.groupBy("tag").applyInPandas(weighed, ROWS)


def with_itself(t: Tables) -> DataFrame:
    by_tag: GroupedData = t.orders.select("tag", "id", F.col("id").alias("weight")).groupBy("tag")
    return by_tag.cogroup(by_tag).applyInPandas(two_in_pandas, ROWS_OF_TWO)


def of_itself(s: Shop) -> r.Data:
    return [
        (row, r.all_of(rows))
        for _, rows in r.groups(s.orders, lambda o: o.tag)
        for ids in [[order.id for order, _ in rows]]
        for row in rows_for_two(ids, ids)
    ]


def counted_again(t: Tables) -> DataFrame:
    """Groups of what a function over groups gave."""
    return pandas(t, "customer").groupBy("part").agg(F.count("*").alias("n"), F.max("ids").alias("most"))


def joined_with_orders(t: Tables) -> DataFrame:
    labels = t.labels.groupBy("tag").applyInPandas(
        lambda frame: pd.DataFrame({"tag": frame["tag"][:1], "total": [frame["weight"].sum()]}),
        "tag string, total long",
    )
    return t.orders.join(labels, "tag").select("id", "total")


def joined(s: Shop) -> r.Data:
    totals = [
        ((tag, sum(label.weight for label, _ in rows)), r.all_of(rows))
        for tag, rows in r.groups(s.labels, lambda label: label.tag)
    ]
    pairs = r.join(s.orders, totals, lambda o, total: r.equal(o.tag, total[0]))
    return r.select(pairs, lambda pair: (pair[0].id, pair[1][1]))


def nested(t: Tables) -> DataFrame:
    """By tag: the largest ids of each customer."""
    largest = t.orders.groupBy("customer", "tag").applyInPandas(
        lambda frame: frame.nlargest(2, "id")[["tag", "id"]], "tag string, id long"
    )
    return pandas(t, "tag", frame=largest)


def of_largest(s: Shop) -> r.Data:
    largest: r.Data = []
    for _, rows in r.groups(s.orders, lambda o: (o.customer, o.tag)):
        ordered = sorted((order for order, _ in rows), key=lambda order: -order.id)
        largest += [((order.tag, order.id), r.all_of(rows)) for order in ordered[:2]]
    return grouped(largest, lambda row: row[0], lambda row: row[1])


def cached(t: Tables) -> DataFrame:
    kept = pandas(t, "customer", frame=t.orders.where("amount > 5")).cache()
    return kept.where("part = 0").union(kept.where("part = 1"))


PANDAS: dict[str, Case] = {
    "null in the keys": Case(lambda t: pandas(t, "customer"), grouped_by("customer")),
    "null in the keys, without AQE": Case(
        lambda t: pandas(t, "customer"), grouped_by("customer"), conf=NO_AQE
    ),
    "NaN and both zeros": Case(lambda t: pandas(t, "price"), grouped_by("price"), conf=SMALL_BATCHES),
    "several keys": Case(lambda t: pandas(t, "customer", "tag"), grouped_by("customer", "tag")),
    "a computed key": keyed("amount % 4", lambda o: abs(o.amount) % 4 * (1 if o.amount > 0 else -1)),
    "key of a struct": keyed("struct(price, tag)", lambda o: (o.price, o.tag)),
    "key of an array": keyed("array(price, 1.0D)", lambda o: o.price),
    "key of a decimal": keyed("decimal(amount) / 2", lambda o: o.amount),
    "key of a date": keyed("date_add(date'2024-02-28', customer)", lambda o: o.customer),
    "key of a time": keyed("timestamp_seconds(customer)", lambda o: o.customer),
    "key of bytes": keyed("binary(tag)", lambda o: o.tag),
    "key of a boolean": keyed("amount > 12", lambda o: o.amount > 12),
    "key that is one value": keyed("1", lambda o: 1),
    "key of a float": keyed("float(price)", lambda o: o.price),
    "all of a table": Case(lambda t: pandas(t), lambda s: grouped(s.orders, lambda o: 0)),
    "the function takes the key": Case(
        lambda t: t.orders.groupBy("tag").applyInPandas(in_pandas_with_key, ROWS), grouped_by("tag")
    ),
    "columns by their places": Case(
        lambda t: t.orders.groupBy("tag").applyInPandas(in_pandas_by_place, ROWS), grouped_by("tag")
    ),
    "columns in another order": Case(
        lambda t: t.orders.groupBy("tag").applyInPandas(in_pandas_in_another_order, ROWS), grouped_by("tag")
    ),
    "names that the agent uses": Case(
        lambda t: (
            t.orders.selectExpr("tag", "id", "id lineage_group", "id Lineage_Group_0")
            .groupBy("tag")
            .applyInPandas(lambda frame: frame[["id", "lineage_group"]], "id int, lineage_group int")
        ),
        lambda s: [
            ((order.id, order.id), r.all_of(rows))
            for _, rows in r.groups(s.orders, lambda o: o.tag)
            for order, _ in rows
        ],
    ),
    "a large function": Case(heavy, grouped_by("tag")),
    "a filter before and behind": Case(
        lambda t: pandas(t, "tag", frame=t.orders.where("amount > 12")).where("part = 0").select("ids"),
        lambda s: [((row[0],), of) for row, of in grouped(expensive(s), lambda o: o.tag) if row[1] == 0],
    ),
    "no rows": Case(lambda t: pandas(t, "tag", frame=t.orders.where("amount > 99")), lambda s: []),
    "many partitions": Case(
        lambda t: pandas(t, "amount", frame=t.orders.repartition(7)),
        grouped_by("amount"),
        conf={"spark.sql.shuffle.partitions": "11"},
    ),
    "over a repartition by the key": Case(
        lambda t: pandas(t, "tag", frame=t.orders.repartition(5, "tag")), grouped_by("tag")
    ),
    "over an aggregate": Case(
        lambda t: pandas(
            t, "customer", frame=t.orders.groupBy("customer", "tag").agg(F.max("id").alias("id"))
        ),
        lambda s: grouped(
            [
                ((customer, max(order.id for order, _ in rows)), r.all_of(rows))
                for (customer, _), rows in r.groups(s.orders, lambda o: (o.customer, o.tag))
            ],
            lambda row: row[0],
            lambda row: row[1],
        ),
    ),
    "over a join by the key": Case(
        lambda t: pandas(t, "key", frame=t.orders.join(t.customers, F.expr("customer = key"))),
        lambda s: grouped(
            r.select(
                r.join(s.orders, s.customers, lambda o, c: r.equal(o.customer, c.key)), lambda pair: pair[0]
            ),
            lambda o: o.customer,
        ),
        conf={**MERGE, **NO_AQE},
    ),
    "over a cache": Case(
        lambda t: pandas(t, "tag", frame=t.orders.where("amount > 6").cache()),
        lambda s: grouped(r.where(s.orders, lambda o: o.amount > 6), lambda o: o.tag),
    ),
    "cached": Case(
        cached, lambda s: grouped(r.where(s.orders, lambda o: o.amount > 5), lambda o: o.customer)
    ),
    "aggregated": Case(
        counted_again,
        lambda s: [
            ((part, len(rows), max(row[0] for row, _ in rows)), r.all_of(rows))
            for part, rows in r.groups(grouped(s.orders, lambda o: o.customer), lambda row: row[1])
        ],
    ),
    "joined": Case(joined_with_orders, joined),
    "a function over what another gave": Case(nested, of_largest, conf=SMALL_BATCHES),
    "twice the same": Case(
        lambda t: pandas(t, "customer").union(pandas(t, "customer")),
        lambda s: grouped_by("customer")(s) * 2,
    ),
    "union of two": Case(
        lambda t: pandas(t, "customer").union(pandas(t, "tag")),
        lambda s: grouped_by("customer")(s) + grouped_by("tag")(s),
    ),
    "cogroup": Case(
        lambda t: both(t).applyInPandas(two_in_pandas, ROWS_OF_TWO),
        lambda s: cogrouped(s.orders, s.labels),
        conf=SMALL_BATCHES,
    ),
    "cogroup with the key, without AQE": Case(
        lambda t: both(t).applyInPandas(two_in_pandas_with_key, ROWS_OF_TWO),
        lambda s: cogrouped(s.orders, s.labels),
        conf=NO_AQE,
    ),
    "cogroup with nothing": Case(
        lambda t: (
            t.orders.groupBy("tag")
            .cogroup(t.labels.where("weight > 99").groupBy("tag"))
            .applyInPandas(two_in_pandas, ROWS_OF_TWO)
        ),
        lambda s: cogrouped(s.orders, []),
    ),
    "cogroup of which one side is shuffled": Case(
        lambda t: (
            t.orders.repartition(5, "tag")
            .groupBy("tag")
            .cogroup(t.labels.groupBy("tag"))
            .applyInPandas(two_in_pandas, ROWS_OF_TWO)
        ),
        lambda s: cogrouped(s.orders, s.labels),
    ),
    "a frame cogrouped with itself": Case(with_itself, of_itself),
}

ARROW: dict[str, Case] = {
    "Arrow": Case(
        lambda t: t.orders.groupBy("customer").applyInArrow(in_arrow, ROWS), grouped_by("customer")
    ),
    "Arrow, NaN and both zeros": Case(
        lambda t: t.orders.groupBy("price").applyInArrow(in_arrow, ROWS),
        grouped_by("price"),
        conf=SMALL_BATCHES,
    ),
    "Arrow, the function takes the key": Case(
        lambda t: t.orders.groupBy("tag", "customer").applyInArrow(in_arrow_with_key, ROWS),
        grouped_by("tag", "customer"),
        conf=NO_AQE,
    ),
    "Arrow, all of a table": Case(
        lambda t: t.orders.groupBy().applyInArrow(in_arrow, ROWS), lambda s: grouped(s.orders, lambda o: 0)
    ),
    "cogroup in Arrow": Case(
        lambda t: both(t).applyInArrow(two_in_arrow, ROWS_OF_TWO), lambda s: cogrouped(s.orders, s.labels)
    ),
    "cogroup in Arrow with the key": Case(
        lambda t: both(t).applyInArrow(two_in_arrow_with_key, ROWS_OF_TWO),
        lambda s: cogrouped(s.orders, s.labels),
        conf=SMALL_BATCHES,
    ),
}


# -- iterators: by the annotations, which PySpark reads ---------------------------------------------------


def batches_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of each batch, and one more in the end, of all."""
    ids: list[Any] = []
    for batch in batches:
        ids += batch.column("id").to_pylist()
    yield from in_arrow(pa.table({"id": ids})).to_batches()


def batches_with_key(
    key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from batches_of(batches)


def frames_of(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    whole = pd.concat([*frames])
    for at in range(len(rows_for(whole["id"].tolist()))):
        yield in_pandas(whole)[at : at + 1]


ITERATORS: dict[str, Case] = {
    "iterator of batches": Case(
        lambda t: t.orders.groupBy("customer").applyInArrow(batches_of, ROWS),
        grouped_by("customer"),
        conf=SMALL_BATCHES,
    ),
    "iterator of batches, with the key": Case(
        lambda t: t.orders.groupBy("customer").applyInArrow(batches_with_key, ROWS), grouped_by("customer")
    ),
    "iterator of frames": Case(
        lambda t: t.orders.groupBy("customer").applyInPandas(frames_of, ROWS),
        grouped_by("customer"),
        conf=SMALL_BATCHES,
    ),
}


# -- where Python cannot name groups -----------------------------------------------------------------------


def partition_of(number: int | None, partitions: int = 3) -> int:
    """Where Spark shuffles an integer to: Murmur3 of its four bytes, with the seed 42."""
    if number is None:
        return 42 % partitions
    mask = (1 << 32) - 1

    def rotated(n: int, bits: int) -> int:
        return (n << bits | n >> 32 - bits) & mask

    mixed = rotated((number & mask) * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    h = (rotated(42 ^ mixed, 13) * 5 + 0xE6546B64 & mask) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return (h - (1 << 32) if h >> 31 else h) % partitions


def counted(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"customer": frame["customer"][:1], "n": [len(frame)]})


def counts_of_customers(s: Shop) -> r.Data:
    return r.aggregate(expensive(s), lambda o: (o.customer,), lambda rows: (len(rows),))


def of_partitions(s: Shop) -> r.Data:
    """Each group, from the rows of all groups of its partition."""
    rows = counts_of_customers(s)
    return [
        (row, r.all_of(other for other in rows if partition_of(other[0][0]) == partition_of(row[0])))
        for row, _ in rows
    ]


def of_all(s: Shop) -> r.Data:
    return [(row, r.all_of(expensive(s))) for row, _ in counts_of_customers(s)]


BOUNDS: dict[str, Case] = {
    "columns are not taken by name": Case(
        lambda t: (
            t.orders.where("amount > 12").groupBy("customer").applyInPandas(counted, "customer int, n long")
        ),
        counts_of_customers,
        bound=of_partitions,
        exact=False,
        conf={**NO_AQE, "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName": "false"},
    ),
    "columns are not taken by name, over a repartition": Case(
        lambda t: (
            t.orders.where("amount > 12")
            .repartition(2, "customer")
            .groupBy("customer")
            .applyInPandas(counted, "customer int, n long")
        ),
        counts_of_customers,
        bound=of_all,
        exact=False,
        conf={"spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName": "false"},
    ),
}


# -- random rows ------------------------------------------------------------------------------------------


class Reading(NamedTuple):
    id: int
    sensor: float | None
    weight: int


def readings(name: str) -> list[Reading]:
    """Most are of one sensor, many sensors have one, and some have no name or a strange one."""
    chance = random.Random(name)
    sensors = [None, float("nan"), -0.0, 0.0, *(float(number) for number in range(40))]
    return [
        Reading(at, 7.5 if chance.random() < 0.6 else chance.choice(sensors), chance.randrange(1000))
        for at in range(300)
    ]


def readings_of(shop: Shop, name: str) -> r.Data:
    """With their places, in files that are written when they are first asked for."""
    rows, folder = readings(name), shop.folder / f"readings-{name}"
    cuts = [0, 0, 170, 171, 300]
    data: r.Data = []
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        path = folder / f"{name}-{number}.parquet"
        part = rows[start:end]
        if not path.exists():
            folder.mkdir(exist_ok=True)
            columns = [[row[at] for row in part] for at in range(3)]
            types = [pa.int64(), pa.float64(), pa.int64()]
            arrays = [pa.array(values, of) for values, of in zip(columns, types, strict=True)]
            pq.write_table(pa.table(arrays, names=list(Reading._fields)), path, row_group_size=50)
        data += [(row, frozenset({(path.name, at)})) for at, row in enumerate(part)]
    return data


def readings_in_spark(t: Tables, name: str) -> DataFrame:
    readings_of(t.shop, name)
    return t.spark.read.parquet(t.shop.path(f"readings-{name}"))


def of_two_readings(s: Shop) -> r.Data:
    left, right = readings_of(s, "left"), r.where(readings_of(s, "right"), lambda row: row.weight < 300)
    sides = [
        {r.alike(key): rows for key, rows in r.groups(side, lambda row: row.sensor)} for side in (left, right)
    ]
    return [
        (row, r.all_of(ones) | r.all_of(others))
        for sensor in {**sides[0], **sides[1]}
        for ones, others in [[side.get(sensor, []) for side in sides]]
        for row in rows_for_two([one.id for one, _ in ones], [other.weight for other, _ in others])
    ]


RANDOM: dict[str, Case] = {
    f"random rows, {name}": Case(
        lambda t, name=name: (
            readings_in_spark(t, name).repartition(5).groupBy("sensor").applyInPandas(in_pandas, ROWS)
        ),
        lambda s, name=name: grouped(readings_of(s, name), lambda row: row.sensor),
        conf=conf,
    )
    for name, conf in {
        "left": {},
        "one batch for a few": {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"},
        "without AQE": NO_AQE,
    }.items()
}
RANDOM["random rows, cogrouped"] = Case(
    lambda t: (
        readings_in_spark(t, "left")
        .groupBy("sensor")
        .cogroup(readings_in_spark(t, "right").where("weight < 300").groupBy("sensor"))
        .applyInPandas(two_in_pandas, ROWS_OF_TWO)
    ),
    of_two_readings,
)


# -- functions over partitions ------------------------------------------------------------------------------


def small(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame[frame["amount"] < 20][["id", "amount"]]


def small_so_far(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """One frame behind."""
    before = next(frames, None)
    for frame in frames:
        yield before[["id", "amount"]]
        before = frame
    if before is not None:
        yield before[["id", "amount"]]


def batches_of_small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch]).select(["id", "amount"])
        yield from table.filter(pa.compute.less(table["amount"], 20)).to_batches()


def id_and_amount(order: Order) -> tuple[int, int]:
    return order.id, order.amount


def of_small(s: Shop) -> r.Data:
    return r.select(r.where(s.orders, lambda o: o.amount < 20), id_and_amount)


def up_to_frame(size: int, more: int = 0) -> Callable[[Shop], r.Data]:
    """Each order from all orders up to the end of its frame, and of so many frames more."""
    return lambda s: [
        (id_and_amount(order), r.all_of(s.orders[: (at // size + 1 + more) * size]))
        for at, (order, _) in enumerate(s.orders)
    ]


def of_all_orders(s: Shop) -> r.Data:
    return [(id_and_amount(order), r.all_of(s.orders)) for order, _ in s.orders]


def frames_of_four(function: Any, oracle: Any, bound: Any) -> Case:
    return Case(
        lambda t: (
            t.orders.coalesce(1).sortWithinPartitions("id").mapInPandas(function, "id int, amount long")
        ),
        oracle,
        bound=bound,
        exact=False,
        conf={"spark.sql.execution.arrow.maxRecordsPerBatch": "4"},
    )


READING: dict[str, Case] = {
    "mapInPandas": frames_of_four(small, of_small, up_to_frame(4)),
    "mapInPandas, a frame behind": frames_of_four(
        small_so_far, lambda s: r.select(s.orders, id_and_amount), up_to_frame(4, more=1)
    ),
    "mapInPandas in many partitions": Case(
        lambda t: t.orders.repartition(4, "id").mapInPandas(small, "id int, amount long"),
        of_small,
        bound=of_all_orders,
        exact=False,
    ),
    "mapInPandas by batches without an end": Case(
        lambda t: t.orders.coalesce(1).mapInPandas(small, "id int, amount long"),
        of_small,
        bound=of_all_orders,
        exact=False,
        conf={"spark.sql.execution.arrow.maxRecordsPerBatch": "-1"},
    ),
    "mapInPandas, aggregated": Case(
        lambda t: t.orders.coalesce(1).mapInPandas(small, "id int, amount long").agg(F.count("*")),
        lambda s: [((len(of_small(s)),), r.all_of(of_small(s)))],
        bound=lambda s: [((len(of_small(s)),), r.all_of(s.orders))],
        exact=False,
    ),
    "mapInArrow": Case(
        lambda t: t.orders.coalesce(1).mapInArrow(batches_of_small, "id int, amount long"),
        of_small,
        bound=of_all_orders,
        exact=False,
        conf=SMALL_BATCHES,
    ),
}

CASES = {**PANDAS, **RANDOM, **READING}
if hasattr(GroupedData, "applyInArrow"):  # from PySpark 4.0 on
    CASES |= ARROW
if hasattr(
    getattr(pyspark.util, "PythonEvalType", None), "SQL_GROUPED_MAP_PANDAS_ITER_UDF"
):  # from PySpark 4.1 on
    CASES |= ITERATORS
CASES |= BOUNDS
