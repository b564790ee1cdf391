"""The Java expressions on executors that are processes of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.spark.taps import PARTITIONS, TAP, Taps, check_tap

# Two JVMs start beside the driver's.
pytestmark = pytest.mark.timeout(1800)


@pytest.mark.thorough
@pytest.mark.usefixtures("jar")
def test_executors_get_the_jar_from_the_driver(kafka: Any, tmp_path: Path) -> None:
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("taps")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    try:
        spark.sparkContext.setLogLevel("OFF")
        spark.range(4).repartition(2).count()  # executors that run before the jar is there
        taps = Taps(spark, kafka.bootstrap_servers)
        kafka.create_topic(taps.topic, PARTITIONS)
        read = taps.with_ids(spark.range(0, 1000, 1, 4), 1, "id1").withColumnRenamed("id", "k")
        keyed = read.selectExpr("*", "xxhash64(k % 10) & 9223372036854775807 as key")
        taps.tapped(keyed, {"id1": 1}, "key").write.parquet(str(tmp_path / "out"))
        manifests = check_tap(taps, tmp_path / "out", {"id1": 1}, "key")
        assert sum(manifest["input"] == TAP for manifest in manifests) == 4
    finally:
        spark.stop()
