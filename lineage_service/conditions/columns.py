"""The columns that a condition can name, and how DuckDB reads each of them.

A name is looked up as Spark does it: as it is written, else in any case where only one column fits. What is
not there is an error with the nearest name. Values of a file without types are texts; where the schema says
more, what cannot be read as that is null, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from lineage_service.conditions.column_types import LOOSE_TEXT, ColumnType
from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.tree import Column

__all__ = ["Columns", "Operand", "columnar", "constants", "delimited", "json_lines", "quoted"]

#: How alike names must be to be offered (difflib), and how many are listed where none is.
_ALIKE, _LISTED = 0.6, 12


@dataclass(frozen=True, slots=True)
class Operand:
    """What stands for a column or a value in a query, and the parameters in it, in their order."""

    sql: str
    type: ColumnType
    parameters: tuple[object, ...] = ()


Read = Callable[[tuple[str, ...], ColumnType], Operand]
"""From the names in the data, and the type, to what reads it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Name -> (type, what reads it). `|` adds columns that hide those of the same name."""

    by_name: Mapping[str, tuple[ColumnType, Read]]

    def __or__(self, other: Columns) -> Columns:
        return Columns({**self.by_name, **other.by_name})

    def types(self) -> dict[str, ColumnType]:
        return {name: type for name, (type, _) in self.by_name.items()}

    def names_of(self, column: Column) -> tuple[str, ...] | None:
        """The names in the data of a column and of its fields; None where it is not there."""
        types: Mapping[str, ColumnType] = self.types()
        names: list[str] = []
        for part in column.parts:
            name = _name_of(part, types)
            if name is None:
                return None
            names.append(name)
            types = types[name].fields
        return tuple(names)

    def operand_of(self, column: Column, condition: str) -> Operand:
        """Raises ConditionError."""
        names = self.names_of(column)
        if names is None:
            raise self._unknown(column, condition)
        type, read = self.by_name[names[0]]
        for name in names[1:]:
            type = type.fields[name]
        return read(names, type)

    def _unknown(self, column: Column, condition: str) -> ConditionError:
        types: Mapping[str, ColumnType] = self.types()
        before: list[str] = []
        for part in column.parts:
            name = _name_of(part, types)
            if name is None:
                return ConditionError(_missing(part, before, types), condition, column.at)
            before.append(name)
            types = types[name].fields
        raise AssertionError(column)


def quoted(name: str) -> str:
    """A name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def columnar(types: Mapping[str, ColumnType]) -> Columns:
    """Columns of a table with types."""
    return Columns({name: (type, _by_name) for name, type in types.items()})


def delimited(types: Mapping[str, ColumnType]) -> Columns:
    """Columns of a table of texts, such as the fields of CSV, that are to be read as these types.

    In the table they are called `c0`, `c1` and so on, whatever stands in their names.
    """

    def field(at: int) -> Read:
        return lambda names, type: _typed(Operand(f"c{at}", LOOSE_TEXT), type)

    return Columns({name: (_loosened(type), field(at)) for at, (name, type) in enumerate(types.items())})


def json_lines(types: Mapping[str, ColumnType]) -> Columns:
    """Keys of the JSON objects in the column `c0` of a table."""

    def read(names: tuple[str, ...], type: ColumnType) -> Operand:
        pointer = "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)
        text = Operand("json_extract_string(c0, ?)", LOOSE_TEXT, (pointer,))
        return _typed(text, type)

    return Columns({name: (_loosened(type), read) for name, type in types.items()})


def constants(values: Mapping[str, tuple[str | None, ColumnType]]) -> Columns:
    """Columns with one value each, given as a text: those of the folders of a table."""

    def constant(value: str | None) -> Read:
        text = Operand("CAST(? AS VARCHAR)", LOOSE_TEXT, (value,))
        return lambda names, type: _typed(text, type)

    return Columns({name: (_loosened(type), constant(value)) for name, (value, type) in values.items()})


def _by_name(names: tuple[str, ...], type: ColumnType) -> Operand:
    first, *others = map(quoted, names)
    return Operand(f"({first})" + "".join(f".{name}" for name in others), type)


def _loosened(type: ColumnType) -> ColumnType:
    fields = {name: _loosened(inner) for name, inner in type.fields.items()}
    return replace(type, fields=fields, is_loose=type.kind == "text")


def _typed(text: Operand, type: ColumnType) -> Operand:
    """A text as a value of a type, null where it is none."""
    template = _CASTS.get(type.kind, "{text}")
    if type.kind == "number" and type.bounds is not None:
        template = _INTEGER
    sql = template.format(text=text.sql, type=type.sql)
    return Operand(sql, type, text.parameters * template.count("{text}"))


_INTEGER = "CASE WHEN regexp_full_match({text}, '[+-]?[0-9]{{1,20}}') THEN TRY_CAST({text} AS {type}) END"
_CASTS = {
    "number": "TRY_CAST({text} AS {type})",
    "boolean": "CASE lower({text}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END",
    "date": "TRY_CAST({text} AS {type})",
    "timestamp": "TRY_CAST({text} AS {type})",
}


def _name_of(part: str, types: Mapping[str, ColumnType]) -> str | None:
    if part in types:
        return part
    alike = [name for name in types if name.casefold() == part.casefold()]
    return alike[0] if len(alike) == 1 else None


def _missing(part: str, before: list[str], types: Mapping[str, ColumnType]) -> str:
    within = f" in {'.'.join(before)}" if before else ""
    several = [name for name in types if name.casefold() == part.casefold()]
    if several:
        return f"several columns{within} are called {part}: write {' or '.join(several)}"
    if not types:
        return (
            f"there is no {part}{within}: it has no fields" if before else "there are no columns to ask for"
        )
    near = get_close_matches(part.casefold(), {name.casefold(): name for name in types}, n=1, cutoff=_ALIKE)
    if near:
        name = next(name for name in types if name.casefold() == near[0])
        return f"there is no column {part}{within}: did you mean {name}?"
    return f"there is no column {part}{within}; there are {', '.join(_some(types))}"


def _some(types: Mapping[str, ColumnType]) -> Iterator[str]:
    names = list(types)
    yield from names[:_LISTED]
    if len(names) > _LISTED:
        yield f"and {len(names) - _LISTED:,} more"
