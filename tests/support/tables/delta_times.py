"""What Spark reads of Delta tables as of a time: `python delta_times.py FOLDER`, without lineage.

Makes FOLDER/plain; FOLDER/kept, which keeps times in its commits; FOLDER/later, which does so from version 8
on; and FOLDER/cleaned, without its first commits. Touches their files so that times do not ascend. Prints
{table: {Unix milliseconds: how many rows are read, or why none are}} as JSON.
"""

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

#: An hour ago: Delta Lake reads no version that is older than a week.
FIRST = int(time.time() - 3_600) * 1_000
MODIFIED = (0, 5_000, 3_000, 3_000, 9_000, 8_999, 20_000, 20_001)
REASONS = {"EARLIER_THAN_COMMIT_RETENTION": "too early", "GREATER_THAN_COMMIT": "too late"}
DEFAULTS = "spark.databricks.delta.properties.defaults"

folder = Path(sys.argv[1])
session = (
    SparkSession.builder.appName("times")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")


def commit(name, version):
    return folder / name / "_delta_log" / f"{version:020d}.json"


def append(name, count):
    for _ in range(count):
        session.range(1).write.format("delta").mode("append").save(str(folder / name))


def make(name):
    session.conf.set(f"{DEFAULTS}.enableInCommitTimestamps", str(name == "kept").lower())
    session.conf.set(f"{DEFAULTS}.checkpointInterval", "4" if name == "cleaned" else "100")
    append(name, len(MODIFIED))
    if name == "later":
        property = "'delta.enableInCommitTimestamps' = 'true'"
        session.sql(f"ALTER TABLE delta.`{folder / name}` SET TBLPROPERTIES ({property})")
        append(name, 2)
    for version, modified in enumerate(MODIFIED):
        modified_ns = (FIRST + modified) * 1_000_000
        os.utime(commit(name, version), ns=(modified_ns, modified_ns))
    for version in range(3 if name == "cleaned" else 0):
        commit(name, version).unlink()


def times_of(name):
    """Times around those of the table, in order."""
    around = {FIRST + modified for modified in (*MODIFIED, 5_003, 7_200_000)}
    for path in (folder / name / "_delta_log").glob("*.json"):
        info = json.loads(path.read_text().splitlines()[0])["commitInfo"]
        around |= {info["inCommitTimestamp"]} if "inCommitTimestamp" in info else set()
    return sorted({at + more for at in around for more in (-1, 0)})


def rows_at(name, at):
    text = session.sql(f"SELECT CAST(timestamp_millis({at}) AS STRING)").first()[0]
    reader = session.read.format("delta").option("timestampAsOf", text)
    try:
        return reader.load(str(folder / name)).count()
    except Exception as error:  # noqa: BLE001 - of Spark's JVM; another one ends the program
        return next(reason for sign, reason in REASONS.items() if sign in str(error))


read = {}
for table in ("plain", "kept", "later", "cleaned"):
    make(table)
    read[table] = {at: rows_at(table, at) for at in times_of(table)}
print(json.dumps(read))
session.stop()
