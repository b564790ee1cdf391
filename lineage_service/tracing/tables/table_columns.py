"""The columns of a version of a table in one of its data files: what a condition on them reads there. Pure.

A file may lack columns that were added later, and never has those that the table is partitioned by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lineage_service.conditions.column_types import ColumnType
from lineage_service.conditions.columns import Columns, Operand, Read, quoted
from lineage_service.conditions.tree import Column
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.json_values import exact_json
from lineage_service.tracing.tables.table_version import DataFile, TableColumn, TableVersion

__all__ = ["columns_in", "constant_columns", "located", "physical_names", "shown_row"]

_NAME_MAPPING = "schema.name-mapping.default"
#: The name of no column of a file.
_NOWHERE = "\0"


def constant_columns(version: TableVersion, file: DataFile | None = None) -> Columns:
    """Columns that a table is partitioned by, as they are in a file. Without one: all, and each is null."""
    by_name = {}
    for column in version.columns:
        if file is None or column.name in version.partition_columns:
            value = None if file is None else file.partitions.get(column.name)
            by_name[column.name] = column.type, _constant(value)
    return Columns(by_name)


def located(version: TableVersion, schema: pa.Schema) -> TableVersion:
    """The version with the names that its columns have in a file of this schema.

    Raises UnreadableError where the numbers of columns are needed, and the file has none.
    """
    if all(column.id is None for column in version.columns):
        return version
    names = dict(_names_by_id(schema)) or dict(_names_mapped(schema, version.properties))
    if not names and len(schema):
        raise UnreadableError("its columns have no numbers by which the table knows them")
    return replace(version, columns=tuple(_located(column, names) for column in version.columns))


def _located(column: TableColumn, names: Mapping[int, str]) -> TableColumn:
    assert column.id is not None
    fields = tuple(_located(inner, names) for inner in column.fields)
    return replace(column, physical=names.get(column.id, _NOWHERE), fields=fields)


def _names_by_id(fields: Iterable[pa.Field]) -> Iterator[tuple[int, str]]:
    """Of all columns, and fields of structs: their numbers are different ones."""
    for field in fields:
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            yield int(number), field.name
        if pa.types.is_struct(field.type):
            yield from _names_by_id(field.type)


def _names_mapped(schema: pa.Schema, properties: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Of a file without numbers, which another engine wrote: by the names that the table says it may have."""
    mapped = json.loads(properties.get(_NAME_MAPPING) or "[]")
    waiting = [(schema, mapped)]
    while waiting:
        fields, said = waiting.pop()
        by_name = {name: entry for entry in said for name in entry.get("names", ())}
        for field in fields:
            entry = by_name.get(field.name)
            if entry is not None and "field-id" in entry:
                yield int(entry["field-id"]), field.name
            if entry is not None and pa.types.is_struct(field.type):
                waiting.append((field.type, entry.get("fields") or ()))


def columns_in(version: TableVersion, file: DataFile, types: Mapping[str, ColumnType]) -> Columns:
    """All columns of the table. `types` are those of the file, by physical names."""
    by_name: dict[str, tuple[ColumnType, Read]] = {}
    for column in version.columns:
        type = types.get(column.physical)
        if column.name in version.partition_columns:
            continue
        if type is None:
            by_name[column.name] = column.type, _constant(_where_lacking(column, file))
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
            _named(column, values[column.physical])
            if column.physical in values and column.name not in version.partition_columns
            else _where_lacking(column, file)
        )
        for column in version.columns
    }


def _named(column: TableColumn, value: Any) -> Any:
    """A struct by the names of its fields."""
    if not column.fields or not isinstance(value, Mapping):
        return value
    return {
        inner.name: _named(inner, value[inner.physical]) if inner.physical in value else inner.default
        for inner in column.fields
    }


def _where_lacking(column: TableColumn, file: DataFile) -> object:
    """The value of a column in a file that does not have it."""
    return file.partitions.get(column.name, column.default)


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
                return _constant(at.default)(names, asked)
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
