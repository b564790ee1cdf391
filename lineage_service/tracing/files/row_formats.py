"""How the files of a source or sink are cut into records: what the agent says of their format. Pure.

docs/contract.md says what formats and options mean. What is said in words that are not known here, or without
the options that belong to them, cannot be cut.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass

from lineage_service.lineage import Column
from lineage_service.tracing.files.csv_dialect import CsvDialect, dialect_of
from lineage_service.tracing.model.elements import TopologyNode
from spark_agent.contract.dataset_names import file_format

__all__ = ["TEXT_LINES", "RowFormat", "columns_of_records", "row_format_named", "row_format_of"]

#: Formats of columns, whose rows have numbers.
_COLUMNAR = frozenset(("parquet", "orc"))
_LINES = frozenset(("text", "csv", "json"))
_HEADER, _COMMENTS, _SEVERAL = "+header", " with comments", " of several lines"
_USUAL = "utf-8"
#: Where Spark puts what it cannot parse, unless it is told otherwise. No record of a file has this column.
_MALFORMED = "_corrupt_record"


@dataclass(frozen=True, slots=True)
class RowFormat:
    """`name` is `text`, `csv`, `json`, or whatever else the agent says.

    Either each record is a line (`has_lines`), or records may have several (`has_several`), or neither is
    known. `dialect` is of CSV.
    """

    name: str
    has_lines: bool = False
    has_several: bool = False
    has_header: bool = False
    dialect: CsvDialect = CsvDialect()  # noqa: RUF009 - frozen
    encoding: str = _USUAL

    @property
    def is_text(self) -> bool:
        """Is each line a record, whatever stands in it?"""
        return self.name == "text"

    @property
    def is_json(self) -> bool:
        return self.name == "json"

    @property
    def is_columnar(self) -> bool:
        return self.name in _COLUMNAR

    @property
    def is_cut(self) -> bool:
        """Is it known which piece of the text of a file is which record?"""
        return self.has_lines or self.has_several


#: Of what is not said otherwise.
TEXT_LINES = RowFormat("text", has_lines=True)


def row_format_of(node: TopologyNode) -> RowFormat:
    if node.dataset is None:
        return TEXT_LINES
    options = node.options
    if options is None and node.expressions is not None:  # of an agent that sent no more
        options = node.expressions.get("options")
    format = file_format(node.dataset.format)
    return _row_format(format, options, is_written=node.kind == "sink")


def columns_of_records(node: TopologyNode) -> tuple[Column, ...]:
    """Of what it reads or writes, without the one that Spark fills when a record is malformed."""
    is_parsed = node.kind == "source" and row_format_of(node).name.startswith(("csv", "json"))
    return tuple(column for column in node.schema if not (is_parsed and column.name == _MALFORMED))


def row_format_named(said: str) -> RowFormat:
    """Of a format without options."""
    return _row_format(said, None, is_written=False)


def _row_format(said: str, options: Mapping[str, str] | None, *, is_written: bool) -> RowFormat:
    name, has_comments = said, said.endswith(_COMMENTS)
    has_several = said.endswith(_SEVERAL)
    name = said.removesuffix(_COMMENTS).removesuffix(_SEVERAL)
    has_header = name == "csv+header"
    name = name.removesuffix(_HEADER)
    is_known = said == f"{name}{_HEADER * has_header}" and name in _LINES
    encoding = _encoding(options)
    if encoding is None or (is_written and encoding != _USUAL):
        return RowFormat(said)
    dialect = dialect_of(options, is_written=is_written)
    if options is not None:
        is_known |= has_comments and bool(dialect.comment)
        has_several &= name in ("csv", "json") and _is_plain(options)
    if not is_known and not (has_several and options is not None):
        return RowFormat(said)
    return RowFormat(
        name,
        has_lines=not has_several,
        has_several=has_several,
        has_header=has_header,
        dialect=dialect,
        encoding=encoding,
    )


def _is_plain(options: Mapping[str, str]) -> bool:
    """Are records of several lines all there, and cut as Spark does unless it is told otherwise?"""
    handling = options.get("unescapedquotehandling", "STOP_AT_DELIMITER").upper()
    delimiter = dialect_of(options).delimiter or ""
    return (
        "linesep" not in options
        and len(delimiter) == 1
        and options.get("mode", "").lower() != "dropmalformed"
        and handling == "STOP_AT_DELIMITER"
    )


def _encoding(options: Mapping[str, str] | None) -> str | None:
    """By Python's name; None where its lines do not end as those of ASCII, or Python does not know it."""
    named = (options or {}).get("encoding", (options or {}).get("charset", _USUAL))
    try:
        name = codecs.lookup(named).name
        is_like_ascii = _SIGNS.encode(name) == _SIGNS.encode() and _SIGNS.encode().decode(name) == _SIGNS
    except (LookupError, ValueError):
        return None
    return name if is_like_ascii else None


#: Some encodings of Python make halves of characters of the last ones, which are no text.
_SIGNS = "\r\n\",'a \\ud800 +2AA-"
