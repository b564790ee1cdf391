"""The agent's Java expressions in plans that are made by hand: every block says what brute force says."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from perf.delivery.brokers import closed_port
from spark_agent.contract.columns import encode_integers
from tests.support.spark.taps import PARTITIONS, TAP, Taps, attributes, check_tap, rows_by_id, said, task_rows

KEY = "xxhash64(k) & 9223372036854775807 as key"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2,3]").appName("taps")  # a task may fail twice
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.codegen.fallback": "false",  # generated code that does not compile fails the test
        "spark.sql.warehouse.dir": "/nowhere",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def taps(jar: Path, spark: SparkSession, kafka: Any) -> Taps:
    of_test = Taps(spark, kafka.bootstrap_servers)
    kafka.create_topic(of_test.topic, PARTITIONS)
    return of_test


@pytest.fixture(params=["generated", "interpreted"])
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """How Spark evaluates expressions."""
    if request.param == "interpreted":
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
        spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield request.param
    spark.conf.unset("spark.sql.codegen.wholeStage")
    spark.conf.unset("spark.sql.codegen.factoryMode")


def text_files(folder: Path, counts: list[int]) -> list[list[str]]:
    folder.mkdir()
    files = [[f"{name}-{line}" for line in range(count)] for name, count in enumerate(counts)]
    for name, lines in enumerate(files):
        (folder / f"f {name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return files


def parquet_files(folder: Path, counts: list[int]) -> None:
    folder.mkdir()
    for name, count in enumerate(counts):
        table = pa.table({"n": range(count), "file": [name] * count, "k": [n % 7 for n in range(count)]})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=50)


def test_rows_of_text_have_their_file_and_line_and_their_keys(taps: Taps, way: str, tmp_path: Path) -> None:
    files = text_files(tmp_path / "in", [30, 7, 1, 12])
    read = taps.with_ids(taps.spark.read.text(str(tmp_path / "in")), 1, "id")
    keyed = read.selectExpr("*", "substring(value, 3) as k").selectExpr("*", KEY)
    taps.tapped(keyed, {"id": 1}, "key").write.parquet(str(tmp_path / "out"))
    manifests = check_tap(taps, tmp_path / "out", {"id": 1}, "key")
    places = rows_by_id(manifests, 1)
    assert len(places) == sum(map(len, files))
    for rows in task_rows(tmp_path / "out").values():
        for row in rows:
            path, line = places[row["id"]]
            assert files[int(Path(path).stem[2:])][line] == row["value"]
    assert len({manifest["execution"] for manifest in manifests}) == 1


def test_rows_of_parquet_are_known_by_their_index_behind_a_pushed_filter(
    taps: Taps, way: str, tmp_path: Path
) -> None:
    parquet_files(tmp_path / "in", [200, 90, 160])
    rows = taps.spark.read.parquet(str(tmp_path / "in")).select("*", "_metadata.row_index")
    read = taps.with_ids(rows.where("n > 60 and n % 3 = 0"), 1, "id", "row_index").selectExpr("*", KEY)
    taps.tapped(read, {"id": 1}, "key").write.parquet(str(tmp_path / "out"))
    manifests = check_tap(taps, tmp_path / "out", {"id": 1}, "key")
    places = rows_by_id(manifests, 1)
    written = [row for rows in task_rows(tmp_path / "out").values() for row in rows]
    assert len(written) == sum(1 for count in (200, 90, 160) for n in range(count) if n > 60 and n % 3 == 0)
    for row in written:
        path, index = places[row["id"]]
        assert (int(Path(path).stem), index) == (row["file"], row["n"])
    assert any(manifest["parts"][0]["row"] > 0 for manifest in manifests if manifest["input"] == 1)


def test_ids_that_are_missing_are_left_out(taps: Taps, way: str, tmp_path: Path) -> None:
    left = taps.with_ids(taps.spark.range(0, 100, 1, 3), 1, "left").withColumnRenamed("id", "k")
    right = taps.with_ids(taps.spark.range(0, 200, 2, 2), 2, "right").withColumnRenamed("id", "k")
    joined = left.join(right, "k", "full").selectExpr("left", "right", KEY, "cast(null as long) as never")
    sources = {"left": 1, "right": 2, "never": 3}
    taps.tapped(joined, sources, "key").write.parquet(str(tmp_path / "out"))
    check_tap(taps, tmp_path / "out", sources, "key")


def test_an_output_has_the_ids_of_its_rows_and_no_keys(taps: Taps, tmp_path: Path) -> None:
    read = taps.with_ids(taps.spark.range(0, 10, 1, 2), 1, "id1")
    taps.tapped(read.where("id % 2 = 0"), {"id1": 1}).write.parquet(str(tmp_path / "out"))
    manifests = check_tap(taps, tmp_path / "out", {"id1": 1})
    assert [m["outputs"] for m in sorted(manifests, key=lambda m: m["split"]) if m["input"] == TAP] == [3, 2]


def test_a_task_that_opens_its_code_many_times_is_one_run(taps: Taps, way: str, tmp_path: Path) -> None:
    one = taps.with_ids(taps.spark.range(0, 1000, 1, 9), 1, "id1").selectExpr("id as k", "id1")
    two = one.selectExpr("k + 5 as k", "id1")
    tapped = taps.tapped(one.union(two).selectExpr("*", KEY), {"id1": 1}, "key").coalesce(2)
    tapped.write.parquet(str(tmp_path / "out"))
    manifests = check_tap(taps, tmp_path / "out", {"id1": 1}, "key")
    assert sum(manifest["input"] == TAP for manifest in manifests) == 2
    reads = {manifest["split"]: manifest["outputs"] for manifest in manifests if manifest["input"] == 1}
    assert sorted(reads) == list(range(9))
    assert sum(reads.values()) == 1000
    for rows in task_rows(tmp_path / "out").values():
        for row in rows:  # the number that the row had in its range, or 5 more
            split, position = row["id1"] >> 33, row["id1"] & (1 << 33) - 1
            assert row["k"] - (split * 1000 // 9 + position) in (0, 5)


def test_a_run_may_have_more_rows_than_a_block(taps: Taps, way: str, tmp_path: Path) -> None:
    read = taps.with_ids(taps.spark.range(0, 200_000, 1, 1), 1, "id1").withColumnRenamed("id", "k")
    some = read.selectExpr("if(k % 5 = 0, null, id1) as id1", "id1 as id2", "k % 1000 as k")
    taps.tapped(some.selectExpr("*", KEY), {"id1": 1, "id2": 2}, "key").write.parquet(str(tmp_path / "out"))
    manifests = check_tap(taps, tmp_path / "out", {"id1": 1, "id2": 2}, "key")
    assert next(m["outputs"] for m in manifests if m["input"] == TAP) == 1000


@pytest.mark.thorough
def test_a_task_with_very_many_keys_gives_some_of_them_two_codes(taps: Taps, tmp_path: Path) -> None:
    million = 1 << 20
    read = taps.with_ids(taps.spark.range(0, million + 5000, 1, 1), 1, "id1")
    keyed = read.selectExpr("id1", f"id % {million} as k").selectExpr("id1", KEY)
    taps.tapped(keyed, {"id1": 1}, "key").write.parquet(str(tmp_path / "out"))
    (run,) = (m for m in check_tap(taps, tmp_path / "out", {"id1": 1}, "key") if m["input"] == TAP)
    assert run["outputs"] == million + 5000


def test_an_attempt_that_failed_hands_in_no_manifest(taps: Taps, tmp_path: Path) -> None:
    def fail_first(number):  # type: ignore[no-untyped-def] # PySpark would read the hints as types of Spark
        task = TaskContext.get()
        assert task is not None
        if task.attemptNumber() == 0 and task.partitionId() == 1 and number % 1000 == 900:
            raise ValueError("as it should")
        return number

    read = taps.with_ids(taps.spark.range(0, 2000, 1, 2), 1, "id1").withColumnRenamed("id", "k")
    tapped = taps.tapped(read.selectExpr("*", KEY), {"id1": 1}, "key")
    tapped.withColumn("same", F.udf(fail_first, "long")("k")).write.parquet(str(tmp_path / "out"))
    manifests = check_tap(taps, tmp_path / "out", {"id1": 1}, "key")
    assert sorted((m["input"], m["split"]) for m in manifests) == [(1, 0), (1, 1), (TAP, 0), (TAP, 1)]


def test_a_job_without_a_broker_goes_on_and_counts(spark: SparkSession, taps: Taps, tmp_path: Path) -> None:
    with closed_port() as closed:
        alone = Taps(spark, closed, patience_s=1.0)
        read = alone.with_ids(spark.range(0, 300_000, 1, 6), 1, "id1").withColumnRenamed("id", "k")
        begin = time.monotonic()
        alone.tapped(read.selectExpr("*", KEY), {"id1": 1}, "key").write.parquet(str(tmp_path / "out"))
        assert time.monotonic() - begin < 20
    assert sum(map(len, task_rows(tmp_path / "out").values())) == 300_000
    runs = [manifest for manifest in alone.manifests() if manifest["input"] == TAP]
    assert len(runs) == 6
    for run in runs:
        assert run["dropped"] == run["blocks"] > 0
        assert closed in run["problem"]
    assert 900 < sum(run["waited_ms"] for run in runs) < 4000


@pytest.mark.thorough
def test_a_fault_while_a_task_reports_its_rows_is_a_hole_and_fails_nothing(
    spark: SparkSession, kafka: Any
) -> None:
    taps = Taps(spark, kafka.bootstrap_servers, patience_s=31.0)  # a sender that no other test has
    loader = taps.java.plan_builder.getClass().getClassLoader()
    field = loader.loadClass("lineagemaster.delivery.Sender").getDeclaredField("SENDERS")
    field.setAccessible(True)
    senders = field.get(None)
    before = set(senders.keySet())
    read = taps.with_ids(spark.range(0, 10, 1, 2), 1, "id1")
    tapped = taps.tapped(read, {"id1": 1})
    assert tapped.count() == 10
    (own,) = set(senders.keySet()) - before
    sender = senders.put(own, "no sender")
    try:
        taps.manifests()
        assert sorted(row.id for row in tapped.collect()) == list(range(10))
    finally:
        senders.put(own, sender)
    lines = taps.manifests()
    reasons = [line["reason"] for line in lines if line["type"] == "gap"]
    assert len(reasons) == 2  # of each task
    assert all(reason.startswith("what a task counted of a DataFrame's rows is lost (") for reason in reasons)
    assert not [line for line in lines if line["type"] == "run" and line["input"] == TAP]


def test_exchanges_with_the_same_taps_are_read_once(taps: Taps) -> None:
    read = taps.with_ids(taps.spark.range(0, 100, 1, 2), 1, "id1").withColumnRenamed("id", "k")
    counts = taps.tapped(read.selectExpr("*", KEY), {"id1": 1}, "key").groupBy(F.expr("k % 10")).count()
    assert counts.union(counts).count() == 20
    assert sum(manifest["input"] == TAP for manifest in taps.manifests()) == 2


def test_rows_of_a_local_table_are_tapped_in_a_task(taps: Taps, tmp_path: Path) -> None:
    table = taps.spark.sql("select * from values (1), (2), (3) as t(k)")
    read = taps.with_ids(table, 1, "id1").selectExpr("*", KEY)
    taps.tapped(read, {"id1": 1}, "key").where("k > 1").write.parquet(str(tmp_path / "out"))
    runs = [manifest for manifest in taps.manifests() if manifest["input"] == TAP]
    assert sum(run["inputs"] for run in runs) == 3


@given(
    columns=st.lists(
        st.one_of(
            st.lists(st.integers(0, 1 << 63), max_size=70).map(lambda v: [min(x, (1 << 63) - 1) for x in v]),
            st.lists(st.integers(0, 70_000), max_size=70).map(sorted),
            st.lists(st.integers(0, 300), max_size=70),
        ),
        min_size=1,
        max_size=2,
    ),
    seq=st.integers(0, 1 << 31),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_block_is_written_as_python_writes_it(taps: Taps, columns: list[list[int]], seq: int) -> None:
    java = taps.spark._jvm
    assert java is not None
    block = java.lineagemaster.delivery.FlowBlock(TAP, "pairs").inputs(seq).outputs(2 * seq)
    for name, values in zip(("out", "in"), columns, strict=False):
        array = taps.spark.sparkContext._gateway.new_array(java.long, len(values))  # type: ignore[union-attr]
        packed = struct.pack(f">{len(values)}q", *values)
        java.java.nio.ByteBuffer.wrap(packed).asLongBuffer().get(array)
        block = block.column(name, array, len(values))
    message = block.encoded('an "application" \u00e9', (1 << 53) - 1, 7, min(seq, (1 << 31) - 1))
    end = 10 + int.from_bytes(message[6:10], "little")
    head, place = json.loads(message[10:end]), end
    assert head["application_id"] == 'an "application" \u00e9'
    assert (head["base_in"], head["base_out"], head["run"]) == (seq, 2 * seq, (1 << 53) - 1)
    for described, values in zip(head["columns"], columns, strict=True):
        payload, width, is_delta = encode_integers(values)
        assert message[place : place + len(payload)] == payload
        assert described.items() >= {"count": len(values), "width": width, "delta": is_delta}.items()
        place += len(payload)
    assert place == len(message)


def test_the_planner_asks_python_and_survives_its_faults(taps: Taps, spark: SparkSession) -> None:
    session = spark.newSession()
    asked: list[str] = []

    def rewrite(plan: Any, entry: str) -> Any:
        asked.append(entry)
        session.range(3).count()  # planned by this very thread: not asked about
        if "doomed" in attributes(plan):
            raise ValueError("cannot")
        if "empty" not in attributes(plan):
            return None
        catalyst = spark._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
        boolean = spark._jvm.org.apache.spark.sql.types.DataTypes.BooleanType  # type: ignore[union-attr]
        return catalyst.plans.logical.Filter(catalyst.expressions.Literal(False, boolean), plan)

    strategy = taps.java.strategy(rewrite)
    taps.java.install(session._jsparkSession, strategy)
    assert len(session.range(10).collect()) == 10
    (entry,) = asked
    assert re.fullmatch(r"Dataset\.collectToPython@\d+", entry), "the method, and the thread that waits"
    assert len(session.range(10).selectExpr("id as empty").collect()) == 0
    assert strategy.takeProblem() == ""
    assert len(session.range(10).selectExpr("id as doomed").collect()) == 10
    assert "cannot" in strategy.takeProblem()
    assert strategy.takeProblem() == ""


def test_the_end_of_a_query_with_outputs_comes_behind_its_manifests(
    taps: Taps, spark: SparkSession, tmp_path: Path
) -> None:
    listener = taps.java.ends()
    spark._jsparkSession.listenerManager().register(listener)
    try:
        read = taps.with_ids(spark.range(0, 10, 1, 2), 1, "id1")
        spark.range(5).count()
        taps.tapped(read, {"id1": 1}).write.parquet(str(tmp_path / "out"))
        with pytest.raises(Exception, match="as it should"):
            taps.tapped(read, {"id1": 1}).selectExpr("raise_error('as it should')").collect()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
        kinds = [(m["type"], m.get("nodes"), m.get("failed"), m.get("name")) for m in taps.manifests()]
        assert [kind[0] for kind in kinds] == ["run"] * 4 + ["end"] * 2
        assert kinds[4:] == [("end", [TAP], False, "command"), ("end", [TAP], True, "collectToPython")]
    finally:
        spark._jsparkSession.listenerManager().unregister(listener)


def test_an_output_tells_the_folder_and_bucket_of_each_row(taps: Taps, way: str, tmp_path: Path) -> None:
    rows = taps.spark.range(0, 150_000, 1, 1).selectExpr(
        "id", "id div 20001 as p", "int(id div 7001 % 3) as b"
    )
    read = taps.with_ids(rows.selectExpr("*", "if(p = 3, null, concat('a/', p)) as name"), 1, "id1")
    taps.placed(
        read.selectExpr("*", "xxhash64(p, b) & 9223372036854775807 as place"), {"id1": 1}
    ).write.parquet(str(tmp_path / "out"))
    (run,) = (m for m in check_tap(taps, tmp_path / "out", {"id1": 1}) if m["input"] == TAP)
    of, firsts, codes = run["places"]["of"], run["places"]["runs"][::2], run["places"]["runs"][1::2]
    places = [
        tuple(of[code])
        for first, end, code in zip(firsts, [*firsts[1:], run["inputs"]], codes, strict=True)
        for _ in range(first, end)
    ]
    ((_, written),) = task_rows(tmp_path / "out").items()
    assert places == [
        (f"name=a%2F{row['p']}" if row["p"] != 3 else "name=__HIVE_DEFAULT_PARTITION__", row["b"])
        for row in written
    ]


def test_what_was_done_with_a_row_stays_with_it_where_rows_go_into_files_by_turns(
    taps: Taps, tmp_path: Path
) -> None:
    rows = taps.spark.range(0, 2_000, 1, 1).selectExpr(
        "id % 5 as place", "concat('p', id % 5) as name", "1 as b", "if(id % 3 = 0, 2L, 4L) as done"
    )
    placed = taps.placed(taps.with_ids(rows, 1, "id1"), {"id1": 1}, operation="done")
    placed.write.parquet(str(tmp_path / "out"))
    [run] = (manifest for manifest in taps.manifests() if manifest["input"] == TAP)
    contents = said(run, taps.blocks()[run["run"]])
    updated = {contents.ids[1][row] for row, operation in contents.operations.items() if operation == 2}
    assert len(run["places"]["of"]) == 5
    assert contents.ids[1] != sorted(contents.ids[1])  # they are in the order of their files
    assert updated == set(range(0, 2_000, 3))
    assert set(contents.operations.values()) == {2}


@pytest.mark.parametrize(
    ("count", "writers", "is_told"), [(3000, 0, True), (3001, 0, False), (3, 4, True), (4, 3, False)]
)
def test_places_are_told_whole_or_not_at_all(
    taps: Taps, tmp_path: Path, *, count: int, writers: int, is_told: bool
) -> None:
    read = taps.with_ids(
        taps.spark.range(0, count, 1, 1).selectExpr("id as place", "'x' as name", "1 as b"), 1, "id1"
    )
    taps.placed(read, {"id1": 1}, writers=writers).write.parquet(str(tmp_path / "out"))
    (run,) = (m for m in check_tap(taps, tmp_path / "out", {"id1": 1}) if m["input"] == TAP)
    assert (run["places"] is not None) == is_told


@pytest.mark.parametrize("at", [0, 7, 8, 9, None])
def test_the_end_of_a_line_in_a_text_is_noticed(taps: Taps, way: str, at: int | None, tmp_path: Path) -> None:
    text = "é2345678 1" if at is None else "é23456789a"[:at] + ("\n" if at % 2 else "\r") + "b"
    rows = taps.spark.createDataFrame([("plain",), (None,), (text,), ("",)], "name string").coalesce(1)
    placed = rows.selectExpr("name", "1L as place", "1 as b")
    taps.placed(taps.with_ids(placed, 1, "id1"), {"id1": 1}).write.parquet(str(tmp_path / "out"))
    (run,) = (m for m in taps.manifests() if m["input"] == TAP)
    assert run.get("lines", True) == (at is None)
