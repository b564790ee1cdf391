"""One row of a file that a query wrote, as a condition that the rows of the query meet that became it.

A row of Parquet or ORC has typed values: each column is compared with its value, null with null. In a text
format a value can be written in one way and read in another (spaces, nulls, times), so columns are compared
with the text that Spark's own writer makes of them. Each condition is of one column, so that the optimiser
can push it to where rows are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

#: Formats of which rows are found by their place.
TYPED, LINES = ("parquet", "orc"), ("text", "csv", "json")
#: Spark writes these as Python reads them.
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_UTF8 = ("", "utf-8", "utf8")


class RowError(Exception):
    """The row cannot be had from its file, or not as values; the text says why and what to do."""


@dataclass(frozen=True)
class WrittenColumn:
    """A column of an output: as it is named there, and its type."""

    name: str
    type: Any  # of the JVM

    @property
    def type_name(self) -> str:
        return str(self.type.catalogString()).lower()


@dataclass(frozen=True)
class WrittenFile:
    """A file below the root of an output. `folders` are the columns that are folders (`tag=x`)."""

    path: str
    root: str
    format: str
    options: Mapping[str, str]
    columns: tuple[WrittenColumn, ...]
    folders: tuple[str, ...]

    @property
    def has_header(self) -> bool:
        return self.format == "csv" and self.options.get("header", "false").lower() == "true"

    def values_of_folders(self) -> dict[str, str | None]:
        """What the names of the folders between the root and the file say; a value may be null or empty."""
        between = self.path[len(self.root) :].strip("/").split("/")[:-1]
        values: dict[str, str | None] = {}
        for folder in between:
            name, _, value = folder.partition("=")
            values[unquote(name).lower()] = None if value == _NO_VALUE else unquote(value)
        return values


def line_condition(file: WrittenFile, line: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Columns of a query by their names in the output -> conditions of PySpark, all of which must hold.

    Columns that are left out are not compared. Raises RowError.
    """
    encoding = file.options.get("encoding") or file.options.get("charset") or ""
    if encoding.lower() not in _UTF8:
        raise RowError(f"{file.path} is written in {encoding}; lines of UTF-8 alone can be looked for")
    make = {"text": _text, "csv": _csv, "json": _json}[file.format]
    conditions = make(file, line)

    def of(columns: Mapping[str, Any]) -> list[Any]:
        return [*conditions(columns), *folder_conditions(file, columns)]

    return of


def folder_conditions(file: WrittenFile, columns: Mapping[str, Any]) -> list[Any]:
    """What the folders of a file say of the columns that are not in it."""
    from pyspark.sql import functions as F

    values, conditions = file.values_of_folders(), []
    for name in file.folders:
        if name not in columns or name.lower() not in values:
            continue
        column, value = columns[name].cast("string"), values[name.lower()]
        is_empty = column.isNull() | (column == F.lit(""))
        conditions.append(is_empty if value is None else column == F.lit(value))
    return conditions


def _text(file: WrittenFile, line: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    from pyspark.sql import functions as F

    def of(columns: Mapping[str, Any]) -> list[Any]:
        name = next(column.name for column in file.columns if column.name not in file.folders)
        if name not in columns:
            return []
        column = columns[name]
        return [column == F.lit(line)] if line else [column.isNull() | (column == F.lit(""))]

    return of


def _csv(file: WrittenFile, line: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    from pyspark.sql import functions as F

    options = dict(file.options)
    written = [column for column in file.columns if column.name not in file.folders]
    schema = ", ".join(f"f{at} string" for at in range(len(written)))
    # Of one row that is there without a job: no query of the user's, and none that is captured.
    parsed = F.from_csv(F.lit(line), schema, options).alias("row")
    row = _spark().sql("select 1").select(parsed).collect()[0].row
    fields = list(row) if row is not None else [None] * len(written)

    def of(columns: Mapping[str, Any]) -> list[Any]:
        conditions = []
        for in_file, field in zip(written, fields, strict=True):
            column = columns.get(in_file.name)
            if column is None:
                continue
            if in_file.type_name in _WHOLE and field is not None:
                conditions.append(column == F.lit(int(field)))
                continue
            if in_file.type_name == "string" and field:
                # The writer trims and quotes at the ends only: this one is cheap, and sorts out most.
                conditions.append(F.contains(column, F.lit(field)))
            text = F.to_csv(F.struct(column.alias("f")), options)
            conditions.append(F.from_csv(text, "f string", options)["f"].eqNullSafe(F.lit(field)))
        if len(columns) >= len(file.columns):
            whole = F.struct(*(columns[in_file.name].alias(in_file.name) for in_file in written))
            conditions.append(F.to_csv(whole, options) == F.lit(line))
        return conditions

    return of


def _json(file: WrittenFile, line: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    from pyspark.sql import functions as F

    options = dict(file.options)
    fields = members(line)
    if fields is None:
        raise RowError(f"{file.path}: the line is no JSON object: {line[:80]}")

    def of(columns: Mapping[str, Any]) -> list[Any]:
        conditions = []
        for in_file in file.columns:
            column = columns.get(in_file.name)
            if column is None or in_file.name in file.folders:
                continue
            member = fields.get(in_file.name)
            if member is not None and in_file.type_name in ("string", *_WHOLE):
                conditions.append(column.eqNullSafe(F.lit(json.loads(member))))
            elif member is None:
                conditions.append(column.isNull())
            else:
                text = F.to_json(F.struct(column.alias("f")), options)
                conditions.append(text == F.lit(f'{{"f":{member}}}'))
        return conditions

    return of


def members(line: str) -> dict[str, str] | None:
    """The members of a JSON object, as Spark writes one, each as its text; None for what is none."""
    texts: dict[str, str] = {}
    decoder, at = json.JSONDecoder(strict=False), 1
    try:
        if not isinstance(json.loads(line, strict=False), dict):
            return None
        while line[at] != "}":
            name, colon = decoder.raw_decode(line, at)
            _, end = decoder.raw_decode(line, colon + 1)
            texts[name] = line[colon + 1 : end]
            at = end + (line[end] == ",")
    except (ValueError, IndexError):
        return None
    return texts


def _spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
