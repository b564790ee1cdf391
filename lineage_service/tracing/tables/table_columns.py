"""The columns of a version of a table in one of its data files: what a condition on them reads there. Pure.

A file may lack columns that were added later, and never has those that the table is partitioned by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineage_service.conditions.column_types import ColumnType
from lineage_service.conditions.columns import Columns, Operand, Read, quoted
from lineage_service.conditions.tree import Column
from lineage_service.tracing.files.json_values import exact_json
from lineage_service.tracing.tables.table_version import DataFile, TableColumn, TableVersion

__all__ = ["columns_in", "constant_columns", "physical_names", "shown_row"]


def constant_columns(version: TableVersion, file: DataFile | None = None) -> Columns:
    """Columns that a table is partitioned by, as they are in a file. Without one: all, and each is null."""
    by_name = {}
    for column in version.columns:
        if file is None or column.name in version.partition_columns:
            value = None if file is None else file.partitions.get(column.name)
            by_name[column.name] = column.type, _constant(value)
    return Columns(by_name)


def columns_in(version: TableVersion, file: DataFile, types: Mapping[str, ColumnType]) -> Columns:
    """All columns of the table. `types` are those of the file, by physical names."""
    by_name: dict[str, tuple[ColumnType, Read]] = {}
    for column in version.columns:
        type = types.get(column.physical)
        if column.name in version.partition_columns:
            continue
        if type is None:
            by_name[column.name] = column.type, _constant(None)
        else:
            by_name[column.name] = _type_in(column, type), _reading(column, type)
    return Columns(by_name) | constant_columns(version, file)


def physical_names(
    version: TableVersion, columns: Sequence[Column], types: Mapping[str, ColumnType]
) -> list[str]:
    """The columns of a file that a condition on these columns reads."""
    of_table = constant_columns(version)
    by_name = {column.name: column.physical for column in version.columns}
    named = (names[0] for column in columns if (names := of_table.names_of(column)))
    return [
        by_name[name]
        for name in dict.fromkeys(named)
        if by_name[name] in types and name not in version.partition_columns
    ]


def shown_row(version: TableVersion, file: DataFile, values: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a file by the columns of the table, as JSON. `values` are by physical names."""
    return {
        column.name: exact_json(
            file.partitions.get(column.name)
            if column.name in version.partition_columns
            else _named(column, values.get(column.physical))
        )
        for column in version.columns
    }


def _named(column: TableColumn, value: Any) -> Any:
    """A struct by the names of its fields."""
    if not column.fields or not isinstance(value, Mapping):
        return value
    return {inner.name: _named(inner, value.get(inner.physical)) for inner in column.fields}


def _type_in(column: TableColumn, type: ColumnType) -> ColumnType:
    """As it is in a file, with the names of the table."""
    if type.kind != "struct":
        return type
    fields = {
        inner.name: _type_in(inner, type.fields[inner.physical])
        if inner.physical in type.fields
        else inner.type
        for inner in column.fields
    }
    return replace(type, fields=fields)


def _reading(column: TableColumn, type: ColumnType) -> Read:
    def read(names: tuple[str, ...], asked: ColumnType) -> Operand:
        at, within, path = column, type, [column.physical]
        for name in names[1:]:
            at = next(inner for inner in at.fields if inner.name == name)
            if at.physical not in within.fields:
                return _constant(None)(names, asked)
            within = within.fields[at.physical]
            path.append(at.physical)
        first, *others = map(quoted, path)
        return Operand(f"({first})" + "".join(f".{name}" for name in others), asked)

    return read


def _constant(value: object) -> Read:
    def read(names: tuple[str, ...], type: ColumnType) -> Operand:
        if value is None:
            return Operand(f"CAST(NULL AS {type.sql})", type)
        return Operand(f"CAST(? AS {type.sql})", type, (value,))

    return read
