"""`lineage trigger --probe` before real jobs: what a probe says is what a full run would have shown."""

from __future__ import annotations

import json
import random
import re
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli import main
from lineage_service.triggering.certain import file_looks
from lineage_service.triggering.probing import prober

BEGIN = """
import json
import os

from pyspark.sql import SparkSession, functions as F

builder = SparkSession.builder
for name, value in json.loads(os.environ["JOB_CONF"]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
"""
AGGREGATE = """
sales = spark.read.schema("id INT, shop STRING, amount INT").csv("in")
sums = sales.where("amount > 1").groupBy("shop").agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
sums.where("n >= 3").coalesce(1).write.mode("overwrite").parquet("out")
spark.stop()
"""


class Workshop:
    def __init__(self, folder: Path, kafka: Any, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        prefix = uuid.uuid4().hex[:10]
        for kind in ("node", "flow"):
            kafka.create_topic(f"{prefix}-{kind}")
        conf = {
            "spark.master": "local[1]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.lineage.enabled": "true",
            "spark.lineage.job": "takings",
            "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
            "spark.lineage.topic.node": f"{prefix}-node",
            "spark.lineage.topic.flow": f"{prefix}-flow",
            "spark.lineage.delivery.timeout": "60",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        patch.chdir(folder)
        patch.setattr(file_looks, "_LOCAL_S", 0.01)
        for name, value in {
            "JOB_CONF": json.dumps(conf),
            "LINEAGE_HOME": str(folder / "home"),
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "LINEAGE_NODE_TOPIC": f"{prefix}-node",
            "LINEAGE_FLOW_TOPIC": f"{prefix}-flow",
            "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
            "LINEAGE_CONSUMER_GROUP": prefix,
            "LINEAGE_METRICS": "false",
        }.items():
            patch.setenv(name, value)

    def ask(self, capfd: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
        """The answer; the job has run if that says so, and is stored then."""
        arguments = ["trigger", "takings", "--probe-anyway", "--json", *flags]
        assert main.main([*arguments, "--", sys.executable, "job.py"]) == 0, capfd.readouterr()
        error = capfd.readouterr().err
        ran = re.search(r"lineage: complete for (local-\d+)", error)
        if ran is not None:
            assert main.main(["consume", "--until-complete", ran[1]]) == 0
        answer: dict[str, Any] = next(
            json.loads(line) for line in error.splitlines() if line.startswith('{"job')
        )
        return answer


@pytest.fixture
def workshop(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return Workshop(tmp_path, kafka, monkeypatch)


Row = tuple[int, str, int]


class Sales:
    """The input of the job, and what it makes of it."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop, self.draw = workshop, random.Random(1)
        self.rows = [(at, f"s{at % 60}", self.draw.randrange(1, 50)) for at in range(300)]
        self.output: dict[str, int] = {}

    def totals(self) -> dict[str, int]:
        amounts: dict[str, list[int]] = {}
        for _, shop, amount in self.rows:
            if amount > 1:
                amounts.setdefault(shop, []).append(amount)
        return {shop: sum(of_shop) for shop, of_shop in amounts.items() if len(of_shop) >= 3}

    def wave(self, capfd: pytest.CaptureFixture[str], number: int) -> tuple[dict[str, Any], float]:
        """One row more, less, or in another shop; the answer, and the error of a skip."""
        at = self.draw.randrange(len(self.rows))
        id, shop, amount = self.rows[at]
        changed = [(id, shop, amount + 5), (id, "s7", amount), (1_000 + number, "new", 20)][number % 3]
        self.rows[at : at + (number % 3 < 2)] = [changed]
        path = self.workshop.folder / "in" / "a.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in self.rows))
        time.sleep(0.1)  # what is written at the moment of the answer may not be whole
        answer = self.workshop.ask(capfd, *TERMS)
        error = error_between(self.output, self.totals())
        if answer["decision"] == "run":
            self.output = self.totals()
        return answer, error


TERMS = ["--bound", "0.0001", "--error", "relative:total", "--key", "shop", "--training", "20"]


def error_between(stale: dict[str, int], correct: dict[str, int]) -> float:
    """Equation 3 of the paper, once more."""
    keys = stale.keys() | correct.keys()
    changed = sum(stale.get(key) != correct.get(key) for key in keys)
    distance = sum(abs(stale.get(key, 0) - correct.get(key, 0)) for key in keys)
    return changed * distance / (len(keys) * sum(max(stale.get(key, 0), correct.get(key, 0)) for key in keys))


@pytest.mark.thorough
def test_a_probe_decides_once_runs_have_written_what_three_expected(
    workshop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    (workshop.folder / "job.py").write_text(BEGIN + AGGREGATE)
    sales = Sales(workshop)
    answers = [sales.wave(capfd, number) for number in range(8)]
    reasons = [answer["reason"] for answer, _ in answers]
    assert reasons[1:] == ["code", "training", "training", "training", "probed", "probed", "probed"], answers
    for answer, error in answers[2:]:
        assert f"the error is {error:.4g}" in answer["why"]
        assert (answer["decision"] == "run") == (error > 0.0001 or answer["reason"] == "training")
    assert not list((workshop.folder / "home" / "replays").glob("[0-9]*"))


_IF_FEW = "if len(open(sales.inputFiles()[0][7:]).read()) < 1000:"
HOSTILE = {
    "open('beside', 'w').write('x')": "refused: open for writing",
    "assert sales.count() > 100": "gives values to the program",
    f"{_IF_FEW} raise ValueError('too few rows')": "too few rows",
    f"{_IF_FEW} __import__('time').sleep(900)": "took longer than",
}


@pytest.mark.thorough
@pytest.mark.parametrize("line", HOSTILE)
def test_what_a_probe_may_not_do_or_does_not_end_is_run_and_said(
    line: str, workshop: Workshop, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in line:
        monkeypatch.setattr(prober, "_USUAL_S", 1.0)
    first, second = AGGREGATE.split("sums =")
    (workshop.folder / "job.py").write_text(f"{BEGIN}{first}{line}\nsums ={second}")
    sales = Sales(workshop)
    answer = [sales.wave(capfd, number) for number in range(3)][-1][0]
    assert answer["decision"] == "run"
    assert HOSTILE[line] in answer["why"]
    assert not list((workshop.folder / "home" / "replays").glob("[0-9]*"))
