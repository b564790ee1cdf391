"""The rows of an input or an output, each with its class (`separation`) and a hash of all that it is.

Files are read as bytes and as Arrow has them. Where Spark may read a row in another way than is read here
(quotes, escapes, empty lines, other encodings, folders of partitions), nothing is read: then it is not known.
A subset is written as files of the same names and format, each with its header or schema, so that Spark finds
in it the columns that it finds in the whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lineage_service.errors import LineageError
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.files.row_formats import columns_of_records, row_format_of
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.triggering.certain.file_looks import FileLook
from lineage_service.triggering.changes.changed_elements import Flags, Keys, row_keys

__all__ = ["ClassRows", "Classes", "UnsureRowsError", "classes_of", "rows_of"]

#: Files of one input, and bytes of all of them.
_MOST_FILES, _MOST_BYTES = 1_000, 4 << 30
#: Options of readers that change nothing of what is read here.
_OPTIONS = frozenset(("header", "sep", "delimiter", "path", "compression", "encoding", "charset"))
_COMPRESSED = re.compile(r"\.(gz|bz2|zst|snappy|lz4|deflate|xz)$")
#: What Spark reads as it stands: in an unquoted field, and as a whole number.
_UNSURE = (b'"', b"\\", b"\r", b"\0", b"\xef\xbb\xbf")
_WHOLE = r"^(|0|-?[1-9][0-9]{0,17})$"
_LINE = "line"
_NUMBERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
_JSON_TYPES = {
    **dict.fromkeys(("string", "date", "timestamp"), pa.string()),
    **dict.fromkeys(_NUMBERS, pa.int64()),
    **{"boolean": pa.bool_(), "float": pa.float64(), "double": pa.float64()},
}
Counts = npt.NDArray[np.int64]


class UnsureRowsError(LineageError):
    """The rows are not known for sure: why."""


@dataclass(frozen=True, slots=True)
class _File:
    """`rows` are those of a table, or lines without their ends; `header` is the line before them."""

    path: str
    rows: pa.Table
    has_lines: bool = False
    header: bytes | None = None
    modified: int = 0  # Unix ms


@dataclass(frozen=True, slots=True)
class ClassRows:
    """`table` has the columns as texts, or as the files have them; `classes` (rows) says which class each row
    is of, `contents` (rows) what it is.
    """

    table: pa.Table
    classes: Keys
    contents: Keys
    files: tuple[_File, ...] = ()

    def __len__(self) -> int:
        return len(self.classes)

    def write(self, chosen: Flags, folder: Path) -> None:
        """These rows, into a new folder. Files keep names and times, which readers may ask for."""
        folder.mkdir(mode=0o700, parents=True)
        first = 0
        for file in self.files:
            rows = file.rows.filter(pa.array(chosen[first : first + file.rows.num_rows]))
            first += file.rows.num_rows
            target = folder / file.path.rpartition("/")[2]
            if file.has_lines:
                lines = [*([] if file.header is None else [file.header]), *rows.column(_LINE).to_pylist()]
                target.write_bytes(b"".join(line + b"\n" for line in lines))
            else:
                import pyarrow.parquet

                pyarrow.parquet.write_table(rows, target)
            os.utime(target, ns=(file.modified * 1_000_000,) * 2)


@dataclass(frozen=True, slots=True)
class Classes:
    """Of all rows of an input: `keys` ascend; `sums` are of the hashes of the rows of each, modulo 2^64."""

    keys: Keys
    sums: Keys
    counts: Counts

    def changed(self, now: Classes) -> Keys:
        """Classes of which a row is new, gone or another one."""
        keys = np.union1d(self.keys, now.keys)
        differs = np.zeros(len(keys), bool)
        for before, after in ((self.sums, now.sums), (self.counts, now.counts)):
            then_of, now_of = np.zeros(len(keys), before.dtype), np.zeros(len(keys), before.dtype)
            then_of[np.searchsorted(keys, self.keys)] = before
            now_of[np.searchsorted(keys, now.keys)] = after
            differs |= then_of != now_of
        return keys[differs]

    def count(self, keys: Keys) -> int:
        """How many rows are of these classes."""
        return int(self.counts[np.isin(self.keys, keys)].sum())


def classes_of(rows: ClassRows) -> Classes:
    keys, at = np.unique(rows.classes, return_inverse=True)
    sums = np.zeros(len(keys), np.uint64)
    np.add.at(sums, at, rows.contents)
    return Classes(keys, sums, np.bincount(at, minlength=len(keys)).astype(np.int64))


def rows_of(look: FileLook, node: TopologyNode, columns: Sequence[str]) -> ClassRows:
    """What stands at a path now; `columns` are those that tell classes apart. `node` has read or written it.

    Raises UnsureRowsError.
    """
    try:
        return _rows_of(look, node, columns)
    except UnsureRowsError:
        raise
    except (LineageError, pa.ArrowException, OSError, ValueError, LookupError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise UnsureRowsError(f"the rows of {look.path} cannot be read for sure: {reason}") from None


def _rows_of(look: FileLook, node: TopologyNode, columns: Sequence[str]) -> ClassRows:
    form = row_format_of(node)
    _check(look, node)
    systems, files, tables = FileSystems(), list[_File](), list[pa.Table]()
    for path in sorted(look.files):
        below = path[len(look.path) :].strip("/") if path.startswith(look.path) else ""
        if "/" in below or (form.name != "parquet" and _COMPRESSED.search(path)):
            raise UnsureRowsError(f"{path} is compressed, or in a folder of a partition")
        with systems.opened(path, at_length=True) as source:
            if form.name == "parquet":
                file, table = _parquet(path, source, is_written=node.kind == "sink")
            else:
                file, table = _lines(path, source.read(), node)
        files.append(replace(file, modified=look.files[path][1]))
        tables.append(table)
    if not tables:
        raise UnsureRowsError(f"{look.path} has no files")
    if any(table.schema != tables[0].schema for table in tables[1:]):
        raise UnsureRowsError(f"the files of {look.path} have different columns")
    table = pa.concat_tables(tables).combine_chunks()
    contents = np.concatenate([_contents(file) for file in files])
    types = {column.name: column.type for column in node.schema}
    is_guessed = node.kind == "source" and form.name != "parquet"
    classes = _classes(table, columns, types, is_guessed=is_guessed)
    return ClassRows(table, classes, contents, tuple(files))


def _check(look: FileLook, node: TopologyNode) -> None:
    form = row_format_of(node)
    is_unsure = set(node.options or ()) - _OPTIONS if node.kind == "source" else False
    if form.name not in ("parquet", "csv", "json", "text") or form.has_several or is_unsure:
        raise UnsureRowsError(f"rows of {look.path} are not read for a probe: format or options are others")
    if form.encoding != "utf-8" or form.dialect.comment or len(form.dialect.delimiter or ",") != 1:
        raise UnsureRowsError(
            f"rows of {look.path} are not read for a probe: its encoding or delimiter is another"
        )
    if look.version is not None or look.count != len(look.files) or look.count > _MOST_FILES:
        raise UnsureRowsError(f"{look.path} is a Delta table, or has more than {_MOST_FILES:,} files")
    if look.bytes > _MOST_BYTES:
        raise UnsureRowsError(f"{look.path} has more than {_MOST_BYTES >> 30} GiB")
    if len({path.rpartition("/")[2] for path in look.files}) < look.count:
        raise UnsureRowsError(f"{look.path} has files of one name in several folders")


def _contents(file: _File) -> Keys:
    """A hash of each row, its header or schema included: under another one it would mean something else."""
    about = (
        (file.header or b"") if file.has_lines else repr([(one.name, one.type) for one in file.rows.schema])
    )
    salt = row_keys(pa.table({_LINE: pa.array([about])}), ())
    return row_keys(file.rows, ()) + salt


def _parquet(path: str, source: Any, *, is_written: bool) -> tuple[_File, pa.Table]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(source).read()
    for field in () if is_written else table.schema:
        kind = field.type
        is_sure = (
            pa.types.is_signed_integer(kind)
            or kind in (pa.string(), pa.bool_(), pa.float32(), pa.float64(), pa.date32())
            or pa.types.is_decimal128(kind)
        )
        if not is_sure and kind != pa.timestamp("us", "UTC"):
            raise UnsureRowsError(f"{path} has a column of {kind}, of which a subset may be read otherwise")
    return _File(path, table), table


def _lines(path: str, text: bytes, node: TopologyNode) -> tuple[_File, pa.Table]:
    form = row_format_of(node)
    if any(sign in text for sign in (_UNSURE if form.name == "csv" else _UNSURE[2:])):
        raise UnsureRowsError(f"{path} has quotes, escapes or ends of lines that are not plain")
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    header = None
    if form.has_header:
        header, lines = (lines[0], lines[1:]) if lines else (None, [])
    if form.name != "text" and not all(line.strip() for line in lines):
        raise UnsureRowsError(f"{path} has empty lines")
    rows = pa.table({_LINE: pa.array(lines, pa.binary())})
    schema = columns_of_records(node)
    if form.name == "text":
        return _File(path, rows, True), pa.table({schema[0].name: rows.column(_LINE).cast(pa.string())})
    read = _csv if form.name == "csv" else _json
    table = read(b"".join(line + b"\n" for line in lines), {c.name: c.type for c in schema}, form)
    if table.num_rows != len(lines):
        raise UnsureRowsError(f"the lines of {path} may be read otherwise")
    return _File(path, rows, True, header), table


def _csv(text: bytes, types: Mapping[str, str], form: Any) -> pa.Table:
    """All columns as texts."""
    from pyarrow import csv

    if not text:
        return pa.table({name: pa.array([], pa.string()) for name in types})
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(column_names=list(types)),
        parse_options=csv.ParseOptions(delimiter=form.dialect.delimiter or ",", quote_char=False),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(types, pa.string()), strings_can_be_null=False
        ),
    )


def _json(text: bytes, types: Mapping[str, str], form: Any) -> pa.Table:
    from pyarrow import json as lines

    unknown = [kind for kind in types.values() if kind not in _JSON_TYPES and not kind.startswith("decimal(")]
    if unknown:
        raise UnsureRowsError(f"JSON with a column of {unknown[0]} is not read for a probe")
    schema = pa.schema([(name, _JSON_TYPES.get(kind, pa.float64())) for name, kind in types.items()])
    if not text:
        return schema.empty_table()
    return lines.read_json(
        pa.BufferReader(text),
        parse_options=lines.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _classes(table: pa.Table, columns: Sequence[str], types: Mapping[str, str], *, is_guessed: bool) -> Keys:
    """A hash of the values as texts. Null, empty and blank texts are one, and so are texts that differ in
    blanks around them: that makes classes larger, and never smaller.
    """
    texts = {}
    for at, name in enumerate(columns):
        column, kind = table.column(name), types.get(name, "")
        if is_guessed and kind in ("date", "boolean"):
            raise UnsureRowsError(f"in which ways Spark reads {name} as a {kind} is not known here")
        if pa.types.is_boolean(column.type):
            column = pc.if_else(column, "true", "false")
        text = pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), ""))
        if kind in _NUMBERS:
            if not pc.all(pc.match_substring_regex(text, _WHOLE), min_count=0).as_py():
                raise UnsureRowsError(
                    f"not all values of {name} are whole numbers as they are usually written"
                )
            pc.if_else(pc.equal(text, ""), "0", text).cast(_NUMBERS[kind])  # raises beyond its range
        elif pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
            raise UnsureRowsError(f"values of {name} have quotes, escapes or control characters")
        texts[str(at)] = text
    return row_keys(pa.table(texts), ())
