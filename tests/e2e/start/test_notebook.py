"""A notebook in a real kernel of Jupyter: what standard error shows, and the cells at operations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.spark.application import messages_of

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

CELLS = (
    "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()",
    "rows = spark.range(10)\nlarge = rows.where('id > 4')\nlen(large.collect())",
    "1 / 0",
    "numbers = spark.sparkContext.parallelize(range(4), 2)\nnumbers.map(str).count()",
    "spark.stop()",
)
#: Runs the cells of a JSON list, as a front end does, and prints what came of each.
FRONT_END = """
import json, sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(startup_timeout=600, kernel_name="python3")
ran = []
try:
    for cell in json.loads(sys.argv[1]):
        streams = {"stderr": "", "result": ""}
        def show(message):
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stderr":
                streams["stderr"] += content["text"]
            elif message["msg_type"] == "execute_result":
                streams["result"] = content["data"]["text/plain"]
        reply = client.execute_interactive(cell, timeout=900, output_hook=show)
        ran.append({"status": reply["content"]["status"], **streams})
finally:
    client.stop_channels()
    manager.shutdown_kernel()
print(json.dumps(ran))
"""


def test_a_notebook_shows_two_lines_and_operations_have_their_cells(kafka: Any, tmp_path: Path) -> None:
    topics = {name: f"{uuid.uuid4().hex[:10]}-{name}" for name in ("node", "flow")}
    conf = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.delivery.timeout": "60",
        **{f"spark.lineage.topic.{name}": topic for name, topic in topics.items()},
    }
    submit = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    done = subprocess.run(
        [sys.executable, "-c", FRONT_END, json.dumps(CELLS)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{submit} pyspark-shell", "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)
    assert [cell["status"] for cell in cells] == ["ok", "ok", "error", "ok", "ok"]
    assert (cells[1]["result"], cells[3]["result"]) == ("5", "4")
    notices = [line for cell in cells for line in cell["stderr"].splitlines() if line.startswith("lineage:")]
    assert [notice.split()[1] for notice in notices] == ["on", "complete"], notices

    events = [decode_event(message) for message in messages_of(kafka.bootstrap_servers, topics["node"])]
    sites = {
        event["name"]: event["call_site"] for event in events if event["type"] == contract.NODE_REGISTERED
    }
    assert sites["Filter"] == "In [2]:2"
    assert sites["collect"] == "In [2]:3"
    assert sites["parallelize"] == "In [4]:1"
    assert sites["count"] == "In [4]:2"
    (ended,) = [event for event in events if event["type"] == contract.APPLICATION_ENDED]
    assert ended["state"] == contract.SUCCEEDED  # an error in a cell ends no application
