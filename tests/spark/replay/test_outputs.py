"""What a replay's program writes, reads back, collects and makes itself: all kinds of sinks and sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_agent.contract.row_sets import ranges_of
from tests.support.spark.replays import Replayed, replay, run_program, site_of

pytestmark = pytest.mark.thorough

CONF = {
    "spark.lineage.enabled": "false",
    "spark.lineage.kafka.bootstrap.servers": "127.0.0.1:1",
    "spark.lineage.delivery.timeout": "0",
}
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
os.chdir(folder)
spark = SparkSession.builder.master("local[2]").getOrCreate()
context = spark.sparkContext
context.setLogLevel("OFF")
numbers = context.parallelize(list(range(10)), 2)
ranged = context.parallelize(range(10), 2)
lines = context.textFile("in.txt", 1)
files = context.wholeTextFiles("texts", 1)

results = {
    "numbers": numbers.collect(),
    "ranged": ranged.map(lambda n: -n).collect(),
    "count": lines.count(),
    "first": lines.first(),
    "files": len(set(files.collect())),
    "sum": numbers.sum(),
    "top": numbers.top(2),
}
lines.map(str.upper).saveAsTextFile("out")
results["read back"] = sorted(context.textFile("out").collect())
results["a part"] = sorted(context.textFile(folder + "/out/part-*").collect())
results["by Spark"] = sorted(row.value for row in spark.read.text("out").collect())
numbers.saveAsPickleFile("pickled")
results["pickled"] = sorted(context.pickleFile("pickled").collect())
pairs = numbers.map(lambda n: (n, str(n)))
pairs.saveAsSequenceFile("sequence")
pairs.saveAsNewAPIHadoopDataset({
    "mapreduce.job.outputformat.class": "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",
    "mapreduce.output.fileoutputformat.outputdir": folder + "/dataset",
    "mapreduce.job.output.key.class": "org.apache.hadoop.io.IntWritable",
    "mapreduce.job.output.value.class": "org.apache.hadoop.io.Text",
})
frame = spark.createDataFrame([(1, "a"), (2, "b")], "n int, t string")
frame.write.mode("overwrite").csv("csv")
frame.write.csv("csv", "append")
frame.write.format("json").mode("overwrite").save(path=folder + "/json")
frame.write.mode("overwrite").option("path", folder + "/parquet").save()
results["csv"] = sorted(map(tuple, spark.read.csv("csv", schema="n int, t string").collect()))
results["parquet"] = sorted(map(tuple, spark.read.parquet("parquet").collect()))
results["json"] = spark.read.format("json").load("json").count()
print(json.dumps(results))
spark.stop()
"""


def listed(
    node: int, program: Path, text: str, name: str, positions: dict[int, list[int]], **more: Any
) -> Any:
    return {
        "node": node,
        "name": name,
        "call_site": site_of(program, text),
        "whole": False,
        "splits": [{"split": at, "positions": ranges_of(of)} for at, of in positions.items()],
        **more,
    }


@pytest.fixture(scope="module")
def ran(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Replayed]:
    folder, home = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("home")
    program = folder / "job.py"
    program.write_text(PROGRAM)
    (folder / "in.txt").write_text("a\nb\nc\nd\n")
    (folder / "texts").mkdir()
    for name in "xyz":
        (folder / "texts" / f"{name}.txt").write_text(f"text {name}")
    for name in ("out", "pickled", "csv", "parquet"):
        (folder / name).mkdir()
        (folder / name / "part-00000").write_text("of the original\n")
    sources = [
        listed(0, program, "list(range(10))", "parallelize", {0: [1, 3], 1: [4]}, partitions=2),
        # parallelize(range) is two RDDs, of which the second is the source
        listed(2, program, "parallelize(range(10)", "parallelize", {0: [0], 1: [2, 3]}, partitions=2),
        listed(3, program, '"in.txt"', "textFile", {0: [1, 2]}, partitions=1, texts={"0": ["b", "c"]}),
        listed(4, program, '"texts"', "wholeTextFiles", {0: [0, 2]}, partitions=1),
    ]
    replayed = replay([str(program), str(folder)], home / "r", "only", sources, CONF)
    assert replayed.process.returncode == 0, replayed.process.stderr
    return folder, replayed


def test_the_results_are_those_of_the_rows(ran: tuple[Path, Replayed]) -> None:
    _, replayed = ran
    results = json.loads(replayed.process.stdout.splitlines()[-1])
    assert results == {
        "numbers": [1, 3, 9],
        "ranged": [0, -7, -8],
        "count": 2,
        "first": "b",
        "files": 2,
        "sum": 13,
        "top": [9, 3],
        "read back": ["B", "C"],
        "a part": ["B", "C"],
        "by Spark": ["B", "C"],
        "pickled": [1, 3, 9],
        "csv": [[1, "a"], [1, "a"], [2, "b"], [2, "b"]],
        "parquet": [[1, "a"], [2, "b"]],
        "json": 2,
    }


def test_the_originals_stay(ran: tuple[Path, Replayed]) -> None:
    folder, replayed = ran
    for name in ("out", "pickled", "csv", "parquet"):
        assert [path.name for path in (folder / name).iterdir()] == ["part-00000"]
        assert (folder / name / "part-00000").read_text() == "of the original\n"
    to_of = {sink["path"]: sink["to"] for sink in replayed.report["sinks"]}
    assert not any((folder / name).exists() for name in ("json", "sequence", "dataset"))
    for name in ("out", "pickled", "csv", "parquet", "json", "sequence", "dataset"):
        assert any(Path(to_of[str(folder / name)]).iterdir()), name


def test_the_report_has_sinks_with_their_nodes_and_values(ran: tuple[Path, Replayed]) -> None:
    folder, replayed = ran
    assert len({sink["to"] for sink in replayed.report["sinks"] if sink["path"] == str(folder / "csv")}) == 1
    by_path = {sink["path"]: sink for sink in replayed.report["sinks"]}
    assert by_path[str(folder / "csv")]["format"] == "csv"
    assert all(sink["node"] is not None for sink in replayed.report["sinks"])
    values = {sink["name"]: sink["values"] for sink in replayed.report["sinks"] if sink.get("values")}
    assert values["count"] == [["int", "2"]]
    assert values["sum"] == [["int", "13"]]
    assert values["top"] == [["int", "9"], ["int", "3"]]


def test_the_report_says_how_sources_were_read(ran: tuple[Path, Replayed]) -> None:
    report = ran[1].report
    ways = {source["node"]: source["way"] for source in report["sources"]}
    assert [ways[node] for node in (0, 2, 3, 4)] == ["filter", "filter", "literal", "filter"]
    assert "whole" in ways.values()  # what was read back


def test_a_source_that_is_another_one_is_read_whole(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "import sys\nfrom pyspark import SparkContext\ncontext = SparkContext('local[2]', 'job')\n"
        "first = context.parallelize([1, 2, 3], 2)\n"
        "second = context.parallelize([4, 5], 3)\n"
        "print(first.collect(), second.collect())\n"
    )
    sources = [
        listed(0, program, "[1, 2, 3]", "textFile", {0: [0]}, partitions=2),
        listed(1, program, "[4, 5]", "parallelize", {0: [0]}, partitions=2),
        listed(9, program, "[1, 2, 3]", "parallelize", {0: [0]}, partitions=2),
    ]
    replayed = replay([str(program)], tmp_path / "r", "only", sources, CONF)
    assert replayed.process.stdout.splitlines()[-1] == "[1, 2, 3] [4, 5]"
    assert set(replayed.ways().values()) == {"whole"}
    whys = [source["why"] for source in replayed.report["sources"]]
    assert whys == [
        f"it was textFile at {program}:4 in the original",
        "it has 3 partitions here, and had 2 in the original",
    ]
    assert len(replayed.report["differences"]) == 2


@pytest.mark.parametrize("text", [None, "{}"])
def test_a_spec_that_cannot_be_read_ends_the_program_at_once(text: str | None, tmp_path: Path) -> None:
    program, spec = tmp_path / "job.py", tmp_path / "spec.json"
    program.write_text(
        "from pyspark import SparkContext\ntry:\n    SparkContext('local[2]', 'job')\n"
        "except Exception:\n    pass\nprint('went on')\n"
    )
    if text is not None:
        spec.write_text(text)
    ended = run_program([str(program)], {}, {"LINEAGE_REPLAY": str(spec)})
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "replay refused: " in ended.stderr.strip().splitlines()[-1]
    assert "Traceback" not in ended.stderr
