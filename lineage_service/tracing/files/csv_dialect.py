"""How Spark reads and writes CSV: what its options say of the fields of a line. Pure.

The agent sends the options that a job gave (docs/contract.md); the others are Spark's defaults. Where an
older agent sent none, the delimiter is not known, and it is the one that fits (`csv_lines.delimiter_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CsvDialect", "dialect_of"]

#: How Spark's options write characters that are not easily typed.
_WRITTEN = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", '\\"': '"', "\\'": "'", "\\\\": "\\"}
_NONE = ("", "\0", "\\u0000", "\\0")


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """A character that is not used is empty."""

    delimiter: str | None = None
    quote: str = '"'
    escape: str = "\\"
    #: What is before an escape that means itself, within quotes.
    escape_of_escape: str = "\\"
    #: The text that means null, and the one that is an empty text in quotes.
    null: str = ""
    empty: str = ""
    #: Lines that begin with it are no records.
    comment: str = ""
    is_trimmed_before: bool = False
    is_trimmed_behind: bool = False
    #: Of what a sink wrote: nothing is trimmed any more, and quotes tell an empty text from null.
    is_written: bool = False
    is_quoted_null: bool = True


def dialect_of(options: Mapping[str, str] | None, *, is_written: bool = False) -> CsvDialect:
    """By the options of a reader or a writer, by their names in lower case; None: they are not known."""
    if options is None:
        return CsvDialect(is_written=is_written, is_quoted_null=not is_written)
    quote = _character(options.get("quote"), '"')
    escape = _character(options.get("escape"), "\\")
    usual = "" if quote == escape else escape
    separator = options.get("sep", options.get("delimiter", ","))
    return CsvDialect(
        delimiter=_delimiter(separator),
        quote=quote,
        escape=escape,
        escape_of_escape=_character(options.get("chartoescapequoteescaping"), usual),
        null=options.get("nullvalue", ""),
        empty=options.get("emptyvalue", ""),
        comment=_character(options.get("comment"), ""),
        is_trimmed_before=_flag(options, "ignoreleadingwhitespace"),
        is_trimmed_behind=_flag(options, "ignoretrailingwhitespace"),
        is_written=is_written,
        is_quoted_null=not is_written or _flag(options, "quoteall"),
    )


def _character(text: str | None, usual: str) -> str:
    if text is None:
        return usual
    return "" if text in _NONE else _WRITTEN.get(text, text)[:1]


def _delimiter(text: str) -> str | None:
    """One or several characters; None of what Spark takes otherwise."""
    delimiter = text
    for written, meant in _WRITTEN.items():
        if written in delimiter:
            delimiter = delimiter.replace(written, meant)
    return delimiter or None


def _flag(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"
