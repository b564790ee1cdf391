"""The fields of records of CSV, as Spark splits them, and where records of several lines end. Pure.

Spark's parser takes what follows a quote within a field as it stands, up to the next delimiter: a field that
is no whole quoted text keeps its quotes. tests/spark/sql/test_csv_options.py compares this with Spark itself.
Three things are not as there: an escape right behind a closing quote, quotes where several characters are the
delimiter, and doubled quotes where there is no escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from lineage_service.tracing.files.csv_dialect import CsvDialect

__all__ = ["delimiter_of", "fields_of", "record_ends"]

_DELIMITERS = (",", "\t", ";", "|")
_NEVER = re.compile(r"(?!)")
_BLANK = "[\\0-\\x20]"


def delimiter_of(
    records: Sequence[str],
    columns: int | None = None,
    dialect: CsvDialect = CsvDialect(),  # noqa: B008 - frozen
) -> str:
    """The one that fits the quotes, and gives `columns` fields in the most records.

    Without that number, the one that gives the same number in the most.
    """

    def fits(delimiter: str) -> tuple[bool, int, int, int]:
        of_delimiter = replace(dialect, delimiter=delimiter)
        counts = [len(fields_of(record, of_delimiter)) for record in records]
        usual = columns or max(set(counts), key=counts.count, default=1)
        is_split = usual > 1 or columns == 1
        strays = sum(_has_strays(record, of_delimiter) for record in records)
        return (is_split, -strays, sum(count == usual for count in counts), usual)

    return max(_DELIMITERS, key=fits) if records else _DELIMITERS[0]


def _has_strays(record: str, dialect: CsvDialect) -> bool:
    """Are there quotes that begin or end within a field?"""
    quote = dialect.quote
    return (
        bool(quote)
        and quote in record
        and any(is_plain and quote in text for text, is_plain in _Record(record, 0, dialect))
    )


def fields_of(record: str, dialect: CsvDialect) -> list[str | None]:
    """The texts of the fields of one record; None: null."""
    quote, delimiter = dialect.quote, dialect.delimiter or ","
    if not quote or quote not in record:
        return [_plain(field, dialect) for field in record.split(delimiter)]
    return [
        _plain(text, dialect) if is_plain else _quoted(text, dialect)
        for text, is_plain in _Record(record, 0, dialect)
    ]


def record_ends(text: str, dialect: CsvDialect) -> Iterator[tuple[int, int]]:
    """(begin, end) of the records of a file, which may hold ends of lines in quotes. Lines end with LF.

    Raises ValueError where it is not known how Spark cuts them.
    """
    at = 0
    blanks = _blanks(dialect)
    while at < len(text):
        begin = at
        if dialect.is_trimmed_before:
            begin = blanks.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith("\n", begin):
            at = begin + 1
            continue
        if dialect.comment and text.startswith(dialect.comment, begin):
            end = text.find("\n", begin)
            at = len(text) if end < 0 else end + 1
            continue
        record = _Record(text, at, dialect, are_lines_ends=True)
        for _ in record:
            pass
        if record.is_unsure:
            raise ValueError(f"an escape is right behind a quote at character {record.at:,}")
        yield at, record.at
        at = record.at + 1


def _plain(text: str, dialect: CsvDialect) -> str | None:
    if dialect.is_written:
        return None if text == dialect.null else "" if text == dialect.empty else text
    if dialect.is_trimmed_before:
        text = text.lstrip(_CONTROLS)
    if dialect.is_trimmed_behind:
        text = text.rstrip(_CONTROLS)
    return None if not text or text == dialect.null else text


def _quoted(text: str, dialect: CsvDialect) -> str | None:
    """Of what stands in quotes. In what was written so, an empty text is not null."""
    if not dialect.is_written:
        text = text or dialect.empty
    return None if text == dialect.null and dialect.is_quoted_null else text


_CONTROLS = "".join(map(chr, range(33)))


class _Record:
    """The fields of the record that begins at a place, as (text, is it without quotes?).

    `at` is where it ends.
    """

    def __init__(self, text: str, at: int, dialect: CsvDialect, *, are_lines_ends: bool = False) -> None:
        self.at, self.is_unsure = at, False
        self._text, self._dialect, self._are_lines_ends = text, dialect, are_lines_ends
        self._delimiter = dialect.delimiter or ","
        self._clean, self._rest = _fields(dialect, are_lines_ends)
        self._escaped = _escaped(dialect)

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        while True:
            yield self._field()
            if not self._text.startswith(self._delimiter, self.at):
                return
            self.at += len(self._delimiter)

    def _field(self) -> tuple[str, bool]:
        if self._dialect.is_trimmed_before:
            self.at = self._end_of(_blanks(self._dialect), self.at)
        if not self._dialect.quote or not self._text.startswith(self._dialect.quote, self.at):
            begin, self.at = self.at, self._end_of(self._rest, self.at)
            return self._text[begin : self.at], True
        clean = self._clean.match(self._text, self.at)
        if clean is not None:
            self.at = clean.end()
            return self._escaped.sub(self._meant, clean.group(1)), False
        field = _OddField(self._text, self.at, self._dialect, self._are_lines_ends)
        self.at = field.at
        self.is_unsure |= field.is_unsure
        return field.value, field.is_plain

    def _end_of(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self._text, at)
        return at if match is None else match.end()

    def _meant(self, match: re.Match[str]) -> str:
        return match.group()[1:]


@lru_cache
def _fields(dialect: CsvDialect, are_lines_ends: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(a field that is quoted as a whole, with the blanks behind it; the rest of a field)."""
    delimiter, quote = re.escape(dialect.delimiter or ","), re.escape(dialect.quote)
    is_usual = bool(dialect.escape) and dialect.escape_of_escape in ("", dialect.escape)
    ends = [delimiter, *([r"\n"] if are_lines_ends else []), *([r"\Z"] if is_usual else [])]
    any_ = rf"(?:(?!{delimiter})[^\n])" if are_lines_ends else rf"(?:(?!{delimiter}).)"
    rest = re.compile(rf"{any_}*", re.DOTALL)
    if not quote:
        return _NEVER, rest
    special, others = quote, r"(?!)"
    if dialect.escape == dialect.quote:
        others = quote + quote
    elif dialect.escape:
        escape = re.escape(dialect.escape)
        both = escape if dialect.escape_of_escape == dialect.escape else ""
        # An escape that is before anything else stands for itself.
        special, others = quote + escape, rf"{escape}[{quote}{both}]|{escape}(?![{quote}{escape}])."
    # Plain characters as one run: a group that is repeated takes memory for each time.
    inner = rf"[^{special}]*(?:(?:{others})[^{special}]*)*"
    blanks = rf"(?:(?!{delimiter})(?!\n){_BLANK})*"
    clean = rf"{quote}({inner}){quote}{blanks}(?={'|'.join(ends)})"
    return re.compile(clean, re.DOTALL), rest


@lru_cache
def _escaped(dialect: CsvDialect) -> re.Pattern[str]:
    quote, escape = re.escape(dialect.quote), re.escape(dialect.escape)
    if not dialect.escape:
        return _NEVER
    if dialect.escape == dialect.quote:
        return re.compile(quote + quote)
    both = f"|{re.escape(dialect.escape_of_escape)}{escape}" if dialect.escape_of_escape else ""
    return re.compile(f"{escape}{quote}{both}")


class _TextEndedError(Exception):
    """Within a field."""


class _OddField:
    """A field that begins with a quote and is no whole quoted text, read a character at a time.

    `value` is its text, `at` where it ends. It `is_plain` where its quotes are a part of it. `is_unsure`: an
    escape is right behind a quote, and Spark's parser leaves out characters then.
    """

    def __init__(self, text: str, at: int, dialect: CsvDialect, are_lines_ends: bool) -> None:
        self.is_plain, self.at = False, at + len(dialect.quote)
        self._parts: list[str] = []
        self._text, self._dialect, self._are_lines_ends = text, dialect, are_lines_ends
        # Spark's parser has this character for none, and begins as if one was before.
        self._escape, self._both = dialect.escape or "\0", dialect.escape_of_escape or "\0"
        self._before, self._character = "\0", dialect.quote
        self.is_unsure = False
        try:
            self._read()
        except _TextEndedError:
            if self._character == dialect.quote != self._before and not self.is_unsure:
                self._parts.append(dialect.quote)
                self.is_plain = True
        self.value = "".join(self._parts)

    def _read(self) -> None:
        quote, escape = self._dialect.quote, self._escape
        self._next()
        while not (self._before == quote and (self._is_end() or self._character <= " ")):
            if self._character not in (quote, escape):
                if self._before == quote:
                    self._take_rest(quote)
                    return
                if self._before == escape != "\0":
                    self._parts.append(escape)
                self._take_until_sign()
            else:
                self._take_sign()
                self._before = self._character
                self._next()
                if self.is_unsure and self._is_end():
                    self.at -= 1
                    return
        blanks = ""
        while self._character <= " " and not self._is_end():
            blanks += self._character
            self._next()
        if self._is_end():
            self.at -= 1
            return
        begin = self.at - 1
        self._take_rest(quote + blanks)
        if self.at == len(self._text) and self._text[begin : begin + 2][1:] == quote != self._text[begin]:
            self._parts.append(quote)  # as it is in Spark

    def _take_until_sign(self) -> None:
        begin = self.at - 1
        sign = _signs(self._dialect).search(self._text, begin)
        end = len(self._text) if sign is None else sign.start()
        self._parts.append(self._text[begin:end])
        self.at, self._character = min(end + 1, len(self._text)), self._text[min(end, len(self._text) - 1)]
        if sign is None:
            raise _TextEndedError
        self._before = self._character
        self._next()

    def _take_sign(self) -> None:
        """A quote or an escape."""
        quote, escape, both = self._dialect.quote, self._escape, self._both
        if self._character == escape and self._before == both != "\0":
            self._parts.append(escape)
            self._character = "\0"
        elif self._before == escape:
            if self._character == quote:
                self._parts.append(quote)
                self._character = "\0"
            else:
                self._parts.append(self._before)
        elif self._before == quote:
            self._parts.append(quote)
            if self._character != quote:  # an escape behind a quote
                self.is_unsure = True
                self._before = self._character
                self._take_sign()

    def _take_rest(self, behind: str) -> None:
        """What follows a quote stands as it is, up to the next delimiter."""
        self.is_plain = True
        begin, self.at = self.at - 1, self.at - 1
        pattern = _fields(self._dialect, self._are_lines_ends)[1]
        rest = pattern.match(self._text, begin)
        assert rest is not None
        self.at = rest.end()
        self._parts = [self._dialect.quote, *self._parts, behind, rest.group()]

    def _is_end(self) -> bool:
        if self._are_lines_ends and self._character == "\n":
            return True
        return self._text.startswith(self._dialect.delimiter or ",", self.at - 1)

    def _next(self) -> None:
        if self.at == len(self._text):
            raise _TextEndedError
        self._character = self._text[self.at]
        self.at += 1


@lru_cache
def _blanks(dialect: CsvDialect) -> re.Pattern[str]:
    """Spaces and control characters, but for ends of lines and the delimiter."""
    return re.compile(rf"(?:(?!{re.escape(dialect.delimiter or ',')})(?!\n){_BLANK})*")


@lru_cache
def _signs(dialect: CsvDialect) -> re.Pattern[str]:
    """What is not as it stands in quotes; where there is no such character, Spark's parser has NUL for it."""
    signs = (dialect.quote, dialect.escape or "\0", dialect.escape_of_escape or "\0")
    return re.compile(f"[{''.join(map(re.escape, signs))}]")
