"""What the functions of the catalogue set up before they read, or find outside of themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ROWS = ["b", "a:1", "", "c c", "a:1", "d:22", "e", "b", "f:3 g", "h", "c c", "i:9"]

PLACES = {"a": "Athens", "b": "Berlin", "c": "Cairo"}
SEEN: set[str] = set()
TOTALS = {"rows": 0, "length": 0}
CALLS: list[str] = []


class Model:
    """A model: what it was trained to is read, and never written."""

    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.names = {"a": 1, "b": 2}

    def predict(self, row: str) -> int:
        return self.weight * len(row) + self.names.get(row[:1], 0)

    def predict_many(self, rows: list[str]) -> list[int]:
        return [self.predict(row) for row in rows]


class Client:
    """A connection of somebody's own."""

    def __init__(self) -> None:
        self.table = dict(PLACES)
        self.is_open = True

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def find(self, key: str) -> str | None:
        return self.table.get(key[:1])

    def close(self) -> None:
        self.is_open = False


class Smoother:
    """It remembers what it was given."""

    def __init__(self) -> None:
        self.value = 0.0

    def feed(self, row: str) -> float:
        self.value = 0.5 * self.value + len(row)
        return self.value

    def __call__(self, row: str) -> float:
        return self.feed(row)


class Memory:
    def __init__(self) -> None:
        self.rows: list[str] = []

    def note(self, row: str) -> None:
        self.rows.append(row)

    def last(self) -> str:
        return self.rows[-1] if self.rows else ""

    def is_new(self, row: str) -> bool:
        if row in self.rows:
            return False
        self.rows.append(row)
        return True


class Shouter:
    """A callable object that keeps nothing."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __call__(self, row: str) -> str:
        return row.upper() + self.mark

    def over(self, rows: Iterator[str]) -> Iterator[str]:
        for row in rows:
            yield self(row)


class Wrapper:
    """It passes on what it is given."""

    def __init__(self, rows: list[str]) -> None:
        self.rows = rows

    def put_down(self, row: str) -> None:
        self.rows.append(row)


class Ticket:
    """Each one has the next number."""

    last = 0

    def __init__(self, row: str) -> None:
        Ticket.last += len(row)
        self.number = Ticket.last


def without_the_last(rows: list[str]) -> list[str]:
    rows.pop()
    return rows


def without_the_last_again(rows: list[str]) -> list[str]:
    return without_the_last(rows)


def mark(record: dict[str, Any]) -> bool:
    TOTALS["length"] += len(record["row"])
    record["mark"] = TOTALS["length"]
    return True


def totals(rows: Iterator[str]) -> Iterator[int]:
    total = 0
    for row in rows:
        total += len(row)
        yield total


def stripped(rows: Iterator[str]) -> Iterator[str]:
    for row in rows:
        if row:
            yield row.strip()


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table place (key text, name text)")
    connection.executemany("insert into place values (?, ?)", PLACES.items())
    return connection


@contextmanager
def opened() -> Iterator[Client]:
    client = Client()
    try:
        yield client
    finally:
        client.close()


def words(row: str) -> Iterator[str]:
    for word in row.split():
        yield word.upper()


def enrich(row: str, places: dict[str, str]) -> tuple[str, str]:
    return row, places.get(row[:1], "nowhere")


def count_call(row: str) -> str:
    CALLS.append(row)
    return row


def with_the_last(row: str) -> str:
    last = CALLS[-1] if CALLS else ""
    CALLS.append(row)
    return last + row


def add_to(rows: list[str], row: str) -> int:
    rows.append(row)
    return len(rows)


def with_default(row: str, before: list[str] = []) -> str:  # noqa: B006 - that is the point
    before.append(row)
    return before[0] + row


def strip_all(rows: list[str]) -> list[str]:
    return [row.strip() for row in rows]


def parsed(row: str) -> dict[str, Any]:
    key, _, value = row.partition(":")
    return {"key": key, "value": int(value)}
