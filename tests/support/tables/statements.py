"""A job that runs statements, of which some may fail: `python statements.py FOLDER`, unmodified.

FOLDER/statements.json has their texts. A view NAME stands for FOLDER/NAME.csv. FOLDER/outcomes.json says of
each statement `done`, or the error that the program got.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
session = SparkSession.builder.appName("statements").getOrCreate()
session.sparkContext.setLogLevel("OFF")
for path in folder.glob("*.csv"):
    frame = session.read.schema("id BIGINT, name STRING, v INT, p STRING").csv(str(path))
    frame.createOrReplaceTempView(path.stem)
outcomes = []
for statement in json.loads((folder / "statements.json").read_text()):
    try:
        session.sql(statement)
        outcomes.append("done")
    except Exception as error:  # noqa: BLE001 - whatever the program gets
        message = str(error).splitlines()[0]
        outcomes.append(f"{type(error).__name__} {message}")
(folder / "outcomes.json").write_text(json.dumps(outcomes))
session.stop()
