"""What `DataFrame.explain` shows is the plan without lineage; the DataFrame is followed all the same."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.spark.application import Application, part_rows

Run = Callable[..., tuple[Any, Application]]
MODES: list[dict[str, Any]] = [{}, *({"mode": mode} for mode in ("extended", "codegen", "cost", "formatted"))]
#: Numbers that Spark counts up: of columns, plans and generated classes.
_NUMBERS = re.compile(r"#\d+L?|plan_id=\d+|GeneratedIteratorForCodegenStage\d+|x\d+_\d+|@[0-9a-f]+")


def shown(frame: Any, **how: Any) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        frame.explain(**how)
    return _NUMBERS.sub("", output.getvalue())


def test_a_plan_is_shown_as_it_is_without_lineage(
    run: Run, run_plain: Callable[..., Any], tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "part-0.txt").write_text("".join(f"{i % 7} {i}\n" for i in range(50)))

    def job(context: Any) -> list[str]:
        spark = SparkSession(context)
        lines = spark.read.text(str(source))
        parts = F.split("value", " ")
        pairs = lines.select(parts[0].alias("key"), parts[1].cast("int").alias("number"))
        sums = pairs.where("number > 3").groupBy("key").sum("number")
        cached = pairs.where("number < 20").cache()
        joined = sums.join(cached, "key")
        spark.sql(f"CREATE TEMPORARY VIEW lines AS SELECT * FROM text.`{source}`")
        frames = [lines, sums, sums.join(pairs, "key"), spark.sql("SELECT count(*) FROM lines")]
        frames.append(spark.sql("SHOW TABLES"))
        plans = [shown(frame, **mode) for frame in frames for mode in MODES]
        # A cache shows the plan that fills it, with lineage: that one was made when the DataFrame was cached.
        plans.append(shown(joined).partition("InMemoryRelation")[0])
        joined.count()
        sums.write.csv(str(tmp_path / context.applicationId))
        return plans

    conf = {"spark_sql_maxMetadataStringLength": "10000"}
    plans, application = run(job, **conf)
    assert plans == run_plain(job, **conf)
    assert sorted(sink.name for sink in application.sinks()) == ["count", "csv"]
    for part, row, text in part_rows(tmp_path / application.application_id):
        key = int(text.split(",")[0])
        expected = {("part-0.txt", i) for i in range(4, 50) if i % 7 == key}
        assert application.sources_of(part, row) == expected


def test_a_plan_that_has_run_is_shown_as_it_ran(run: Run) -> None:
    def job(context: Any) -> str:
        frame = SparkSession(context).range(100).groupBy((F.col("id") % 3).alias("k")).count()
        frame.collect()
        return shown(frame)

    plan, application = run(job)
    assert "isFinalPlan=true" in plan
    assert "lineage_tap" in plan
    assert [sink.name for sink in application.sinks()] == ["collect"]


@pytest.mark.parametrize("wrong", [{"mode": "all"}, {"extended": 3}])
def test_a_wrong_mode_is_the_error_that_it_was(
    wrong: dict[str, Any], run: Run, run_plain: Callable[..., Any]
) -> None:
    def job(context: Any) -> str:
        with pytest.raises(Exception) as error:
            SparkSession(context).range(3).explain(**wrong)
        return f"{error.type}: {error.value}"

    assert run(job)[0] == run_plain(job)
