"""Which records of text, CSV and JSON files fulfil a condition, by their numbers.

Lines are read as `record_lines` counts them, so a number here is that of the same record there. DuckDB looks
at many of them at a time, as a table of the columns that the condition names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from lineage_service.conditions.column_types import LOOSE_TEXT, ColumnType
from lineage_service.conditions.columns import Columns, delimited, json_lines
from lineage_service.conditions.filters import Filter
from lineage_service.tracing.files.csv_columns import LOOKED_AT, CsvColumns
from lineage_service.tracing.files.csv_dialect import CsvDialect
from lineage_service.tracing.files.csv_lines import fields_of
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.line_texts import records_in
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES
from lineage_service.tracing.files.row_formats import RowFormat

__all__ = ["LineSearch", "LineTable", "csv_table", "types_of_json"]

#: Records that DuckDB looks at together; the first ones are fewer, so that a page is there soon.
_FIRST, _BATCH = 1 << 12, 1 << 16
#: Records at the beginning of a file by which its form is known, where no schema says it.
_SEEN = 1_000
_RECORD = "record"

Texts = Sequence[str | None]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LineTable:
    """How the records of a file become columns: which there are, and the texts of some of them."""

    columns: Columns
    #: (lines, names of columns) -> columns of the table for DuckDB, by their names there.
    texts_of: Callable[[Sequence[str], Sequence[str]], Mapping[str, Texts]]


class LineSearch:
    """Of the files of one query. `database` is a `searched_database`."""

    def __init__(self, rows: FileRows, database: duckdb.DuckDBPyConnection) -> None:
        self._rows, self._database = rows, database
        #: Records that are no JSON objects, and such that are too long to be looked at as a whole.
        self.malformed = self.cut = 0

    def table(
        self,
        format: RowFormat,
        path: str,
        schema: Mapping[str, ColumnType],
        check: Check,
    ) -> LineTable:
        """By the beginning of the file, and by `schema` if it is known. Raises UnreadableError."""
        if format.is_text:
            return LineTable(delimited({"value": LOOSE_TEXT}), lambda lines, names: {"c0": lines})
        lines = self._rows.first_records(format, path, LOOKED_AT if format.name == "csv" else _SEEN, check)
        if format.is_json:
            types = schema or types_of_json(lines)
            return LineTable(json_lines(types), lambda lines, names: {"c0": lines})
        columns = CsvColumns(lines, list(schema), format.dialect, has_header=format.has_header)
        return csv_table(columns, schema)

    def matching(
        self,
        format: RowFormat,
        path: str,
        start: int,
        table: LineTable,
        filter: Filter,
        names: Sequence[str],
        first: int,
        last: int,
        check: Check,
    ) -> Generator[tuple[int, bool], None, None]:
        """(number, True) of the matches from `first` to before `last`, ascending.

        Between them (number, False), when all before that one were looked at. Numbers count from the
        partition at `start`. Raises UnreadableError.
        """
        for number, lines in self.records(format, path, start, first, last, check):
            check()
            texts = table.texts_of(lines, names)
            for at in self.in_table(texts, len(lines), filter, is_json=format.is_json):
                yield number + int(at), True
            yield number + len(lines), False

    def in_table(self, texts: Mapping[str, Texts], count: int, filter: Filter, *, is_json: bool) -> Numbers:
        """Which of so many records match, by their columns as a `LineTable` names them."""
        columns = {name: pa.array(values, pa.string()) for name, values in texts.items()}
        rows = pa.table({**columns, _RECORD: pa.array(np.arange(count, dtype=np.int64))})
        source = "rows"
        self._database.register("rows", rows)
        try:
            if is_json:  # what is no JSON has no values
                source = f"(SELECT {_RECORD}, CASE WHEN json_valid(c0) THEN c0 END AS c0 FROM rows)"
                self.malformed += _count(
                    self._database.execute("SELECT count(*) FROM rows WHERE NOT json_valid(c0)")
                )
            query = f"SELECT {_RECORD} FROM {source} AS rows WHERE {filter.sql} ORDER BY {_RECORD}"
            result = self._database.execute(query, list(filter.parameters)).fetchnumpy()
        finally:
            self._database.unregister("rows")
        return np.asarray(result[_RECORD], np.int64)

    def records(
        self, format: RowFormat, path: str, start: int, first: int, last: int, check: Check
    ) -> Iterator[tuple[int, Sequence[str]]]:
        """(number of the first, texts) of records of a partition, from `first` to before `last`.

        Raises UnreadableError.
        """
        if format.has_several:
            texts = self._rows.several(format, path, check).texts
            for at in range(first, min(last, len(texts)), _BATCH):
                yield at, texts[at : min(at + _BATCH, last)]
            return
        state = self._rows.files.state(path)
        index = self._rows.indexes.of(path, state, self._rows.text_start(path, state, start, check))
        line, number = first, first
        if not format.is_text:
            lines = self._rows.record_lines(format, path, start, check)
            begin = lines.line_of(first, check)
            if begin is None:
                return
            line, number = begin, lines.records_before(begin, check)
        size = _FIRST
        with index.rows_from(line, check) as rows:
            while number < last and (batch := [data for _, data in islice(rows, size)]):
                self.cut += max(map(len, batch)) > MAX_ROW_BYTES
                texts = records_in(format, batch)
                before = max(first - number, 0)
                if before < len(texts):
                    yield number + before, texts[before : last - number]
                number += len(texts)
                size = _BATCH


def _count(result: duckdb.DuckDBPyConnection) -> int:
    row = result.fetchone()
    return int(row[0]) if row is not None else 0


# -- columns ----------------------------------------------------------------------------------------


def csv_table(columns: CsvColumns, schema: Mapping[str, ColumnType]) -> LineTable:
    names, dialect = columns.names, columns.dialect
    at_of = {name: at for at, name in reversed(list(enumerate(names)))}  # of equal names the first
    types = {name: schema.get(name, LOOSE_TEXT) for name in names}
    number_of = {name: f"c{number}" for number, name in enumerate(types)}

    def texts_of(lines: Sequence[str], chosen: Sequence[str]) -> Mapping[str, Texts]:
        plain = _of_plain_lines(lines, dialect, len(names), {number_of[name]: at_of[name] for name in chosen})
        if plain is not None:
            return plain
        fields = [fields_of(line, dialect) for line in lines]
        return {
            number_of[name]: [field[at] if at < len(field) else None for field in fields]
            for name in chosen
            for at in (at_of[name],)
        }

    return LineTable(delimited(types), texts_of)


def _of_plain_lines(
    lines: Sequence[str], dialect: CsvDialect, width: int, at_of: Mapping[str, int]
) -> Mapping[str, Texts] | None:
    """The columns of lines without quotes that all have as many fields; None of others, which take longer."""
    delimiter, is_trimmed = dialect.delimiter or ",", dialect.is_trimmed_before or dialect.is_trimmed_behind
    text = "\n".join(lines)
    if (dialect.quote and dialect.quote in text) or is_trimmed or len(delimiter) != 1 or "\r" in text:
        return None
    if dialect.is_written and (dialect.null or dialect.empty):  # an empty text is not null there
        return None
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text.encode()),
            read_options=pyarrow.csv.ReadOptions(
                column_names=[f"c{at}" for at in range(width)], use_threads=False
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={f"c{at}": pa.string() for at in range(width)},
                include_columns=[f"c{at}" for at in at_of.values()],
                null_values=["", dialect.null],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != len(lines):
        return None
    return {name: table.column(f"c{at}").combine_chunks() for name, at in at_of.items()}


def types_of_json(lines: Sequence[str]) -> dict[str, ColumnType]:
    """The keys of objects, in the order in which they come; an object in an object is a struct."""
    types: dict[str, ColumnType] = {}
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, dict):
                _add_keys(types, element, 0)
    return types


def _add_keys(types: dict[str, ColumnType], value: Mapping[str, object], depth: int) -> None:
    for name, inner in value.items():
        before = types.get(name, LOOSE_TEXT)
        if isinstance(inner, dict) and depth < _MOST_DEEP:
            fields = dict(before.fields)
            _add_keys(fields, inner, depth + 1)
            types[name] = ColumnType("struct", "struct", fields=fields)
        elif name not in types or before.kind != "struct":
            types[name] = LOOSE_TEXT


_MOST_DEEP = 20
