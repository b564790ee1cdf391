"""Steps of Spark jobs that would harm data, and steps that do not: all of a kind run in one application.

Each step is a function of a script, with a folder of data of its own: `D` has `in.txt` and an old output,
`out`. `spark` and `sc` are running. A step of HOSTILE is here with what the refusal names; where that is
empty, nothing is refused, since it is redirected or not called, and nothing changes either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent, indent

__all__ = ["FRIENDLY", "HOSTILE", "make_data", "script_of"]

_FS = "P = sc._jvm.org.apache.hadoop.fs.Path; fs = P(D).getFileSystem(sc._jsc.hadoopConfiguration())\n"
_DF = "df = spark.range(5).selectExpr('id', 'cast(id as string) s')\n"

HOSTILE: dict[str, tuple[str, str]] = {
    # -- sinks: redirected, or refused ------------------------------------------------------------------
    "overwrite_mode": (_DF + "df.write.mode('overwrite').parquet(D + '/out')", ""),
    "overwrite_input": (_DF + "df.select('s').write.mode('overwrite').text(D)", ""),
    "append_mode": (_DF + "df.write.mode('append').csv(D + '/out')", ""),
    "save_text_over_input": ("sc.parallelize('ab').saveAsTextFile(D + '/in.txt')", ""),
    "save_pickle": ("sc.parallelize('ab').saveAsPickleFile(D + '/new')", ""),
    "save_sequence": ("sc.parallelize([(1, 'a')]).saveAsSequenceFile(D + '/new')", ""),
    "save_by_java": ("sc.textFile(D + '/in.txt')._jrdd.saveAsTextFile(D + '/new')", "new"),
    "write_by_java": (_DF + "df._jdf.write().mode('overwrite').csv(D + '/out')", "out"),
    "insert_directory": (
        "spark.sql(f\"insert overwrite directory '{D}/out' using csv select 1\")",
        "out",
    ),
    "save_as_table": (_DF + "df.write.saveAsTable('t')", "CreateDataSourceTableAsSelect"),
    "create_table": (
        "spark.sql(f\"create table t (a int) using csv location '{D}'\")",
        "CreateDataSourceTable",
    ),
    "create_table_as": (
        "spark.sql('create table t2 using csv as select 1 a')",
        "CreateDataSourceTableAsSelect",
    ),
    "create_database": ("spark.sql('create database d')", "CreateNamespace"),
    "create_view": ("spark.sql('create view v as select 1 a')", "CreateView"),
    "create_function": ("spark.sql(\"create function f as 'com.acme.F'\")", "Function"),
    "drop_database": ("spark.sql('drop database if exists d cascade')", "DropNamespace"),
    "write_jdbc": (
        _DF + "df.write.jdbc('jdbc:none://x/y', 't', properties={'driver': 'java.lang.String'})",
        "Save",
    ),
    "write_v2": (_DF + "df.writeTo('t').create()", "AsSelect"),
    "script_transform": (
        'spark.sql("select transform(a) using \'rm -rf " + D + "\' as (b) from values (1) t(a)").collect()',
        "rm -rf",
    ),
    "sql_reflection": (
        "spark.sql(\"select reflect('java.lang.System', 'setProperty', 'a', 'b')\").collect()",
        "System",
    ),
    "model_overwrite": (
        "from pyspark.ml.feature import Tokenizer; Tokenizer().write().overwrite().save(D + '/out')",
        "out",
    ),
    "model_new": ("from pyspark.ml.feature import Tokenizer; Tokenizer().save(D + '/new')", "new"),
    "streaming": (
        "q = spark.readStream.format('rate').load().writeStream.format('parquet')"
        ".option('path', D + '/out').option('checkpointLocation', D + '/c').start(); q.stop()",
        "stream",
    ),
    "dstreams": (
        "from pyspark.streaming import StreamingContext; StreamingContext(sc, 1)",
        "streams",
    ),
    "checkpoint": ("sc.setCheckpointDir(D); r = sc.parallelize([1]); r.checkpoint(); r.count()", ""),
    "checkpoint_by_java": ("sc._jsc.setCheckpointDir(D)", "data"),
    # -- file systems by py4j ---------------------------------------------------------------------------
    "fs_delete": (_FS + "fs.delete(P(D), True)", "data"),
    "fs_delete_file": (_FS + "fs.delete(P(D + '/in.txt'), False)", "in.txt"),
    "fs_rename": (_FS + "fs.rename(P(D + '/in.txt'), P(D + '/moved'))", "in.txt"),
    "fs_create": (_FS + "fs.create(P(D + '/new')).close()", "new"),
    "fs_create_over": (_FS + "fs.create(P(D + '/in.txt'), True).close()", "in.txt"),
    "fs_append": (_FS + "fs.getRaw().append(P(D + '/in.txt')).close()", "in.txt"),
    "fs_mkdirs": (_FS + "fs.mkdirs(P(D + '/a/b'))", "/a"),
    "fs_truncate": (_FS + "fs.getRaw().truncate(P(D + '/in.txt'), 0)", "in.txt"),
    "fs_permission": (
        _FS
        + "fs.setPermission(P(D + '/in.txt'), sc._jvm.org.apache.hadoop.fs.permission.FsPermission('777'))",
        "in.txt",
    ),
    "fs_times": (_FS + "fs.setTimes(P(D + '/in.txt'), 1, 1)", "in.txt"),
    "fs_link_in_sandbox": (
        _FS + "import os, tempfile; n = tempfile.mkdtemp() + '/x'; os.symlink(D, n)\n"
        "fs.delete(P(n + '/in.txt'), False)",
        "in.txt",
    ),
    "fs_move_from_local": (
        _FS + "import tempfile; fs.moveFromLocalFile(P(D + '/in.txt'), P(tempfile.mkdtemp() + '/x'))",
        "in.txt",
    ),
    "fs_copy_to_local": (_FS + "fs.copyToLocalFile(False, P(D + '/in.txt'), P(D + '/copy'))", "copy"),
    "fs_raw": (_FS + "fs.getRawFileSystem().delete(P(D + '/in.txt'), False)", "in.txt"),
    "fs_local": (
        _FS
        + "sc._jvm.org.apache.hadoop.fs.FileSystem.getLocal(sc._jvm.org.apache.hadoop.conf.Configuration())"
        ".delete(P(D + '/in.txt'), False)",
        "in.txt",
    ),
    "fs_new_instance": (
        _FS + "c = sc._jvm.org.apache.hadoop.conf.Configuration(); u = sc._jvm.java.net.URI('file:///')\n"
        "sc._jvm.org.apache.hadoop.fs.FileSystem.newInstance(u, c).delete(P(D + '/in.txt'), False)",
        "in.txt",
    ),
    "fs_context": (
        _FS + "sc._jvm.org.apache.hadoop.fs.FileContext.getFileContext(sc._jsc.hadoopConfiguration())"
        ".delete(P('file:' + D + '/in.txt'), False)",
        "in.txt",
    ),
    "fs_setting": (
        "sc._jsc.hadoopConfiguration().set('fs.file.impl', 'org.apache.hadoop.fs.LocalFileSystem')",
        "fs.file.impl",
    ),
    "fs_trash": (
        _FS + "conf = sc._jsc.hadoopConfiguration()\n"
        "sc._jvm.org.apache.hadoop.fs.Trash.moveToAppropriateTrash(fs, P(D), conf)",
        "Trash",
    ),
    "fs_util": (
        _FS + "sc._jvm.org.apache.hadoop.fs.FileUtil.fullyDelete(None)",
        "fullyDelete",
    ),
    # -- the JVM itself ---------------------------------------------------------------------------------
    "java_file": ("sc._jvm.java.io.File(D + '/in.txt').delete()", "in.txt"),
    "java_file_times": ("sc._jvm.java.io.File(D + '/in.txt').setLastModified(1)", "in.txt"),
    "java_writer": ("sc._jvm.java.io.FileOutputStream(D + '/in.txt').close()", "in.txt"),
    "java_files": ("sc._jvm.java.nio.file.Files.delete(None)", "Files.delete"),
    "java_paths": ("sc._jvm.java.nio.file.Paths.get(D + '/in.txt', [])", "Paths.get"),
    "java_runtime": ("sc._jvm.java.lang.Runtime.getRuntime().exec('rm -rf ' + D)", "getRuntime"),
    "java_process": ("sc._jvm.java.lang.ProcessBuilder(['rm', '-rf', D]).start()", "ProcessBuilder"),
    "java_exit": ("sc._jvm.java.lang.System.exit(3)", "System.exit"),
    "java_class": ("sc._jvm.java.lang.Class.forName('java.io.File')", "java.io.File"),
    "java_reflection": (
        "sc._jvm.java.util.ArrayList().getClass().forName('java.io.File')",
        "java.io.File",
    ),
    "scala_process": ("sc._jvm.scala.sys.process.Process.apply('rm -rf ' + D)", "rm -rf"),
    "spark_utils": ("sc._jvm.org.apache.spark.util.Utils.deleteRecursively(None)", "deleteRecursively"),
    # -- functions of the user's in workers -------------------------------------------------------------
    "worker_open": (
        "sc.parallelize([D]).map(lambda d: open(d + '/in.txt', 'w').write('x')).collect()",
        "in.txt",
    ),
    "worker_remove": (
        "import os\ndef run(p): return [os.remove(d + '/in.txt') for d in p]\n"
        "sc.parallelize([D]).mapPartitions(run).count()",
        "in.txt",
    ),
    "worker_rmtree_quiet": (
        "import shutil\nsc.parallelize([D]).map(lambda d: shutil.rmtree(d, ignore_errors=True)).collect()",
        "data",
    ),
    "worker_chmod": (
        "import os\nsc.parallelize([D]).map(lambda d: os.chmod(d + '/in.txt', 0o777)).collect()",
        "in.txt",
    ),
    "worker_process": (
        "import subprocess\nsc.parallelize([D]).map(lambda d: subprocess.call(['rm', '-rf', d])).collect()",
        "rm -rf",
    ),
    "worker_system": (
        "import os\nsc.parallelize([D]).map(lambda d: os.system('rm -rf ' + d)).collect()",
        "rm -rf",
    ),
    "worker_fork": (
        "import multiprocessing, os\ndef run(d):\n"
        "    p = multiprocessing.get_context('fork').Process(target=os.remove, args=(d + '/in.txt',))\n"
        "    p.start(); p.join()\nsc.parallelize([D]).map(run).collect()",
        "in.txt",
    ),
    "worker_thread": (
        "import threading, os\ndef run(d):\n"
        "    t = threading.Thread(target=os.remove, args=(d + '/in.txt',))\n"
        "    t.start(); t.join()\nsc.parallelize([D]).map(run).collect()",
        "in.txt",
    ),
    "worker_ctypes": (
        "def run(d):\n    import ctypes\n    return ctypes.CDLL(None).unlink((d + '/in.txt').encode())\n"
        "sc.parallelize([D]).map(run).collect()",
        "library",
    ),
    "pipe": ("sc.parallelize(['a']).pipe('rm -rf ' + D).collect()", "rm -rf"),
    "udf": (
        "from pyspark.sql.functions import udf, lit\n"
        "spark.range(1).select(udf(lambda d: open(d + '/in.txt', 'w').write('x'), 'int')(lit(D)))"
        ".collect()",
        "in.txt",
    ),
    "map_in_pandas": (
        "def run(frames):\n    import os\n    for f in frames:\n"
        "        os.remove(f.d[0] + '/in.txt')\n        yield f\n"
        "from pyspark.sql.functions import lit\n"
        "spark.range(1).select(lit(D).alias('d')).mapInPandas(run, 'd string').count()",
        "in.txt",
    ),
    "sort_key": (
        "import os\nsc.parallelize([D, D]).sortBy(lambda d: os.remove(d + '/in.txt') or 1).collect()",
        "in.txt",
    ),
    "foreach": ("sc.parallelize([D]).foreach(lambda d: open(d + '/in.txt', 'w').write('x'))", ""),
    "foreach_partition": (
        "import shutil\nsc.parallelize([D]).foreachPartition(lambda p: [shutil.rmtree(d) for d in p])",
        "",
    ),
    "frame_foreach": (
        "import os\nfrom pyspark.sql.functions import lit\n"
        "spark.range(1).select(lit(D).alias('d')).foreach(lambda r: os.remove(r.d + '/in.txt'))",
        "",
    ),
    "run_job": (
        "import os\nsc.runJob(sc.parallelize([D]), lambda p: [os.remove(d + '/in.txt') for d in p])",
        "runJob",
    ),
    # -- the driver, around a job -----------------------------------------------------------------------
    "driver_report": ("open(D + '/report.csv', 'w').write(str(sc.parallelize([1]).sum()))", "report.csv"),
    "driver_rmtree": ("import shutil; shutil.rmtree(D)", "data"),
    "pandas_csv": ("spark.range(2).toPandas().to_csv(D + '/frame.csv')", "frame.csv"),
    "driver_process": ("import subprocess; subprocess.run(['rm', '-rf', D])", "rm -rf"),
    "driver_environment": ("import os; os.environ.pop('LINEAGE_REPLAY')", "LINEAGE_REPLAY"),
}

#: What ends well, and changes nothing of anybody's.
FRIENDLY: dict[str, str] = {
    "reads": "assert sc.textFile(D + '/in.txt').count() == 3; "
    "assert spark.read.text(D + '/in.txt').count() == 3",
    "shuffles": (
        "assert dict(sc.parallelize(range(100), 3).map(lambda n: (n % 3, 1))"
        ".reduceByKey(lambda a, b: a + b).collect())"
        " == {0: 34, 1: 33, 2: 33}"
    ),
    "spills": (
        "assert sc.parallelize(range(20000), 2).map(lambda n: (n % 7, 'x' * 200)).groupByKey()"
        ".mapValues(len).count() == 7"
    ),
    "sql": (
        "spark.range(9).createOrReplaceTempView('v'); spark.sql('cache table v'); "
        "spark.sql('select * from v').collect()\n"
        "spark.sql('show tables').collect(); spark.sql('describe v').collect(); "
        "spark.sql('set a=b').collect()\n"
        "spark.sql('explain select 1').collect(); spark.sql('uncache table v'); "
        "spark.catalog.listTables()\n"
        "spark.catalog.dropTempView('v'); spark.sql('create temporary view w as select 1 a'); "
        "spark.sql('drop view w')"
    ),
    "noop": "spark.range(9).write.format('noop').mode('overwrite').save()",
    "udf": (
        "from pyspark.sql.functions import udf\n"
        "assert spark.range(3).select(udf(lambda n: n + 1, 'long')('id')).count() == 3"
    ),
    "pandas": "assert spark.range(3).toPandas()['id'].sum() == 3",
    "broadcast": "b = sc.broadcast({1: 2}); "
    "assert sc.parallelize([1]).map(lambda n: b.value[n]).collect() == [2]",
    "accumulator": "a = sc.accumulator(0); "
    "assert sc.parallelize([1, 2]).map(lambda n: a.add(n)).count() == 2",
    "add_file": (
        "import os\nfrom pyspark import SparkFiles\nsc.addFile(D + '/in.txt')\n"
        "assert sc.parallelize([1]).map(lambda _: os.path.getsize(SparkFiles.get('in.txt')))"
        ".collect() == [14]"
    ),
    "temporary_in_worker": (
        "def run(n):\n    import tempfile\n"
        "    with tempfile.NamedTemporaryFile('w') as f: return f.write('abc')\n"
        "assert sc.parallelize([1, 2]).map(run).collect() == [3, 3]"
    ),
    "file_system": _FS + "assert fs.exists(P(D)); assert len(fs.listStatus(P(D)))\n"
    "fs.mkdirs(P(D)); fs.delete(P(D + '/none'), True)",
    "hadoop_in_sandbox": (
        _FS + "import tempfile; t = tempfile.mkdtemp()\n"
        "fs.mkdirs(P(t + '/a/b')); fs.create(P(t + '/a/x')).close()\n"
        "assert fs.rename(P(t + '/a/x'), P(t + '/a/b/y')); assert fs.delete(P(t), True)"
    ),
    "java": "sc._jvm.java.lang.System.currentTimeMillis(); sc._jvm.java.util.ArrayList(); "
    "sc.setLogLevel('ERROR')",
    "checkpoint_frame": "sc.setCheckpointDir('/nowhere'); assert spark.range(3).checkpoint().count() == 3",
    "written_and_read": "spark.range(3).write.parquet(D + '/copy'); "
    "assert spark.read.parquet(D + '/copy').count() == 3",
}

_BEGIN = """\
import json, sys
from pyspark.sql import SparkSession
DATA = sys.argv[1]
def main():
    global spark, sc
    spark = SparkSession.builder.master({master!r}).config("spark.ui.enabled", "false").getOrCreate()
    sc = spark.sparkContext
    for step in STEPS:
        try:
            step(DATA + "/" + step.__name__)
            print("STEP", json.dumps([step.__name__, ""]), flush=True)
        except BaseException as error:
            print("STEP", json.dumps([step.__name__, repr(error)[:2000]]), flush=True)
    spark.stop()
"""
_END = """
if __name__ == "__main__":
    main()
"""


def script_of(steps: Mapping[str, str], master: str = "local[2]") -> str:
    """A script that runs the steps, and prints how each ended."""
    functions = [f"def {name}(D):\n{indent(dedent(text), '    ')}\n" for name, text in steps.items()]
    listed = f"STEPS = [{', '.join(steps)}]\n"
    return "\n".join([_BEGIN.format(master=master), *functions, listed, _END])


def make_data(data: Path, steps: Iterable[str]) -> None:
    """A folder of data for each step."""
    for name in steps:
        (data / name / "out").mkdir(parents=True)
        (data / name / "in.txt").write_text("one\ntwo\nthree\n")
        (data / name / "out" / "part-00000").write_text("old\n")
