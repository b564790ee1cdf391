"""Which readers of DataFrames infer their columns from rows, of a class with PySpark's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark_agent.driver.monkeypatch import Patches
from spark_agent.sql.files import inferred_columns


class Reader:
    """Calls itself as PySpark's reader does."""

    def format(self, source: str) -> Reader:
        return self

    def schema(self, schema: str) -> Reader:
        return self

    def option(self, key: str, value: Any) -> Reader:
        return self

    def options(self, **options: Any) -> Reader:
        return self

    def json(self, path: str, schema: str | None = None) -> str:
        if schema is not None:
            self.schema(schema)
        return path

    def csv(self, path: str, schema: str | None = None, inferSchema: Any = None) -> str:
        if schema is not None:
            self.schema(schema)
        if inferSchema is not None:
            self.option("inferSchema", inferSchema)
        return path

    def load(self, path: str, format: str | None = None, schema: str | None = None, **options: Any) -> str:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        return path

    def parquet(self, path: str) -> str:
        return path


@pytest.mark.parametrize(
    ("read", "inferred"),
    [
        (lambda reader: reader.json("in"), "json"),
        (lambda reader: reader.json("in", "v double"), None),
        (lambda reader: reader.schema("v double").json("in"), None),
        (lambda reader: reader.csv("in"), None),
        (lambda reader: reader.csv("in", inferSchema=True), "csv"),
        (lambda reader: reader.csv("in", inferSchema="false"), None),
        (lambda reader: reader.option("InferSchema", "true").csv("in"), "csv"),
        (lambda reader: reader.options(inferSchema=True).csv("in", schema="v double"), None),
        (lambda reader: reader.format("json").load("in"), "json"),
        (lambda reader: reader.load("in", format="CSV", inferSchema=True), "csv"),
        (lambda reader: reader.load("in", format="json", schema="v double"), None),
        (lambda reader: reader.load("in"), None),
        (lambda reader: reader.parquet("in"), None),
    ],
)
def test_what_infers_columns_is_noticed(read: Callable[[Any], str], inferred: str | None) -> None:
    noticed: list[str] = []
    patches, before = Patches(), dict(vars(Reader))
    inferred_columns.watch(patches, Reader, noticed.append)
    try:
        assert read(Reader()) == "in"
    finally:
        patches.undo()
    assert [text.partition(" ")[0] for text in noticed] == ([] if inferred is None else [inferred])
    assert {name: vars(Reader)[name] for name in before} == before
