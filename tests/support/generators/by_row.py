"""Functions each of whose outputs is made of one row.

Over a single row they give what they give for it among others: that is how a test knows.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import logging
import math
import random
import re
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timezone
from decimal import Decimal
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from tests.support.generators.setup import (
    CALLS,
    PLACES,
    TOTALS,
    Client,
    Memory,
    Model,
    Shouter,
    Smoother,
    connect,
    enrich,
    opened,
    parsed,
    stripped,
    words,
)

Rows = Iterator[str]
BY_ROW: dict[str, Callable[[Rows], Any]] = {}


#: Functions of which the same is true, and which stay upper bounds.
KEPT_BOUNDS: dict[str, Callable[[Rows], Any]] = {}


def kept_bound(function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    KEPT_BOUNDS[function.__name__] = function
    return function


def by_row(function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    BY_ROW[function.__name__] = function
    return function


@by_row
def plain(rows: Rows) -> Any:
    for row in rows:
        yield row.upper()


@by_row
def compiled_pattern(rows: Rows) -> Any:
    pattern = re.compile(r"(\w):(\d+)")
    for row in rows:
        match = pattern.search(row)
        if match:
            yield match.group(1), int(match.group(2))


@by_row
def counter_for_progress(rows: Rows) -> Any:
    done = 0
    for row in rows:
        done += 1
        if done % 5 == 0:
            print(f"{done} rows", end="")
        yield row


@by_row
def counter_of_errors(rows: Rows) -> Any:
    errors = 0
    for row in rows:
        try:
            value = parsed(row)
        except ValueError:
            errors += 1
            continue
        yield value
    print(errors, end="")


@by_row
def counter_returned(rows: Rows) -> Any:
    total = 0
    for row in rows:
        total += len(row)
        yield row
    return total


@by_row
def model(rows: Rows) -> Any:
    model = Model(3)
    for row in rows:
        yield row, model.predict(row)


@by_row
def model_with_features(rows: Rows) -> Any:
    model = Model(3)
    scale = math.sqrt(2)
    for row in rows:
        features = {"row": row, "length": len(row)}
        features["score"] = model.predict(features["row"]) * scale
        yield features


@by_row
def own_connection(rows: Rows) -> Any:
    client = Client()
    try:
        for row in rows:
            yield row, client.find(row)
    finally:
        client.close()


@by_row
def database(rows: Rows) -> Any:
    connection = connect()
    cursor = connection.cursor()
    try:
        for row in rows:
            cursor.execute("select name from place where key = ?", (row[:1],))
            yield row, cursor.fetchone()
    finally:
        cursor.close()
        connection.close()


@by_row
def database_in_one_line(rows: Rows) -> Any:
    with connect() as connection:
        for row in rows:
            for (name,) in connection.execute("select name from place where key = ?", (row[:1],)):
                yield name


@by_row
def context_manager(rows: Rows) -> Any:
    with Client() as client:
        for row in rows:
            yield client.find(row)


@by_row
def context_manager_of_a_function(rows: Rows) -> Any:
    with opened() as client:
        for row in rows:
            if row:
                yield client.find(row)


@by_row
def try_except_finally(rows: Rows) -> Any:
    log = logging.getLogger("catalogue")
    try:
        for row in rows:
            log.debug("row %s", row)
            yield row
    except ValueError:
        log.debug("no")
        raise
    finally:
        log.debug("end")


@by_row
def numbered(rows: Rows) -> Any:
    for number, row in enumerate(rows):
        if number % 1_000 == 999:
            print(number, end="")
        yield row


@by_row
def skipping(rows: Rows) -> Any:
    for row in rows:
        if not row.strip():
            continue
        if row.startswith("a") or "c" in row:
            continue
        yield row


@by_row
def several_for_a_row(rows: Rows) -> Any:
    for row in rows:
        for word in row.split():
            for letter in word:
                if letter != ":":
                    yield word, letter


@by_row
def several_yields(rows: Rows) -> Any:
    for row in rows:
        yield "in", row
        if row > "b":
            yield "late", row
        else:
            yield "early", row


@by_row
def from_a_function(rows: Rows) -> Any:
    for row in rows:
        yield from words(row)


@by_row
def from_a_comprehension(rows: Rows) -> Any:
    keys = ("a", "b")
    for row in rows:
        yield from [(key, row) for key in keys if key in row]


@by_row
def from_an_expression(rows: Rows) -> Any:
    for row in rows:
        yield from (word + row for word in row.split())


@by_row
def from_the_partition(rows: Rows) -> Any:
    yield from rows


@by_row
def from_an_expression_over_the_partition(rows: Rows) -> Any:
    width = 4
    yield from (row.ljust(width) for row in rows if row)


@by_row
def from_a_map(rows: Rows) -> Any:
    yield from map(str.upper, rows)


@by_row
def over_a_map(rows: Rows) -> Any:
    for key, value in map(lambda row: (row[:1], row), rows):
        if key:
            yield key, value


@by_row
def over_a_filter(rows: Rows) -> Any:
    for row in filter(None, rows):
        yield row


@by_row
def over_an_expression(rows: Rows) -> Any:
    lengths = ((row, len(row)) for row in rows)
    for row, length in lengths:
        if length > 1:
            yield row


@by_row
def over_a_generator(rows: Rows) -> Any:
    model = Model(2)
    for row in stripped(rows):
        yield row, model.predict(row)


@by_row
def over_an_inner_generator(rows: Rows) -> Any:
    def long(rows: Rows) -> Rows:
        for row in rows:
            if len(row) > least:
                yield row

    least = 1
    for row in long(rows):
        yield row * 2


@by_row
def by_next(rows: Rows) -> Any:
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        yield row


@by_row
def two_steps(rows: Rows) -> Any:
    stripped = (row.strip() for row in rows)
    full = (row for row in stripped if row)
    return map(str.title, full)


@by_row
def returned_map(rows: Rows) -> Any:
    return map(Shouter("!"), rows)


@by_row
def returned_filter(rows: Rows) -> Any:
    return filter(lambda row: row in PLACES, rows)


@by_row
def returned_expression(rows: Rows) -> Any:
    model = Model(2)
    return (model.predict(row) for row in rows)


@by_row
def returned_chain(rows: Rows) -> Any:
    return chain.from_iterable(map(words, rows))


@by_row
def returned_chain_of_an_expression(rows: Rows) -> Any:
    return itertools.chain.from_iterable(row.split(":") for row in rows)


@by_row
def returned_starmap(rows: Rows) -> Any:
    return itertools.starmap(max, ((row, "b") for row in rows))


@by_row
def inner_generator(rows: Rows) -> Any:
    prefix = ">"

    def generator() -> Any:
        for row in rows:
            yield prefix + row

    return generator()


@by_row
def inner_function(rows: Rows) -> Any:
    def shorten(row: str) -> str:
        return row[:limit]

    limit = 2
    for row in rows:
        yield shorten(row)


@by_row
def sorted_by_an_inner_function(rows: Rows) -> Any:
    for row in rows:
        yield sorted(row.split(), key=lambda word: (word in row, word))


@by_row
def lookup_in_a_container(rows: Rows) -> Any:
    places = {**PLACES, "d": "Delhi"}
    stop = {"e", "h"}
    for row in rows:
        if row in stop:
            continue
        yield places[row[:1]] if row[:1] in places else None


@by_row
def lookup_outside(rows: Rows) -> Any:
    for row in rows:
        yield PLACES.get(row[:1], "?")


@by_row
def lookup_by_a_function(rows: Rows) -> Any:
    places = dict(PLACES)
    for row in rows:
        yield enrich(row, places)


@by_row
def accumulator_beside(rows: Rows) -> Any:
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row] += 1
        TOTALS["rows"] += 1
        yield row.lower()
    print(len(counts), end="")


@by_row
def memory_beside(rows: Rows) -> Any:
    memory = Memory()
    for row in rows:
        memory.note(row)
        yield row


@by_row
def list_of_the_turn(rows: Rows) -> Any:
    for row in rows:
        parts = []
        for part in row.split(":"):
            parts.append(part.strip())
        yield parts


@by_row
def object_of_the_turn(rows: Rows) -> Any:
    for row in rows:
        smoother = Smoother()
        smoother.feed(row)
        yield smoother.feed(row)


@by_row
def writer_of_the_turn(rows: Rows) -> Any:
    for row in rows:
        text = io.StringIO()
        csv.writer(text).writerow(row.split(":"))
        yield text.getvalue()


@by_row
def changed_row(rows: Rows) -> Any:
    for row in rows:
        record = {"row": row}
        record.update(length=len(row))
        record["places"] = json.dumps(PLACES)
        del record["row"]
        yield record


@by_row
def partial_and_itemgetter(rows: Rows) -> Any:
    cut = functools.partial(re.sub, r"\d", "#")
    first = itemgetter(0)
    for row in rows:
        yield first(cut(row) + "-")


@by_row
def constants_of_the_library(rows: Rows) -> Any:
    zone, two, form = timezone.utc, Decimal(2), struct.Struct("i")
    for row in rows:
        yield row, zone, two, form.pack(len(row))


@by_row
def started_at(rows: Rows) -> Any:
    start = time.monotonic()
    for row in rows:
        yield row
    print(time.monotonic() > start, end="")


@by_row
def sampled(rows: Rows) -> Any:
    dice = random.Random(7)
    for row in rows:
        if dice.random() < 2:
            yield row


@by_row
def with_defaults(rows: Rows, sep: str = ":", limit: int = 1) -> Any:
    for row in rows:
        yield row.split(sep, limit)


@by_row
def none_and_constants(rows: Rows) -> Any:
    for row in rows:
        yield None if not row else 1


@by_row
def last_column_set_on_each_path(rows: Rows) -> Any:
    for row in rows:
        if ":" in row:
            kind = "pair"
        elif row:
            kind = "word"
        else:
            kind = "empty"
        yield kind, row


@by_row
def while_in_the_loop(rows: Rows) -> Any:
    for row in rows:
        rest = row
        while rest:
            yield rest
            rest = rest[1:]


@by_row
def retried(rows: Rows) -> Any:
    client = Client()
    for row in rows:
        for attempt in range(3):
            try:
                place = client.find(row)
                break
            except KeyError:
                time.sleep(attempt)
        else:
            place = None
        yield place


@by_row
def matched(rows: Rows) -> Any:
    for row in rows:
        match row.split(":"):
            case [key, value]:
                yield key, value
            case [key]:
                yield key


def decorated(function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    @functools.wraps(function)
    def wrapper(rows: Rows) -> Any:
        return function(rows)

    return wrapper


def repeated(many: int, rows: Rows) -> Any:
    for row in rows:
        for _ in range(many):
            yield row


@kept_bound
def context_manager_in_the_loop(rows: Rows) -> Any:
    """The context might swallow an error, and `text` be of the row before."""
    lock = threading.Lock()
    for row in rows:
        with lock:
            text = row * 2
        yield text


@kept_bound
def numbered_by_hand(rows: Rows) -> Any:
    """It says how many rows there were before, as `enumerate` does."""
    number = -1
    for row in rows:
        number += 1
        yield number, row


@kept_bound
def comprehension(rows: Rows) -> Any:
    """A list that has no name."""
    return [row.upper() for row in rows]


@by_row
def listed(rows: Rows) -> Any:
    outputs = []
    for row in rows:
        outputs.append(row.upper())
    return outputs


@by_row
def listed_with_setup(rows: Rows) -> Any:
    model, outputs, skipped = Model(2), [], 0
    with Client() as client:
        for row in rows:
            if not row:
                skipped += 1
                continue
            outputs.append(client.find(row))
            for word in row.split():
                outputs.append((word, model.predict(row)))
    print(skipped, end="")
    return iter(outputs)


BY_ROW["lambda_"] = lambda rows: (row.upper() for row in rows)
BY_ROW["decorated"] = decorated(plain)
BY_ROW["decorated_map"] = decorated(lambda rows: map(len, rows))
BY_ROW["partial"] = functools.partial(repeated, 2)
BY_ROW["method"] = Shouter("?").over
BY_ROW["first_of_each"] = lambda rows: (row[:1] for row in islice(rows, 1_000))
assert CALLS == []
