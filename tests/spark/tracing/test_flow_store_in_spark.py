from __future__ import annotations

from pathlib import Path

import duckdb
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.store.maintenance import Maintenance
from lineage_service.store.tables import TABLES
from spark_agent import contract
from tests.support.flow_store_suite import events, flows, rows
from tests.support.lineage_messages import APP, block, event


def test_spark_and_duckdb_read_the_tables_fresh_and_compacted(tmp_path: Path) -> None:
    store = DeltaFlowStore(tmp_path)
    texts = {"text": [("str", "naïve"), ("int", "1")]}
    spans = {"count": [2], "in": [3], "step": [1], "run": [77]}
    for at in range(3):
        store.write_flows(
            flows(
                block(1, at),
                block(2, at, contract.SPANS, spans, base_out=2 * at),
                block(7, at, contract.KEYS, texts, base_out=2 * at),
                block(8, at, contract.WINNERS, {"out": [2 * at], "in": [3]}),
                first=3 * at,
            )
        )
        store.write_events(events(event(contract.LINK, time=at), first=at))
    conf = SparkConf().setMaster("local[1]").set("spark.ui.enabled", "false")
    spark = SparkSession(SparkContext(conf=conf))
    try:
        for files in (3, 1):
            for table in TABLES:
                paths = store.files(table, APP)
                assert len(paths) == files
                # The folder's name says which application it is, as in every table that is partitioned.
                read = spark.read.option("basePath", str(tmp_path / table)).parquet(*paths)
                by_spark = [row.asDict() for row in read.select(TABLES[table].names).collect()]
                query = f"SELECT * FROM read_parquet({paths!r}, hive_partitioning = true)"
                by_duckdb = duckdb.sql(query).to_arrow_table().select(TABLES[table].names).to_pylist()
                expected = rows(store, table)
                assert sorted(by_spark, key=repr) == expected
                assert sorted(by_duckdb, key=repr) == expected
            Maintenance(store).compact(APP)
    finally:
        spark.stop()
