"""A job with folders of its own that are named as folders of this product's source: it runs as without it."""

from __future__ import annotations

import subprocess
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.e2e.clone import Clone, newcomers_environment
from tests.support.spark.application import check_against, part_rows, read_application

#: As people write them today: without `__init__.py`. A package of that name anywhere on the path would win.
MODULES = {
    "api/parcels.py": (
        "from dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Parcel:\n    town: str\n    grams: int\n\n\n"
        "def parcel(line):\n    town, grams = line.split('|')\n    return Parcel(town, int(grams))\n"
    ),
    "cypher/towns.py": "def hidden(town):\n    return town[::-1]\n",
    "ui/labels.py": "def label(grams):\n    return 'heavy' if int(grams) > 500 else 'light'\n",
}
LINES = [f"{town}|{grams}" for grams in range(50, 1000, 75) for town in ("Graz", "Linz", "Wien")]

JOB = """
import os
import shutil

from pyspark.sql import SparkSession

from api.parcels import Parcel, parcel
from cypher.towns import hidden
from ui.labels import label

here = os.getcwd()
spark = SparkSession.builder.appName("Parcels").getOrCreate()
for folder in ("api", "cypher", "ui"):  # as archives go to a cluster
    spark.sparkContext.addPyFile(shutil.make_archive(folder, "zip", ".", folder))
parcels = spark.sparkContext.textFile("parcels.txt", 3).map(parcel).filter(lambda it: it.grams > 200)
assert isinstance(parcels.first(), Parcel)
parcels.map(lambda it: f"{hidden(it.town)} {it.grams} {label(it.grams)}").saveAsTextFile(f"{here}/far")
sums = parcels.map(lambda it: (it.town, it.grams)).reduceByKey(lambda a, b: a + b, 2)
sums.map(lambda sum: "%s %d" % sum).saveAsTextFile(f"{here}/sums")
spark.udf.register("label", label)
rows = spark.read.option("sep", "|").schema("town STRING, grams INT").csv("parcels.csv")
rows.selectExpr("town", "grams", "label(grams) AS l").where("l = 'heavy'").write.csv(f"{here}/heavy")
spark.stop()
"""
Expected = Counter[tuple[str, frozenset[tuple[str, int]]]]


def expected() -> dict[str, Expected]:
    """Each output row with the input rows that it comes from, by brute force over LINES."""
    rows = [(row, *line.split("|")) for row, line in enumerate(LINES)]
    heavier = [(row, town, int(grams)) for row, town, grams in rows if int(grams) > 200]

    def label(grams: int) -> str:
        return "heavy" if grams > 500 else "light"

    def of(*lines: int, file: str = "parcels.txt") -> frozenset[tuple[str, int]]:
        return frozenset((file, row) for row in lines)

    return {
        "far": Counter((f"{town[::-1]} {grams} {label(grams)}", of(row)) for row, town, grams in heavier),
        "sums": Counter(
            (
                f"{town} {sum(grams for _, its, grams in heavier if its == town)}",
                of(*(row for row, its, _ in heavier if its == town)),
            )
            for town in ("Graz", "Linz", "Wien")
        ),
        "heavy": Counter(
            (f"{town},{grams},heavy", of(row, file="parcels.csv"))
            for row, town, grams in heavier
            if label(grams) == "heavy"
        ),
    }


def run(clone: Clone, folder: Path, conf: Mapping[str, str]) -> None:
    lines = "".join(f"{line}\n" for line in LINES)
    files = {**MODULES, "job.py": JOB, "parcels.txt": lines, "parcels.csv": lines}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    confs = {"spark.master": "local[2]", "spark.ui.enabled": "false", **conf}
    environment = newcomers_environment(folder / "commands")
    done = subprocess.run(
        [clone.bin / "spark-submit", *(f"--conf={name}={value}" for name, value in confs.items()), "job.py"],
        cwd=folder,
        env={
            **environment,
            "PATH": f"{clone.bin}:{environment['PATH']}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "LINEAGE_HOME": str(folder / "home"),
        },
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == ""
    for name, rows in expected().items():
        assert Counter(text for _, _, text in part_rows(folder / name)) == Counter(text for text, _ in rows)


@pytest.mark.thorough
@pytest.mark.timeout(3600)  # where it is the first to need an installation
def test_a_jobs_own_api_cypher_and_ui_are_its_own_with_the_product_installed(
    clone: Clone, kafka: Any, tmp_path: Path
) -> None:
    run(clone, tmp_path / "plain", {})
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    for topic in topics.values():
        kafka.create_topic(topic)
    folder = tmp_path / "lineage"
    run(
        clone,
        folder,
        {
            "spark.lineage.enabled": "true",
            "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
            "spark.lineage.topic.node": topics["node"],
            "spark.lineage.topic.flow": topics["flow"],
            "spark.lineage.delivery.timeout": "60",  # of a machine that does much else
        },
    )
    application = read_application(kafka.bootstrap_servers, topics, tmp_path / "store")
    for name, rows in expected().items():
        inputs = [folder / file for file in sorted({file for _, rows_in in rows for file, _ in rows_in})]
        check_against(application, folder / name, inputs, rows)
