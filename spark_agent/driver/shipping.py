"""Brings to executors what their Python workers import of the agent: `contract`, `delivery` and `worker`."""

from __future__ import annotations

import os
import sys
import zipfile
from typing import Any

#: Where the package `spark_agent` is.
AGENT_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Its parts that run in workers. Nothing of them imports another part.
WORKER_PACKAGES = ("contract", "delivery", "worker")
#: The file in which they go to executors.
ARCHIVE = "lineage_agent.zip"


def ship_agent(context: Any) -> None:
    """See to it that the executors of `context` can import what they need of `spark_agent`.

    In local mode they run in the driver's own environment, and nothing is shipped.
    """
    master = context.master
    is_local = master == "local" or master.startswith(("local[", "local-cluster"))
    chosen = os.environ.get("PYSPARK_PYTHON") or context._conf.get("spark.pyspark.python", None)
    if is_local and not chosen:
        context.pythonExec = sys.executable  # the same machine: the environment that has the agent
    if is_local and not master.startswith("local-cluster") and context.pythonExec == sys.executable:
        return
    archive = os.path.join(context._temp_dir, ARCHIVE)  # a folder that Spark removes at its end
    write_archive(archive)
    context.addPyFile(archive)


def write_archive(path: str) -> None:
    """Write the zip that goes to executors."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(os.path.join(AGENT_FOLDER, "__init__.py"), "spark_agent/__init__.py")
        for package in WORKER_PACKAGES:
            for folder, _, names in os.walk(os.path.join(AGENT_FOLDER, package)):
                for name in sorted(name for name in names if name.endswith(".py")):
                    file = os.path.join(folder, name)
                    archive.write(file, os.path.join("spark_agent", os.path.relpath(file, AGENT_FOLDER)))
