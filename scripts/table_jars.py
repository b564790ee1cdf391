"""The jars of table formats, which jobs of tests and benchmarks need: fetched by a lock, into .cache."""

from __future__ import annotations

from pathlib import Path

import pyspark

from lineage_service.devstack.download import fetch
from lineage_service.devstack.jars import parse_lock
from lineage_service.devstack.progress import Quiet
from lineage_service.settings import Settings
from scripts.environment import ROOT

#: FORMAT-LINE.lock: the jars of a format for a line of PySpark.
LOCKS = ROOT / "tests" / "support" / "tables"


class NoTableJarsError(Exception):
    """The installed PySpark has no jars of a table format; the message says which one has."""


def jars_of(lock: Path) -> list[Path]:
    """The files that the lock names. What is not there yet is fetched; raises what `fetch` does."""
    jars = parse_lock(lock.read_text(), lock.name)
    folder = ROOT / ".cache" / "lineage" / "jars"
    fetch(list(jars), folder, Settings().maven_repository, Quiet())
    return [folder / jar.file_name for jar in jars]


def delta_conf() -> dict[str, str]:
    """What a session needs for tables of Delta Lake. Raises NoTableJarsError."""
    lines = {lock.stem.partition("-")[2]: lock for lock in sorted(LOCKS.glob("delta-*.lock"))}
    line = ".".join(pyspark.__version__.split(".")[:2])
    if line not in lines:
        raise NoTableJarsError(
            f"Delta Lake is tested with PySpark {' and '.join(lines)}, and this is {pyspark.__version__}: "
            "use the Python of .cache/pyspark-VERSION, which `make test-pyspark-versions` makes"
        )
    return {
        "spark.jars": ",".join(str(path) for path in jars_of(lines[line])),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
