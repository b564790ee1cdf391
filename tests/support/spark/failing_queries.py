"""Queries in which one planted row raises, and what must be known of it.

The input has rows (n, k, t) with n from 0 to ROWS - 1 in files of ROWS // FILES rows; row BAD is the planted
one. Whatever a query makes of rows, n stays the number of the row that it comes from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

ROWS, FILES, BAD = 90, 3, 37
SCHEMA = "n int, k int, t string"

#: Expressions that raise for the planted row alone.
DIVIDES = f"100 div (n - {BAD})"
CASTS = f"cast(if(n = {BAD}, 'x', t) as int)"
RAISES = f"if(n = {BAD}, raise_error('planted'), 0)"
INDEXES = f"array(1, 2)[if(n = {BAD}, 5, 0)]"
EXPRESSIONS = (DIVIDES, CASTS, RAISES, INDEXES)


def bad(n: int) -> int:
    if n == BAD:
        raise ValueError(f"planted {n}")
    return n


@dataclass(frozen=True)
class Inputs:
    """The same rows as files of several formats, and the folder for what queries write."""

    spark: SparkSession
    folder: Path

    def read(self, format: str) -> DataFrame:
        reader = self.spark.read.schema(SCHEMA)
        return reader.format(format).load(str(self.folder / format))

    @property
    def csv(self) -> DataFrame:
        return self.read("csv")


def write_inputs(folder: Path) -> None:
    """Without Spark, so that nothing of it is in the lineage."""
    import pyarrow as pa
    import pyarrow.orc as orc
    import pyarrow.parquet as parquet

    for format in ("csv", "json", "text", "parquet", "orc"):
        (folder / format).mkdir()
    for at in range(FILES):
        rows = [(n, n % 4, str(n * 7 % 10)) for n in range(at * ROWS // FILES, (at + 1) * ROWS // FILES)]
        lines = {
            "csv": "".join(f"{n},{k},{t}\n" for n, k, t in rows),
            "json": "".join(f'{{"n": {n}, "k": {k}, "t": "{t}"}}\n' for n, k, t in rows),
            "text": "".join(f"{n}\n" for n, _, _ in rows),
        }
        for format, text in lines.items():
            (folder / format / f"part-{at}.{format}").write_text(text)
        ints = [pa.array([row[place] for row in rows], pa.int32()) for place in (0, 1)]
        table = pa.table({"n": ints[0], "k": ints[1], "t": [row[2] for row in rows]})
        parquet.write_table(table, folder / "parquet" / f"part-{at}.parquet")
        orc.write_table(table, folder / "orc" / f"part-{at}.orc")


@dataclass(frozen=True)
class Failing:
    """A query that fails. `exact`: is the planted row named as the only one; None: either.

    `is_known`: are input rows named at all. If not, the row was no record yet, or is not one of a file.
    """

    run: Callable[[Inputs], Any]
    exact: bool | None = True
    is_known: bool = True
    error: str = ""
    conf: dict[str, str] = field(default_factory=dict)


def selecting(format: str, expression: str, **fields: Any) -> Failing:
    return Failing(
        lambda inputs: inputs.read(format).selectExpr("*", f"{expression} as q").collect(), **fields
    )


def udf(inputs: Inputs, frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.withColumn("q", F.udf(lambda n: bad(n), "int")("n"))


def with_udf(inputs: Inputs) -> DataFrame:
    """With a function of Python that does not fail."""
    return inputs.csv.withColumn("k", _same()("k"))


def pandas_udf(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.withColumn("q", F.pandas_udf(lambda ns: ns.map(bad), "int")("n"))  # type: ignore[call-overload]


def in_pandas(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        part["n"].map(bad)
        yield part


def of_group(rows: Any) -> Any:
    rows["n"].map(bad)
    return rows


def cached(inputs: Inputs) -> Any:
    frame = inputs.csv.cache()
    try:
        frame.selectExpr(f"{DIVIDES} as q").collect()
    finally:
        frame.unpersist()


def malformed(inputs: Inputs) -> Any:
    path = inputs.folder / "malformed.csv"
    path.write_text("".join(f"{'x' if n == BAD else n},1,t\n" for n in range(ROWS)))
    inputs.spark.read.schema(SCHEMA).option("mode", "FAILFAST").csv(str(path)).collect()


_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
#: Does a worker say on which row a function of Python has failed? Older ones may.
HAS_CALLS = True if _VERSION >= (4, 3) else None

#: name -> query. An odd number of rows of each input may be read before the planted one.
CASES: dict[str, Failing] = {
    "division": selecting("csv", DIVIDES, error="SparkArithmeticException"),
    "behind a shuffle": Failing(
        lambda inputs: inputs.csv.repartition(3).selectExpr(f"{DIVIDES} as q").collect(), False
    ),
    "behind a sort": Failing(
        lambda inputs: inputs.csv.sortWithinPartitions("t").selectExpr("t", f"{DIVIDES} as q").collect(), None
    ),
    "cast in a filter": Failing(lambda inputs: inputs.read("json").where(f"{CASTS} >= 0").collect()),
    "text": Failing(
        lambda inputs: inputs.spark.read.text(str(inputs.folder / "text")).selectExpr(
            f"cast(if(value = '{BAD}', 'x', value) as int) as q"
        ).collect()
    ),
    "udf": Failing(
        lambda inputs: udf(inputs, inputs.csv).collect(),
        HAS_CALLS,
        error="ValueError",
        conf={"spark.sql.execution.pythonUDF.arrow.enabled": "false"},
    ),
    "udf with Arrow": Failing(
        lambda inputs: udf(inputs, inputs.csv).collect(),
        HAS_CALLS,
        error="ValueError",
        conf={"spark.sql.execution.pythonUDF.arrow.enabled": "true"},
    ),
    "parquet": selecting("parquet", CASTS),
    "orc": selecting("orc", RAISES),
    "filter of parquet": Failing(
        lambda inputs: inputs.read("parquet").where(f"{DIVIDES} > -1000").collect(), False, False
    ),
    "simple filter of parquet": Failing(
        lambda inputs: inputs.read("parquet").where("n > 7").selectExpr(f"{DIVIDES} as q").collect()
    ),
    "without generated code": selecting("csv", INDEXES, conf={"spark.sql.codegen.wholeStage": "false"}),
    "interpreted": selecting(
        "csv",
        DIVIDES,
        conf={"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    ),
    "exploded": Failing(
        lambda inputs: inputs.csv.selectExpr("n", "explode(array(1, 2, 3)) as e")
        .selectExpr(f"e + {RAISES} as q").collect()
    ),
    "before an aggregate": Failing(
        lambda inputs: inputs.csv.selectExpr("k", f"{DIVIDES} as q").groupBy("k").sum("q").collect()
    ),
    "before a sort": Failing(
        lambda inputs: inputs.csv.selectExpr("t", f"{DIVIDES} as q").sortWithinPartitions("t").collect(), None
    ),
    "written": Failing(
        lambda inputs: inputs.csv.selectExpr(f"{DIVIDES} as q").write.parquet(str(inputs.folder / "out"))
    ),
    "toPandas": Failing(lambda inputs: inputs.csv.selectExpr(f"{DIVIDES} as q").toPandas()),
    "coalesced": Failing(lambda inputs: inputs.csv.coalesce(1).selectExpr(f"{DIVIDES} as q").collect()),
    "union": Failing(
        lambda inputs: inputs.csv.union(inputs.read("json").where(f"n <> {BAD}"))
        .selectExpr(f"{DIVIDES} as q").collect()
    ),
    "limited": Failing(lambda inputs: inputs.csv.selectExpr(f"{DIVIDES} as q").limit(80).collect()),
    "broadcast join": Failing(
        lambda inputs: inputs.csv.join(inputs.spark.range(4).hint("broadcast"), _expr("k = 1"))
        .selectExpr(f"id + {DIVIDES} as q").collect(),
        False,
    ),
    "range": Failing(
        lambda inputs: inputs.spark.range(0, ROWS, 1, 3).selectExpr(f"100 div (id - {BAD}) as q").collect(),
        is_known=False,
    ),
    "an RDD made it": Failing(
        lambda inputs: inputs.spark.createDataFrame(
            inputs.spark.sparkContext.textFile(str(inputs.folder / "csv"), 3).map(
                lambda line: (int(line.split(",")[0]),)
            ),
            "n int",
        ).selectExpr(f"{DIVIDES} as q").collect()
    ),
    "an RDD made of it": Failing(
        lambda inputs: inputs.csv.rdd.map(lambda row: bad(row.n)).collect(), error="ValueError"
    ),
    "pandas_udf": Failing(lambda inputs: pandas_udf(inputs.csv).collect(), False, error="ValueError"),
    "udf before a group": Failing(
        lambda inputs: udf(inputs, inputs.csv).groupBy("k").sum("q").collect(),
        HAS_CALLS,
        conf={"spark.sql.execution.pythonUDF.arrow.enabled": "false"},
    ),
    "udf in small batches": Failing(
        lambda inputs: udf(inputs, inputs.csv).collect(),
        HAS_CALLS,
        conf={
            "spark.sql.execution.pythonUDF.arrow.enabled": "false",
            "spark.sql.execution.python.udf.maxRecordsPerBatch": "4",
        },
    ),
    "udf before an aggregate": Failing(
        lambda inputs: udf(inputs, inputs.csv.where("k <> 3")).groupBy("k").sum("q").collect(), False
    ),
    "mapInPandas": Failing(
        lambda inputs: inputs.csv.mapInPandas(in_pandas, SCHEMA).collect(), False, error="ValueError"
    ),
    "applyInPandas": Failing(
        lambda inputs: inputs.csv.groupBy("k").applyInPandas(of_group, SCHEMA).collect(), False
    ),
    "cached": Failing(cached, False),
    "udf behind a join": Failing(
        lambda inputs: udf(
            inputs, inputs.csv.join(inputs.spark.range(4).hint("broadcast"), _expr("k = id"))
        ).collect(),
        False,
    ),
    "sort behind a union": Failing(
        lambda inputs: inputs.csv.where(f"n <> {BAD}").union(inputs.csv.repartition(2)).coalesce(1)
        .sortWithinPartitions("t").selectExpr("t", f"{DIVIDES} as q").collect(),
        False,
    ),
    "malformed": Failing(malformed, False, False),
    "an RDD made of a udf": Failing(
        lambda inputs: with_udf(inputs).rdd.map(lambda row: bad(row.n)).collect(), error="ValueError"
    ),
    "a udf of an RDD made of it": Failing(
        lambda inputs: inputs.spark.createDataFrame(
            inputs.csv.rdd.map(lambda row: (bad(row.n), row.k)), "n int, k int"
        ).withColumn("k", _same()("k")).collect(),
        error="ValueError",
    ),
    "a query of an RDD of a query": Failing(
        lambda inputs: inputs.spark.createDataFrame(
            with_udf(inputs).rdd.map(lambda row: (bad(row.n),)), "n int"
        ).rdd.map(tuple).collect(),
        error="ValueError",
    ),
}  # fmt: skip


# -- random queries ---------------------------------------------------------------------------------------

Frame = DataFrame


def _kept(frame: Frame) -> Frame:
    return frame.selectExpr("n", "k", "t")


#: name -> what a step makes of rows (n, k, t). Each row stays one of its n.
STEPS: dict[str, Callable[[Inputs, Frame], Frame]] = {
    "where": lambda _, frame: frame.where(f"k <> 3 or n = {BAD}"),
    "select": lambda _, frame: frame.selectExpr("n", "k + 1 as k", "t"),
    "explode": lambda _, frame: frame.selectExpr("n", "k", "explode(array(t, t)) as t"),
    "repartition": lambda _, frame: frame.repartition(3, "t"),
    "coalesce": lambda _, frame: frame.coalesce(1),
    "sort": lambda _, frame: frame.sortWithinPartitions("t", "n"),
    "order": lambda _, frame: frame.orderBy("k", "n"),
    "distinct": lambda _, frame: frame.distinct(),
    "group": lambda _, frame: frame.groupBy("n").agg({"k": "max", "t": "max"}).toDF("n", "k", "t"),
    "window": lambda _, frame: _kept(
        frame.selectExpr("*", "row_number() over (partition by k order by n, t) as r").where("r > 0")
    ),
    "broadcast": lambda inputs, frame: _kept(
        frame.join(inputs.spark.range(8).hint("broadcast").toDF("j"), _expr("k % 8 = j"))
    ),
    "merge": lambda inputs, frame: _kept(
        frame.join(inputs.spark.range(8).hint("merge").toDF("j"), _expr("k % 8 = j"))
    ),
    "union": lambda inputs, frame: frame.union(inputs.read("orc").where(f"n < 9 and n <> {BAD}")),
    "udf": lambda inputs, frame: frame.withColumn("k", _same()("k")),
    "limit": lambda _, frame: frame.limit(10_000),
    "cache": lambda _, frame: frame.cache(),
}


def _expr(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def _same() -> Any:
    from pyspark.sql import functions as F

    return F.udf(lambda k: k, "int")


def _raising(chance: random.Random) -> Callable[[Inputs, Frame], Frame]:
    expression = chance.choice(EXPRESSIONS)
    return chance.choice(
        (
            lambda _, frame: frame.selectExpr("n", f"k + 0 * {expression} as k", "t"),
            lambda _, frame: frame.selectExpr("n", f"k + 0 * {expression} as k", "t"),
            lambda _, frame: frame.where(f"{expression} >= -1000"),
            lambda inputs, frame: udf(inputs, frame).selectExpr("n", "k + 0 * q as k", "t"),
            lambda _, frame: pandas_udf(frame).selectExpr("n", "k + 0 * q as k", "t"),
        )
    )


def random_query(inputs: Inputs, seed: int) -> Any:
    """Rows of a file go through some steps, one of which raises for the planted row."""
    chance = random.Random(seed)
    frame = inputs.read(chance.choice(("csv", "csv", "json", "parquet", "orc")))
    steps = [STEPS[chance.choice(list(STEPS))] for _ in range(chance.randint(0, 4))]
    steps.insert(chance.randint(0, len(steps)), _raising(chance))
    for step in steps:
        frame = step(inputs, frame)
    if chance.random() < 0.3:
        return frame.groupBy("t").agg({"k": "sum"}).collect()
    if chance.random() < 0.3:
        return frame.write.mode("overwrite").parquet(str(inputs.folder / f"out-{seed}"))
    return frame.collect()
