"""Functions whose outputs are made of the rows of a batch, with the sources of each output.

The sources are written as the batches that the rows fall into, with how many outputs each batch has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from tests.support.generators.setup import Client, Model, connect, strip_all

Rows = Iterator[str]
#: name -> (function, function of the rows that gives the sources of each output)
BATCHES: dict[str, tuple[Callable[[Rows], Any], Callable[[Sequence[str]], list[list[int]]]]] = {}
Truth = Callable[[Sequence[str]], list[list[int]]]


def batches(truth: Truth) -> Callable[[Callable[[Rows], Any]], Callable[[Rows], Any]]:
    def register(function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
        BATCHES[function.__name__] = function, truth
        return function

    return register


def pieces(positions: Sequence[int], size: int) -> list[list[int]]:
    return [list(positions[start : start + size]) for start in range(0, len(positions), size)]


def by_three(rows: Sequence[str]) -> list[list[int]]:
    """One output for each three rows."""
    return pieces(range(len(rows)), 3)


def each_of_three(rows: Sequence[str]) -> list[list[int]]:
    """As many outputs as there are rows in the batch."""
    return [batch for batch in by_three(rows) for _ in batch]


def full_of_three(rows: Sequence[str]) -> list[list[int]]:
    return [batch for batch in pieces(positions_of(rows, bool), 3) for _ in batch]


def positions_of(rows: Sequence[str], keeps: Callable[[str], object]) -> list[int]:
    return [position for position, row in enumerate(rows) if keeps(row)]


@batches(each_of_three)
def flushed_and_new_list(rows: Rows) -> Any:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield from strip_all(batch)
            batch = []
    if batch:
        yield from strip_all(batch)


@batches(each_of_three)
def flushed_and_cleared(rows: Rows) -> Any:
    model = Model(2)
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= 3:
            for result in model.predict_many(batch):
                yield result
            batch.clear()
    yield from model.predict_many(batch)


@batches(by_three)
def one_for_each_batch(rows: Rows) -> Any:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield ",".join(batch)
            batch = []
    if batch:
        yield ",".join(batch)


@batches(by_three)
def the_list_itself(rows: Rows) -> Any:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield batch
            batch = []
    if batch:
        yield batch


@batches(each_of_three)
def swapped_before(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            full, batch = batch, []
            yield from strip_all(full)
    yield from strip_all(batch)


@batches(each_of_three)
def computed_and_emptied_before(rows: Rows) -> Any:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            results = strip_all(batch)
            batch = []
            yield from results
    if batch:
        yield from strip_all(batch)


@batches(each_of_three)
def flushed_before_the_row(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        if len(batch) == 3:
            yield from strip_all(batch)
            batch = []
        batch.append(row)
    yield from strip_all(batch)


@batches(full_of_three)
def only_full_rows(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        if not row:
            continue
        batch.append(row)
        if len(batch) == 3:
            yield from strip_all(batch)
            batch.clear()
    if batch:
        yield from strip_all(batch)


@batches(full_of_three)
def added_on_a_condition(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        if row:
            batch.append(row)
        if len(batch) == 3:
            yield from strip_all(batch)
            batch = []
    yield from strip_all(batch)


@batches(each_of_three)
def counted_batches(rows: Rows) -> Any:
    batch = []
    many = 0
    for row in rows:
        batch.append(row)
        many += 1
        if many == 3:
            yield from strip_all(batch)
            batch, many = [], 0
    if many:
        yield from strip_all(batch)


@batches(each_of_three)
def numbered_batches(rows: Rows) -> Any:
    batch = []
    for number, row in enumerate(rows, 1):
        batch.append(row)
        if number % 3 == 0:
            yield from strip_all(batch)
            batch = []
    yield from strip_all(batch)


@batches(each_of_three)
def two_lists(rows: Rows) -> Any:
    keys: list[str] = []
    sizes: list[int] = []
    for row in rows:
        keys.append(row[:1])
        sizes.append(len(row))
        if len(keys) == 3:
            yield from zip(keys, sizes)
            keys, sizes = [], []
    yield from zip(keys, sizes)


@batches(each_of_three)
def inserted_into_a_database(rows: Rows) -> Any:
    connection = connect()
    batch: list[tuple[str]] = []
    try:
        for row in rows:
            batch.append((row,))
            if len(batch) == 3:
                connection.executemany("insert into place values (?, '')", batch)
                for (key,) in batch:
                    yield key
                batch = []
        connection.executemany("insert into place values (?, '')", batch)
        for (key,) in batch:
            yield key
    finally:
        connection.close()


@batches(by_three)
def in_a_context(rows: Rows) -> Any:
    with Client() as client:
        batch = []
        for row in rows:
            batch.append(row)
            if len(batch) == 3:
                yield [client.find(key) for key in batch]
                batch = []
        if batch:
            yield [client.find(key) for key in batch]


@batches(by_three)
def a_deque(rows: Rows) -> Any:
    batch: deque[str] = deque()
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield list(batch)
            batch.clear()
    if batch:
        yield list(batch)


@batches(lambda rows: pieces(range(len(rows)), 1))
def batches_of_one(rows: Rows) -> Any:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == 1:
            yield batch[0]
            batch = []


@batches(lambda rows: [[], *each_of_three(rows)])
def behind_a_header(rows: Rows) -> Any:
    yield "header"
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield from batch
            batch = []
    yield from batch


@batches(lambda rows: [batch for batch in pieces(range(len(rows)), 3) if len(batch) == 3 for _ in range(2)])
def rest_is_dropped(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield min(batch)
            yield max(batch)
            batch = []


SHARED = Model(2)


@batches(each_of_three)
def flushed_by_an_object_outside(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield from SHARED.predict_many(batch)
            batch = []
    yield from SHARED.predict_many(batch)


def all_but_the_first(rows: Sequence[str]) -> list[list[int]]:
    return [[position] for position in range(1, len(rows))]


@batches(all_but_the_first)
def behind_a_line(rows: Rows) -> Any:
    next(rows, None)
    return map(str.upper, rows)


@batches(all_but_the_first)
def behind_a_line_with_a_model(rows: Rows) -> Any:
    model = Model(2)
    next(rows, None)
    return (model.predict(row) for row in rows)


@batches(all_but_the_first)
def behind_a_line_in_a_generator(rows: Rows) -> Any:
    next(rows, None)
    for row in rows:
        yield row


@batches(all_but_the_first)
def behind_the_number_0(rows: Rows) -> Any:
    for number, row in enumerate(rows):
        if number == 0:
            continue
        yield row


@batches(each_of_three)
def next_rows(rows: Rows) -> Any:
    while True:
        chunk = list(islice(rows, 3))
        if not chunk:
            break
        yield from strip_all(chunk)


@batches(by_three)
def next_rows_while_there_are_some(rows: Rows) -> Any:
    model = Model(2)
    while chunk := list(islice(rows, 3)):
        yield model.predict_many(chunk)
