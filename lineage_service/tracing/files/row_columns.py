"""The columns of rows that files hold as text, by their names and types. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from lineage_service.tracing.files.json_values import exact_json
from lineage_service.tracing.files.partition_folders import partition_values

__all__ = ["ColumnRequest", "typed", "with_partitions"]

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


def typed(text: str, type_: str) -> Any:
    """A text of a file as a value of its column; as it stands where it is none."""
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
