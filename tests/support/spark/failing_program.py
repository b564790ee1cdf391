"""A program whose jobs fail on planted records, to be replayed without them.

    python failing_program.py FOLDER NAME ...

Reads FOLDER/in.txt. A name is one of `failing_pipelines`, or `chain SEED`. Prints as JSON what each job gave;
null for one that failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.resultiterable import ResultIterable

from tests.support.spark.failing_pipelines import CASES, random_chain


def read(context: Any, folder: Path) -> Any:
    fields = context.textFile(str(folder / "in.txt"), 2).map(lambda line: line.split("|"))
    return fields.map(lambda parts: (parts[0], int(parts[1])))


def shown(record: Any) -> str:
    if isinstance(record, tuple) and isinstance(record[-1], ResultIterable):
        return repr((*record[:-1], sorted(record[-1])))
    return repr(record)


def run(pairs: Any, name: str, folder: Path) -> Any:
    if name.startswith("chain "):
        return random_chain(pairs, int(name.removeprefix("chain "))).collect()
    return CASES[name].run(pairs, folder)


def main(folder: Path, names: list[str]) -> None:
    context = SparkContext(conf=SparkConf().setMaster("local[2]").setAppName("failing"))
    context.setLogLevel("OFF")
    results: dict[str, Any] = {}
    for at, name in enumerate(names):
        try:
            result = run(read(context, folder), name, folder / f"out-{at}")
            results[name] = sorted(map(shown, result)) if isinstance(result, list) else result
        except Exception as error:  # noqa: BLE001 - what such a job gives is its error
            results[name] = f"failed: {type(error).__name__}"
    context.stop()
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
