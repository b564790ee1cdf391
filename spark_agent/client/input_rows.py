"""Which rows of the inputs some records were made of, with their texts: the row set of the API, for a replay.

Promises a text only where it is what the job read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from spark_agent.client.http import ApiClient
from spark_agent.client.trace_starts import Start, batches_of, query_of
from spark_agent.contract.row_sets import count_rows, ranges_of, rows_in
from spark_agent.driver import partitions
from spark_agent.driver.replay.rebuilt_rdds import RowsOfSource

__all__ = ["MOST_TEXTS", "InputRows", "NamedRow", "input_rows"]

#: Of each source: the most that the API gives. Rows of larger sets are read from their files.
MOST_TEXTS = 10_000
#: Where so few have more texts than the API gives, they are not asked for in parts.
_FEWEST_STARTS = 250
#: The API cuts longer ones.
_MOST_CHARACTERS = 25_000
_BYTE_ORDER_MARK = "\ufeff"

Source = Mapping[str, Any]
"""A source in the JSON shape of a row set."""


class NamedRow(NamedTuple):
    """A record of a source. `path`, `row` and `text` are None where they are not known."""

    source: int
    split: int
    position: int
    path: str | None
    row: int | None
    text: str | None


@dataclass(frozen=True)
class InputRows:
    """A row set. `how` says what is not known of it, if it is not exact or not complete."""

    of_source: Mapping[int, RowsOfSource]
    asked: Sequence[Mapping[str, Any]]
    exact: bool
    complete: bool
    how: tuple[str, ...]

    @property
    def restricted(self) -> list[Source]:
        return [rows.source for rows in self.of_source.values() if not rows.source["whole"]]

    @property
    def count(self) -> int:
        return sum(map(count_rows, self.restricted))

    @property
    def of(self) -> int | None:
        """How many rows the restricted sources have; None where that is not known."""
        totals = [source.get("total") for source in self.restricted]
        return None if None in totals else sum(total or 0 for total in totals)

    def of_sources(self, numbers: Iterable[int]) -> InputRows:
        """Those of these sources, and only where rows are named."""
        chosen = set(numbers)
        named = {
            number: rows
            for number, rows in self.of_source.items()
            if number in chosen and count_rows(rows.source) and not rows.source["whole"]
        }
        return replace(self, of_source=named)

    def changed_files(self, numbers: Iterable[int]) -> list[str]:
        """The files of these sources that are not what they were when the job read them."""
        return [
            file["path"]
            for number in numbers
            for file in self.of_source[number].source.get("files", ())
            if _has_changed(file)
        ]

    @property
    def named(self) -> list[NamedRow]:
        """Each of them, with the row of a file that it is, where that is known."""
        return [
            row
            for number, rows in self.of_source.items()
            if not rows.source["whole"]
            for row in _named(number, rows.source)
        ]

    def only(self, chosen: Iterable[NamedRow]) -> InputRows:
        """Those that are chosen, of `named`."""
        places: dict[int, set[tuple[int, int]]] = {number: set() for number in self.of_source}
        for row in chosen:
            places[row.source].add((row.split, row.position))
        return replace(
            self, of_source={number: _only(rows, places[number]) for number, rows in self.of_source.items()}
        )

    def joined(self, other: InputRows) -> InputRows:
        """With the rows of another set of the same application, too."""
        of_source = dict(self.of_source)
        for number, rows in other.of_source.items():
            mine = of_source.get(number)
            of_source[number] = rows if mine is None else _both(mine, rows)
        return replace(self, of_source=of_source)

    def taken(self, predicate: Callable[[str], Any]) -> InputRows | None:
        """Those whose text `predicate` takes; None where not all texts are known."""
        if any(rows.texts is None for rows in self.of_source.values() if count_rows(rows.source)):
            return None
        chosen = {number: _taken(rows, predicate) for number, rows in self.of_source.items()}
        return replace(self, of_source=chosen)


def input_rows(
    client: ApiClient, application: str, starts: Iterable[Start], *, concise: bool = False
) -> InputRows:
    """Of the records that the starts name; `concise`: only those that decided. Raises TraceError."""
    answers = list(_answers(client, application, batches_of(starts), concise=concise))
    return InputRows(
        _joined([answer["sources"] for answer in answers]),
        [asked for answer in answers for asked in answer["asked"]],
        all(answer["exact"] for answer in answers),
        all(answer["complete"] for answer in answers),
        tuple(dict.fromkeys(answer["how"] for answer in answers if answer["how"])),
    )


def _answers(
    client: ApiClient, application: str, batches: Iterable[Sequence[Start]], *, concise: bool
) -> Iterator[Mapping[str, Any]]:
    """Of each batch; of one that has more texts than are listed those of its halves, while that helps."""
    left, is_halved = deque(batches), True
    while left:
        batch = left.popleft()
        asked = {**query_of(batch), **({"concise": "true"} if concise else {})}
        answer = client.get("applications", application, "rowset", limit=MOST_TEXTS, **asked)
        if is_halved and any(map(_is_cut, answer["sources"])):
            is_halved = len(batch) >= 2 * _FEWEST_STARTS
            if is_halved:
                middle = len(batch) // 2
                left.extendleft((batch[middle:], batch[:middle]))
                continue
        yield answer


def _is_cut(source: Source) -> bool:
    """Has it more texts than the API lists?"""
    return len(source["listed"]) == MOST_TEXTS < count_rows(source)


def _joined(answers: Sequence[Sequence[Source]]) -> dict[int, RowsOfSource]:
    by_number: dict[int, list[Source]] = {}
    for sources in answers:
        for source in sources:
            by_number.setdefault(source["node"], []).append(source)
    return {number: _one(sources) for number, sources in by_number.items()}


def _one(sources: Sequence[Source]) -> RowsOfSource:
    """The answers about one source as one."""
    first = sources[0]
    if len(sources) == 1 or any(source["whole"] for source in sources):
        whole = next((source for source in sources if source["whole"]), first)
        return RowsOfSource(whole, None if whole["whole"] else _texts(whole, _texts_of(first)))
    places = {place for source in sources for place in _places(source)}
    texts: dict[tuple[int, int], str] | None = {}
    for source in sources:
        of_source = _texts_of(source)
        texts = None if texts is None or of_source is None else texts | of_source
    files = {file["path"]: file for source in sources for file in source.get("files", ())}
    joined = {**first, "splits": _splits(places), "files": list(files.values())}
    return RowsOfSource(joined, _texts(joined, texts))


def _named(number: int, source: Source) -> Iterator[NamedRow]:
    listed = source["listed"] if count_rows(source) == len(source["listed"]) else None
    for at, (split, position) in enumerate(_places(source)):
        row = {} if listed is None else listed[at]
        yield NamedRow(number, split, position, row.get("path"), row.get("row"), row.get("text"))


def _only(rows: RowsOfSource, places: Collection[tuple[int, int]]) -> RowsOfSource:
    if rows.source["whole"]:
        return rows
    source = {**rows.source, "splits": _splits(place for place in _places(rows.source) if place in places)}
    texts = None if rows.texts is None else dict(_with_texts(rows))
    return RowsOfSource(source, _texts(source, texts))


def _both(rows: RowsOfSource, others: RowsOfSource) -> RowsOfSource:
    if rows.source["whole"] or others.source["whole"]:
        return rows if rows.source["whole"] else others
    source = {
        **rows.source,
        "splits": _splits([*_places(rows.source), *_places(others.source)]),
        "listed": [],
    }
    texts: dict[tuple[int, int], str] | None = None
    if rows.texts is not None and others.texts is not None:
        texts = {**dict(_with_texts(rows)), **dict(_with_texts(others))}
    return RowsOfSource(source, _texts(source, texts))


def _taken(rows: RowsOfSource, predicate: Callable[[str], Any]) -> RowsOfSource:
    texts = {place: text for place, text in _with_texts(rows) if predicate(text)}
    source = {**rows.source, "splits": _splits(texts)}
    return RowsOfSource(source, _texts(source, texts))


def _with_texts(rows: RowsOfSource) -> Iterator[tuple[tuple[int, int], str]]:
    for split in rows.source.get("splits", ()):
        positions = rows_in(split["positions"])
        texts = (rows.texts or {})[str(split["split"])]
        yield from zip(((split["split"], position) for position in positions), texts, strict=True)


def _places(source: Source) -> Iterator[tuple[int, int]]:
    for split in source.get("splits", ()):
        yield from ((split["split"], position) for position in rows_in(split["positions"]))


def _splits(places: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    positions: dict[int, list[int]] = {}
    for split, position in places:
        positions.setdefault(split, []).append(position)
    return [{"split": split, "positions": ranges_of(positions[split])} for split in sorted(positions)]


def _texts_of(source: Source) -> dict[tuple[int, int], str] | None:
    """By partition and position; None unless each is what the job read."""
    listed = source["listed"]
    if source["whole"] or count_rows(source) != len(listed) or not all(map(_is_sure, listed)):
        return None
    return {place: row["text"] for place, row in zip(_places(source), listed, strict=True)}


def _is_sure(row: Mapping[str, Any]) -> bool:
    text = row["text"]
    is_whole = text is not None and len(text) <= _MOST_CHARACTERS and not text.startswith(_BYTE_ORDER_MARK)
    return is_whole and row["warning"] is None


def _texts(source: Source, texts: Mapping[tuple[int, int], str] | None) -> dict[str, list[str]] | None:
    """By partition, in the order of positions."""
    if texts is None:
        return None
    by_split: dict[str, list[str]] = {}
    for split, position in _places(source):
        by_split.setdefault(str(split), []).append(texts[split, position])
    return by_split


def _has_changed(file: Mapping[str, Any]) -> bool:
    now = partitions.status(partitions.local_path(file["path"]))
    return any(
        now[field] is not None and file.get(field) is not None and now[field] != file[field]
        for field in ("size", "modified")
    )
