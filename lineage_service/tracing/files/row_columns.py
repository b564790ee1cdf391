"""The columns of rows that files hold as text, by their names and types. Pure.

CSV is split as Spark does by default: fields that are missing are null, those behind the last column are left
out. Where the delimiter of the job is not known, it is the one that fits the columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from lineage_service.tracing.files.json_values import exact_json
from lineage_service.tracing.files.partition_folders import partition_values

__all__ = ["ColumnRequest", "CsvColumns", "with_partitions"]

_DELIMITERS = (",", "\t", ";", "|")
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_WHOLE_TYPES = frozenset(("tinyint", "smallint", "int", "integer", "bigint", "long"))
_FLOAT_TYPES = frozenset(("float", "double"))


@dataclass(slots=True)
class ColumnRequest:
    """Which columns of rows are wanted; None: all. `types` is filled while files are read.

    `has_text` False: the texts of rows are not needed beside them.
    """

    names: frozenset[str] | None = None
    has_text: bool = True
    types: dict[str, str] = field(default_factory=dict)

    def chosen(self, columns: dict[str, Any]) -> dict[str, Any]:
        if self.names is None:
            return columns
        return {name: value for name, value in columns.items() if name in self.names}


class CsvColumns:
    """How the lines of one CSV file are split into named columns."""

    def __init__(
        self,
        header: str | None,
        types: Mapping[str, str],
        partitions: Sequence[str],
        separator: str | None = None,
    ) -> None:
        """`types` are those of the columns of its node, in their order, as far as they are known.

        `separator` None: it is not known.
        """
        self._types = types
        delimiters = _DELIMITERS if separator is None else (separator,)
        expected = [name for name in types if name not in partitions]
        if header is not None:
            names = [_split(header, delimiter) for delimiter in delimiters]
            self._delimiter, self._names = max(
                zip(delimiters, names, strict=True),
                key=lambda split: (len(types.keys() & set(split[1])), len(split[1])),
            )
        else:
            self._delimiter, self._names = separator or "", expected

    def of(self, line: str) -> dict[str, Any]:
        """The columns of a line; without a header and types, by Spark's names `_c0`, `_c1`."""
        if not self._delimiter:
            self._delimiter = _delimiter_of(line, len(self._names))
        fields = _split(line, self._delimiter)
        if not self._names:
            self._names = [f"_c{number}" for number in range(len(fields))]
        missing = [None] * (len(self._names) - len(fields))
        return {
            name: None if text is None else typed(text, self._types.get(name, ""))
            for name, text in zip(self._names, [*fields, *missing], strict=False)
        }


def _delimiter_of(line: str, columns: int) -> str:
    """The one that gives as many fields, else most."""
    sizes = {delimiter: len(_split(line, delimiter)) for delimiter in _DELIMITERS}
    return max(_DELIMITERS, key=lambda delimiter: (sizes[delimiter] == columns, sizes[delimiter]))


def _split(line: str, delimiter: str) -> list[str]:
    if '"' not in line:
        return line.split(delimiter)
    escape = "\\" if '\\"' in line else None
    try:
        return next(csv.reader([line], delimiter=delimiter, escapechar=escape), [])
    except csv.Error:  # a field beyond the reader's limit
        return line.split(delimiter)


def typed(text: str, type_: str) -> Any:
    """A text of a file as a value of its column; as it stands where it is none. An empty one is null."""
    if not text:
        return None
    bare = text.strip()
    if type_ in _WHOLE_TYPES and _WHOLE.fullmatch(bare):
        return exact_json(int(bare))
    if type_ in _FLOAT_TYPES and _FLOAT.fullmatch(bare):
        return exact_json(float(bare))
    if type_ == "boolean" and bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    if type_.startswith("decimal"):
        return _decimal(bare, text)
    return text


def _decimal(bare: str, text: str) -> str:
    try:
        return str(Decimal(bare))
    except InvalidOperation:
        return text


def with_partitions(path: str, columns: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """With the partition columns of the file, first. What the file itself says of one goes before."""
    of_folders = {
        name: None if text is None else typed(text, types.get(name, ""))
        for name, text in partition_values(path).items()
    }
    return {**of_folders, **columns}
