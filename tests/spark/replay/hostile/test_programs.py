"""Whole programs that would harm data by how they start Spark, or when no job of theirs runs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.replay.playground import Outcome, Playground

pytestmark = pytest.mark.thorough

CONF = {"spark.lineage.kafka.bootstrap.servers": "127.0.0.1:1", "spark.lineage.delivery.timeout": "1"}
START = """\
import os, sys
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
D = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
"""
FS = "P = sc._jvm.org.apache.hadoop.fs.Path\nfs = P(D).getFileSystem(sc._jsc.hadoopConfiguration())\n"
#: Name -> (program behind START, what a refusal or the output names).
PROGRAMS = {
    "atexit": (
        "import atexit, shutil\natexit.register(shutil.rmtree, D)\nbuilder.getOrCreate().range(3).count()\n",
        "data",
    ),
    "after_stop": ("spark = builder.getOrCreate(); spark.stop(); os.remove(D + '/in.txt')", "in.txt"),
    "signal": (
        "import signal, time\nspark = builder.getOrCreate()\n"
        "signal.signal(signal.SIGALRM, lambda *_: os.remove(D + '/in.txt'))\n"
        "signal.setitimer(0, 0.3)\n[time.sleep(0.1) for _ in range(20)]\n",
        "in.txt",
    ),
    "thread": (
        "import threading\nsc = builder.getOrCreate().sparkContext\n"
        "t = threading.Thread(target=lambda: sc._jvm.java.io.File(D + '/in.txt').delete())\n"
        "t.start(); t.join()\n",
        "in.txt",
    ),
    "own_file_system": (
        "sc = builder.config('spark.hadoop.fs.file.impl', 'org.apache.hadoop.fs.RawLocalFileSystem')"
        ".config('spark.hadoop.fs.AbstractFileSystem.file.impl', 'org.apache.hadoop.fs.local.LocalFs')"
        f".getOrCreate().sparkContext\n{FS}fs.delete(P(D + '/in.txt'), False)\n",
        "in.txt",
    ),
    "own_daemon": (
        "sc = builder.config('spark.python.daemon.module', 'pyspark.daemon')"
        ".config('spark.python.use.daemon', 'false').getOrCreate().sparkContext\n"
        "sc.parallelize([D]).map(lambda d: os.remove(d + '/in.txt')).collect()\n",
        "in.txt",
    ),
    "own_extensions": (
        "spark = builder.config('spark.sql.extensions', 'com.acme.None').getOrCreate()\n"
        "spark.sql('create table t (a int) using csv')\n",
        "CreateDataSourceTable",
    ),
    "new_session": (
        "spark = builder.getOrCreate().newSession()\nspark.sql('create database d')\n",
        "CreateNamespace",
    ),
    "event_log": (
        "spark = builder.config('spark.eventLog.enabled', 'true').config('spark.eventLog.dir', D)"
        ".getOrCreate()\n"
        "spark.range(3).count(); spark.stop(); open(D + '/x', 'w')\n",
        "data/x",
    ),
    "local_folders": (
        "os.environ['SPARK_LOCAL_DIRS'] = D\n"
        "sc = SparkContext('local[2]', conf=SparkConf().set('spark.local.dir', D))\n"
        "sc.parallelize(range(9), 2).groupBy(lambda n: n % 2).count(); sc.stop(); open(D + '/x', 'w')\n",
        "data",
    ),
    "second_context": (
        f"builder.getOrCreate().stop()\nsc = builder.getOrCreate().sparkContext\n{FS}fs.delete(P(D), True)\n",
        "data",
    ),
    "environment_replaced": (
        "os.environ = {**os.environ}\ndel os.environ['LINEAGE_REPLAY']\n"
        f"sc = builder.getOrCreate().sparkContext\n{FS}fs.delete(P(D), True)\n",
        "",
    ),
    "hive": (
        "spark = builder.enableHiveSupport().getOrCreate()\nspark.sql('create table t (a int)')\n",
        "metastore",
    ),
    "connect": ("SparkSession.builder.remote('local').getOrCreate()\n", "Connect"),
    "local_cluster": ("builder.master('local-cluster[1,1,1024]').getOrCreate()\n", "local-cluster"),
    "foreign_spark": (
        "os.environ['SPARK_HOME'] = '/nowhere'\nimport subprocess\n"
        "subprocess.Popen(['sh', '-c', f'rm -rf {D}'], env=dict(os.environ))\n",
        "rm -rf",
    ),
}


@pytest.fixture(autouse=True)
def _options(monkeypatch: pytest.MonkeyPatch) -> None:
    options = " ".join(f"--conf {name}={value}" for name, value in CONF.items())
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")


def told(outcome: Outcome) -> str:
    return outcome.refused + outcome.output


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_changes_nothing(jar: Path, tmp_path: Path, name: str) -> None:
    text, mention = PROGRAMS[name]
    outcome = Playground(tmp_path).run(START + text)
    assert outcome.changed == {}
    assert mention in told(outcome), (outcome.output[-3000:], outcome.notes)
    assert outcome.exit_code != 0 or name in ("atexit", "thread"), outcome.output[-3000:]


def test_functions_that_foreach_may_call_are_guarded(jar: Path, tmp_path: Path) -> None:
    outcome = Playground(tmp_path).run(
        START + "sc = builder.getOrCreate().sparkContext\n"
        "sc.parallelize([D]).foreach(lambda d: open(d + '/in.txt', 'w').write('x'))\n",
        run_foreach=True,
    )
    assert outcome.changed == {}
    assert "in.txt" in outcome.refused


def test_functions_that_foreach_may_call_are_called(jar: Path, tmp_path: Path) -> None:
    outcome = Playground(tmp_path).run(
        START + "sc = builder.getOrCreate().sparkContext\nseen = sc.accumulator(0)\n"
        "sc.parallelize([1, 2]).foreach(lambda n: seen.add(n))\n"
        "assert sc.runJob(sc.parallelize([1, 2]), lambda p: p) == [1, 2]\nprint('SEEN', seen.value)\n",
        run_foreach=True,
    )
    assert (outcome.exit_code, outcome.changed) == (0, {}), outcome.output[-3000:]
    assert "SEEN 3" in outcome.output


@pytest.mark.parametrize(
    "remove", ["import shutil; shutil.rmtree(D + '/out')", f"{FS}fs.delete(P(D + '/out'), True)"]
)
def test_a_program_that_removes_its_old_output_goes_on(jar: Path, tmp_path: Path, remove: str) -> None:
    playground = Playground(tmp_path)
    outcome = playground.run(
        f"{START}sc = builder.getOrCreate().sparkContext\n{remove}\n"
        "sc.parallelize('ab', 1).saveAsTextFile(D + '/out')\n"
        "spark = builder.getOrCreate(); spark.range(2).write.mode('overwrite').csv(D + '/out')\n",
        outputs=[str(playground.data / "out")],
    )
    assert (outcome.exit_code, outcome.changed, outcome.notes["refused"]) == (0, {}, []), outcome.output[
        -3000:
    ]
    assert [note["path"] for note in outcome.notes["pretended"]] == [str(playground.data / "out")]


def test_what_a_program_reads_past_spark_is_told_to_be_old(jar: Path, tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    outcome = playground.run(
        START
        + "sc = builder.getOrCreate().sparkContext\nsc.parallelize('ab', 1).saveAsTextFile(D + '/out')\n"
        "assert open(D + '/out/part-00000').read() == 'old\\n'\n"
    )
    assert outcome.exit_code == 0, outcome.output[-3000:]
    report = json.loads((playground.sandbox / "report.json").read_text())
    assert any("past Spark" in sentence and "job.py:" in sentence for sentence in report["differences"])


STEPS = """
sc = builder.getOrCreate().sparkContext
spark = builder.getOrCreate()
def attempt(step):
    try:
        step()
    except BaseException as error:
        print("REFUSED", str(error)[:3000].replace("\\n", " "), flush=True)
attempt(lambda: sc.parallelize([D]).map(lambda d: os.remove(d + '/in.txt')).collect())
attempt(lambda: sc.parallelize('ab')._jrdd.saveAsTextFile(D + '/new'))
attempt(lambda: spark.range(5)._jdf.write().mode('overwrite').csv(D + '/out'))
attempt(lambda: sc.parallelize('ab').pipe('rm -rf ' + D).collect())
assert sc.parallelize(range(9), 3).map(lambda n: n + 1).sum() == 45
spark.range(5).write.mode('overwrite').csv(D + '/out')
assert spark.read.csv(D + '/out').count() == 5
print("DONE", flush=True)
"""


def test_a_submitted_program_changes_nothing(jar: Path, tmp_path: Path) -> None:
    submit = shutil.which("spark-submit", path=str(Path(sys.executable).parent))
    assert submit is not None
    options = [word for name, value in CONF.items() for word in ("--conf", f"{name}={value}")]
    launcher = [sys.executable, "-m", "spark_agent.worker.guard.launch", submit, *options]
    outcome = Playground(tmp_path).run(START + STEPS, interpreter=launcher)
    assert outcome.changed == {}
    assert outcome.exit_code == 0, outcome.output[-5000:]
    assert outcome.output.count("REFUSED") == 4, outcome.output[-5000:]
