"""The columns of a file of CSV: what they are called, and the texts of each record by them. Pure.

Spark gives the names of a schema to the fields by their places. Fields that are missing are null, those
behind the last column are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lineage_service.tracing.files.csv_dialect import CsvDialect
from lineage_service.tracing.files.csv_lines import delimiter_of, fields_of

__all__ = ["LOOKED_AT", "CsvColumns"]

#: Records at the beginning of a file by which its form is known.
LOOKED_AT = 20


class CsvColumns:
    """`dialect` has a delimiter here, and `names` has a name for each place."""

    def __init__(
        self, records: Sequence[str], schema: Sequence[str], dialect: CsvDialect, *, has_header: bool
    ) -> None:
        """`records` are the first ones of the file, with its header. `schema` are the columns in the file."""
        if dialect.delimiter is None:
            delimiter = delimiter_of(records[:LOOKED_AT], len(schema) or None, dialect)
            dialect = replace(dialect, delimiter=delimiter)
        self.dialect = dialect
        fields = [fields_of(record, dialect) for record in records[:LOOKED_AT]]
        header = fields[0] if has_header and fields else None
        self.names = _names(header, schema, max(map(len, fields), default=0))

    def of(self, record: str) -> Mapping[str, str | None]:
        fields = fields_of(record, self.dialect)
        missing = [None] * (len(self.names) - len(fields))
        texts: dict[str, str | None] = {}
        for name, text in zip(self.names, [*fields, *missing], strict=False):
            texts.setdefault(name, text)  # of equal names the first
        return texts


def _names(header: Sequence[str | None] | None, schema: Sequence[str], width: int) -> list[str]:
    if header is None:
        return list(schema) or [f"_c{at}" for at in range(width)]
    names = [name if name is not None else f"_c{at}" for at, name in enumerate(header)]
    # A schema that was too long for an event has only its first columns.
    return names if names[: len(schema)] == list(schema) else list(schema)
