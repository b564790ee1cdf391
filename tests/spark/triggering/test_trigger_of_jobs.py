"""`lineage trigger` before real jobs: what the agent says of them is what the decision rests on."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.cli import main
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.certain import file_looks
from lineage_service.triggering.certain.executions import executions_of
from lineage_service.triggering.waves.wave_history import job_key
from lineage_service.triggering.weighing.kept_elements import KeptPairs
from spark_agent import contract
from tests.support.spark.application import Application

JOB = """
import json
import os
import shutil

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import totals

context = SparkContext(conf=SparkConf().setAll(json.loads(os.environ["JOB_CONF"]).items()))
context.setLogLevel("OFF")
open("application", "w").write(context.applicationId)
shutil.rmtree("out", ignore_errors=True)
lines = context.textFile("in/*.txt", 2)
lines.map(totals.pair).reduceByKey(lambda a, b: a + b, 1).map(str).saveAsTextFile("out")
context.stop()
"""
TOTALS = "def pair(line):\n    name, number = line.split()\n    return name, int(number)\n"

FRAME_JOB = """
import json
import os

from pyspark.sql import SparkSession

builder = SparkSession.builder
for name, value in json.loads(os.environ["JOB_CONF"]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
sales = spark.read.parquet("sales").where("day > 1")
sales.groupBy("town").count().coalesce(1).write.mode("overwrite").parquet("out")
open("application", "w").write(spark.sparkContext.applicationId)
spark.stop()
"""


class Workshop:
    """A folder in which a job runs, with a flow store of its own."""

    def __init__(self, folder: Path, kafka: Any, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.store = folder, DeltaFlowStore(folder / "home" / "flows")
        prefix = uuid.uuid4().hex[:10]
        topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
        for topic in topics.values():
            kafka.create_topic(topic)
        conf = {
            "spark.master": "local[1]",
            "spark.app.name": "Takings",
            "spark.ui.enabled": "false",
            "spark.lineage.enabled": "true",
            "spark.lineage.job": "takings",
            "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
            "spark.lineage.topic.node": topics["node"],
            "spark.lineage.topic.flow": topics["flow"],
            "spark.lineage.delivery.timeout": "60",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        patch.chdir(folder)
        for name, value in {
            "JOB_CONF": json.dumps(conf),
            "LINEAGE_HOME": str(folder / "home"),
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "LINEAGE_NODE_TOPIC": topics["node"],
            "LINEAGE_FLOW_TOPIC": topics["flow"],
            "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
            "LINEAGE_CONSUMER_GROUP": prefix,
            "LINEAGE_METRICS": "false",
        }.items():
            patch.setenv(name, value)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_readings(self, name: str, rows: list[tuple[str, str, float]]) -> None:
        """A file of a detector, a region and a number in each row."""
        columns = zip(("detector", "region", "reading"), zip(*rows, strict=True), strict=True)
        path = self.folder / "readings" / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({name: list(values) for name, values in columns}), path)

    def trigger(self, *arguments: str) -> int:
        return main.main(["trigger", "takings", *arguments])

    def forget(self) -> int:
        return main.main(["trigger", "forget", "takings"])

    def run(self, *flags: str) -> str:
        """The job, behind `lineage trigger`; its application, which is stored then."""
        (self.folder / "application").unlink(missing_ok=True)
        assert self.trigger(*flags, "--", sys.executable, "job.py") == 0
        application_id = (self.folder / "application").read_text()
        assert main.main(["consume", "--until-complete", application_id]) == 0
        return application_id


@pytest.fixture
def workshop(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return Workshop(tmp_path, kafka, monkeypatch)


def test_a_job_is_skipped_until_an_input_or_its_code_changes(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.write("job.py", JOB)
    module = workshop.write("totals.py", TOTALS)
    first = workshop.write("in/a.txt", "x 1\ny 2\n")
    application_id = workshop.run("--wave", "w1")
    [execution] = executions_of(workshop.store, "takings", 2, 0)
    assert (execution.application_id, execution.wave) == (application_id, "w1")
    assert [Path(path).name for path in execution.code_files] == ["job.py", "totals.py"]
    assert workshop.trigger("--wave", "w2") == 99, capsys.readouterr().out
    assert workshop.trigger("--wave", "w2b", "--", sys.executable, "job.py") == 0
    assert (workshop.folder / "application").read_text() == application_id  # it did not run
    new = workshop.write("in/b.txt", "x 4\n")
    assert workshop.trigger("--wave", "w3") == 0
    assert str(new) in capsys.readouterr().out
    new.unlink()
    workshop.write("in/c.csv", "not for this pattern\n")
    assert workshop.trigger("--wave", "w4") == 99
    module.write_text(TOTALS + "# another way\n")
    assert workshop.trigger("--wave", "w5") == 0
    assert "code" in capsys.readouterr().out
    module.write_text(TOTALS)
    assert workshop.trigger("--wave", "w6") == 99
    os.utime(first)
    assert workshop.trigger("--wave", "w7") == 0
    assert workshop.trigger("--wave", "w2") == 99


REGIONS_JOB = """
import json
import os

from pyspark.sql import SparkSession

builder = SparkSession.builder
for name, value in json.loads(os.environ["JOB_CONF"]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
readings = spark.read.parquet("readings").where("reading >= 10")
sums = readings.groupBy("region").sum("reading").toDF("region", "total")
sums.coalesce(1).write.mode("overwrite").parquet("out")
open("application", "w").write(spark.sparkContext.applicationId)
spark.stop()
"""


@pytest.mark.thorough
def test_within_a_bound_the_flows_of_a_run_say_how_far_outputs_will_move(workshop: Workshop) -> None:
    workshop.write("job.py", REGIONS_JOB)
    terms = ["--bound", "0.1", "--error", "relative:total", "--key", "region", "--training", "20"]
    regions = ["north", "south", "east"]
    for wave in range(4):
        for file in range(2):
            rows = [(f"d{file}-{at}", regions[at % 3], 20.0 + at + wave * (at % 3)) for at in range(9)]
            rows[0] = (rows[0][0], "north", 1.0 + wave)  # which the filter leaves out
            workshop.write_readings(f"{file}.parquet", rows)
        workshop.run("--wave", f"w{wave}", *terms)
    workshop.trigger(*terms)
    pairs = KeptPairs(workshop.store.location).of(job_key("takings"), {})
    assert pairs is not None
    columns_of = dict(zip(pairs.names, pairs.features.T, strict=True))
    # Of each file six readings change: those of two regions. That of the third is below the filter.
    assert columns_of["lineage.live"] == pytest.approx(12 / 14)
    assert columns_of["lineage.reach"] == pytest.approx(2 / 3)
    assert columns_of["lineage.reading.moved_error_low"] == pytest.approx(pairs.errors)
    assert (pairs.errors > 0).all()


@pytest.mark.thorough
def test_within_a_bound_new_rows_are_routed_to_the_outputs_of_their_values(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table grows: each run reads five rows more, those of one region in new files."""
    workshop.write("job.py", REGIONS_JOB)
    terms = ["--bound", "0.1", "--error", "relative:total", "--key", "region", "--training", "20"]
    regions = ["north", "south", "east"]
    for wave in range(3):
        of = [regions[at % 3] for at in range(18)] if not wave else [regions[wave]] * 5
        rows = [(f"d{wave}-{at}", region, 20.0 + at) for at, region in enumerate(of)]
        workshop.write_readings(f"{wave}.parquet", rows)
        workshop.run("--wave", f"w{wave}", *terms)
    workshop.trigger(*terms)
    pairs = KeptPairs(workshop.store.location).of(job_key("takings"), {})
    assert pairs is not None
    columns_of = dict(zip(pairs.names, pairs.features.T, strict=True))
    assert columns_of["lineage.live"].tolist() == [0]  # nothing that was there has changed
    assert columns_of["lineage.routed_live"].tolist() == [1]
    assert columns_of["lineage.routed_reach"] == pytest.approx(1 / 3)
    assert columns_of["lineage.routed_share_most"] == pytest.approx(5 / 11)
    assert columns_of["lineage.reading.routed_error_sum"] == pytest.approx(pairs.errors)
    assert (pairs.errors > 0).all()
    # All that the last run read and wrote is as it was; the outputs before it are overwritten.
    assert workshop.forget() == 0
    capsys.readouterr()
    assert main.main(["trigger", "learn", "takings", *terms, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["executions"], said["learned"], said["waves"]) == (3, 1, 1), said
    assert [entry["reason"] for entry in said["left_out"]] == ["output_changed"] * 2


def datasets(application: Application, kind: str) -> list[dict[str, Any]]:
    return [
        event["dataset"]
        for event in application.events
        if event["type"] == contract.NODE_REGISTERED and event["kind"] == kind and event.get("dataset")
    ]


def test_the_agent_says_what_the_program_named_and_where_it_appends(
    run: Callable[..., tuple[Any, Application]], jar: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        path = tmp_path / "in" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("1\n")

    def job(context: SparkContext) -> None:
        spark = SparkSession(context)
        folder, pattern = f"{tmp_path}/in", f"{tmp_path}/in/*.csv"
        for number, paths in enumerate([folder, pattern, [f"{folder}/a.csv", f"{folder}/b.csv"]]):
            spark.read.schema("n INT").csv(paths).write.mode("overwrite").csv(f"{tmp_path}/out-{number}")
        spark.read.schema("n INT").csv(f"{folder}/").write.mode("append").csv(f"{tmp_path}/out-3")

    _, application = run(job)
    sources = [dataset.get("paths") for dataset in datasets(application, "source")]
    assert sources == [None, [f"{tmp_path}/in/*.csv"], [], None]
    assert [dataset.get("appends") for dataset in datasets(application, "sink")] == [None, None, None, True]
    [started] = [event for event in application.events if event["type"] == contract.APPLICATION_STARTED]
    assert started["job"] == started["name"]


def sales(folder: Path, day: int, towns: str) -> None:
    table = pa.table({"town": list(towns), "day": [day] * len(towns)})
    write_deltalake(str(folder), table, mode="append", partition_by=["day"])


@pytest.mark.thorough
def test_partitions_that_are_added_are_changes_also_where_the_job_prunes_them(workshop: Workshop) -> None:
    """Spark reads the files of the Delta table as Parquet: its log is what is looked at."""
    workshop.write("job.py", FRAME_JOB)
    folder = workshop.folder / "sales"
    for day in (1, 2):
        sales(folder, day, "ab")
    workshop.run()
    assert workshop.trigger() == 99
    sales(folder, 1, "c")  # which the filter leaves out
    assert workshop.trigger() == 0
    workshop.run()
    assert workshop.trigger() == 99
    sales(folder, 3, "c")
    assert workshop.trigger() == 0


@pytest.mark.thorough
def test_plain_partition_folders_are_looked_at_before_a_run(workshop: Workshop) -> None:
    workshop.write("job.py", FRAME_JOB)
    folder = workshop.folder / "plain"
    for day in (1, 2):
        sales(folder, day, "ab")
    (folder / "_delta_log").rename(workshop.folder / "log")
    folder.rename(workshop.folder / "sales")
    workshop.run()
    assert workshop.trigger() == 0  # whether day=1 was there is not known
    workshop.run()
    assert workshop.trigger() == 99
    sales(workshop.folder / "more", 3, "d")
    (workshop.folder / "more" / "day=3").rename(workshop.folder / "sales" / "day=3")
    assert workshop.trigger() == 0


@pytest.mark.thorough
def test_a_job_that_fails_is_run_again(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.write("job.py", JOB)
    workshop.write("totals.py", TOTALS)
    workshop.write("in/a.txt", "x one\n")
    assert workshop.trigger("--", sys.executable, "job.py") == 1
    application_id = (workshop.folder / "application").read_text()
    assert main.main(["consume", "--until-complete", application_id]) == 0
    assert workshop.trigger("--json") == 0
    assert '"reason":"failed"' in capsys.readouterr().out


SUMS_JOB = """
import json
import os

from pyspark.sql import SparkSession, functions

builder = SparkSession.builder
for name, value in json.loads(os.environ["JOB_CONF"]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
sales = spark.read.option("header", True).csv("sales")
sums = sales.groupBy("town").agg(functions.sum(sales.amount.cast("double")).alias("amount"))
sums.coalesce(1).write.mode("overwrite").option("header", True).csv("out")
open("application", "w").write(spark.sparkContext.applicationId)
spark.stop()
"""


@pytest.mark.thorough
def test_within_a_bound_each_run_teaches_how_wrong_the_output_before_it_was(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_looks, "_LOCAL_S", 0.01)  # each input is written a moment before it is asked for
    workshop.write("job.py", SUMS_JOB)
    terms = ["--bound", "0.1", "--error", "relative:amount", "--key", "town", "--training", "20"]
    amounts = [{"x": 10.0, "y": 20.0, "z": 30.0}, {"x": 11.0, "y": 20.0, "z": 30.0}, {"x": 11.0, "y": 26.0}]
    for number, of_wave in enumerate(amounts):
        rows = [f"{town}{at},{town},{half / 2}" for town, half in of_wave.items() for at in range(2)]
        workshop.write("sales/a.csv", "\n".join(["id,town,amount", *rows, ""]))
        workshop.run("--wave", f"w{number}", *terms)
    capsys.readouterr()
    workshop.write("sales/a.csv", "id,town,amount\nx1,x,1\n")
    assert workshop.trigger("--wave", "w3", "--json", *terms) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["phase"], answer["reason"], answer["bound"]) == ("training", "training", 0.1)
    assert "2 of 20 waves are done" in answer["why"]  # before the first run nothing was known of its inputs
    assert main.main(["trigger", "waves", "takings", "--json"]) == 0
    waves = {wave["wave"]: wave for wave in json.loads(capsys.readouterr().out)["waves"]}
    # Two of three sums differ: y by 6 of 26, and z by all of its 30.
    truth = 2 / 3 * (6 + 30) / (11 + 26 + 30)
    assert waves["w2"]["error"] == pytest.approx(truth)
    assert waves["w0"]["error"] is None
    assert waves["w1"]["error"] is None
    assert main.main(["trigger", "label", "takings", "w1", "--error", "0.02"]) == 0
    assert main.main(["trigger", "retrain", "takings"]) == 0
    assert main.main(["trigger", "waves", "takings", "--csv"]) == 0
    assert ",0.02," in capsys.readouterr().out
