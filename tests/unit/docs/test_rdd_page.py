"""docs/rdd.md names every public operation of the installed PySpark's RDDs."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark import RDD, SparkContext

PAGE = Path(__file__).parents[3] / "docs" / "rdd.md"

#: SparkContext's methods that take or make RDDs.
OF_CONTEXT = {
    name
    for name, method in vars(SparkContext).items()
    if not name.startswith("_") and "RDD" in str(getattr(method, "__annotations__", {}))
}


def test_every_public_method_of_an_rdd_is_in_the_table() -> None:
    named = set(re.findall(r"`(?:SparkContext\.)?(\w+)`", PAGE.read_text(encoding="utf-8")))
    public = {name for name in vars(RDD) if not name.startswith("_")} | OF_CONTEXT
    assert {"textFile", "parallelize", "runJob", "union"} <= OF_CONTEXT
    assert public - named == set()
