"""How Spark's JVMs run where they see many small queries, each once: in tests of ours and of Spark's.

    python -m scripts.brief_jvm

Makes what lets them start quickly, unless it exists: an archive of the classes that a job loads (application
class data sharing of Java). With it, a small job costs 9 s of CPU instead of 14.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from scripts.environment import EnvironmentFailed, alone, say

#: The second compiler takes half of the CPU and its code is never used. The first alone has 48 MB for its
#: code, which some hundred queries fill: it then compiles the same again.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
#: Of the environment, whose jars they are made of.
FOLDER = Path(sys.prefix, f"spark-for-tests-{pyspark.__version__}")
HOME, ARCHIVE = FOLDER / "home", FOLDER / "classes.jsa"
#: A JVM that cannot use the archive, since it is of another Java, say, goes on without a word.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
#: Loads the classes that most tests need.
_JOB = """
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
session.range(100).selectExpr("id % 7 as key", "id").groupBy("key").count().collect()
pairs = session.sparkContext.parallelize(range(9), 2).map(lambda number: (number % 2, 1))
pairs.reduceByKey(lambda left, right: left + right).collect()
session.stop()
"""
_ZIP = "pyspark.zip"


def options() -> str:
    """Options of a JVM, with the archive where `main` has made it."""
    return f"{OPTIONS} -XX:SharedArchiveFile={ARCHIVE} {_SILENT}" if ARCHIVE.exists() else OPTIONS


def make_home() -> None:
    """Make HOME, unless it exists: a SPARK_HOME of links to PySpark, without the zip of its Python.

    Python workers import PySpark from there where it is, and compile all of it at each start: two seconds of
    a core for each application. Without it they import the installed one, which is compiled. All tests use
    the same path, since an archive holds for the paths of the jars that it was made of.
    """
    if HOME.exists():
        return
    FOLDER.mkdir(exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=FOLDER))
    _link(unfinished)
    try:
        unfinished.rename(HOME)
    except OSError:  # another process was first
        shutil.rmtree(unfinished)


def _link(home: Path) -> None:
    installed = Path(pyspark.__file__).parent
    libraries = Path("python", "lib")
    (home / libraries).mkdir(parents=True)
    for name in ("bin", "sbin", "jars", "data"):
        if (installed / name).exists():
            (home / name).symlink_to(installed / name)
    for folder in (libraries, libraries.parent):  # the second has the script of PySpark's shell
        for path in (installed / folder).iterdir():
            if path.name not in (_ZIP, libraries.name):
                (home / folder / path.name).symlink_to(path)


def _make_archive() -> None:
    unfinished = ARCHIVE.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    environment |= {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": f"{OPTIONS} -XX:ArchiveClassesAtExit={unfinished} {_SILENT}",
        "PYSPARK_PYTHON": sys.executable,
    }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", _JOB], cwd=folder, env=environment, capture_output=True, check=False
        )
    if unfinished.exists():
        unfinished.rename(ARCHIVE)
    else:
        say("Java cannot make an archive of Spark's classes here; tests start Spark without one")


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    try:
        with alone(FOLDER / "archive"):
            make_home()
            if not ARCHIVE.exists():
                say("Making an archive of Spark's classes, with which tests start Spark sooner ...")
                _make_archive()
    except EnvironmentFailed as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
