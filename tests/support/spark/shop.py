"""The small tables that the DataFrame tests read, as files and as rows with their places.

Written by pyarrow and plain Python, so that what Spark reads owes nothing to Spark. Small, and awkward:
several files, an empty one, row groups of few rows, duplicates, nulls in keys, NaN, both zeros, negative
numbers, and text beyond ASCII.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from tests.support.spark.relational import Data


class Order(NamedTuple):
    id: int
    customer: int | None
    amount: int
    tag: str | None
    price: float | None


class Customer(NamedTuple):
    key: int | None
    name: str


class Label(NamedTuple):
    tag: str | None
    weight: int


class Basket(NamedTuple):
    id: int
    items: list[str | None] | None
    prices: dict[str, int] | None


_CHOICE = random.Random(8)
_NAN = float("nan")

ORDERS = [
    Order(
        i,
        _CHOICE.choice([None, -1, 1, 2, 3, 3, 6]),
        _CHOICE.randint(-9, 40),
        _CHOICE.choice([None, "x", "y", "ß"]),
        _CHOICE.choice([None, _NAN, -0.0, 0.0, 1.5, -2.25]),
    )
    for i in range(26)
]
CUSTOMERS = [
    Customer(key, name)
    for key, name in [
        (1, "ann"),
        (2, "bo"),
        (2, "çem"),
        (3, "ann"),
        (None, "dee"),
        (4, "eve"),
        (-1, "bo"),
        (7, ""),
    ]
]
LABELS = [Label("x", 3), Label("x", 1), Label("ß", -2), Label(None, 5), Label("w", 0), Label("w", 7)]
BASKETS = [
    Basket(0, ["a", "b", "a"], {"a": 1, "b": -2}),
    Basket(1, [], {}),
    Basket(2, None, None),
    Basket(3, ["c"], {"c": 3}),
    Basket(4, [None, "ü"], {"ü": 0}),
]
LINES = ["to be or", "not to be", "", "that is", "  the ünï question", "be", "or not", "", "to sleep"]

_SCHEMAS = {
    "orders": pa.schema(
        [
            ("id", pa.int32()),
            ("customer", pa.int32()),
            ("amount", pa.int64()),
            ("tag", pa.string()),
            ("price", pa.float64()),
        ]
    ),
    "customers": pa.schema([("key", pa.int32()), ("name", pa.string())]),
    "labels": pa.schema([("tag", pa.string()), ("weight", pa.int32())]),
    "baskets": pa.schema(
        [("id", pa.int32()), ("items", pa.list_(pa.string())), ("prices", pa.map_(pa.string(), pa.int32()))]
    ),
}


@dataclass(frozen=True)
class Shop:
    """Where the tables are, and their rows. A row of a text format has the first four columns of an order."""

    folder: Path
    tables: dict[str, Data]

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def __getattr__(self, name: str) -> Data:
        return self.tables[name]


#: The columns of the orders that are kept as text.
TEXT_SCHEMA = "id int, customer int, amount bigint, tag string"


def make_shop(folder: Path) -> Shop:
    halves = [ORDERS[:9], ORDERS[9:20]]
    csv, objects = [list(map(_csv, half)) for half in halves], [list(map(_object, half)) for half in halves]
    return Shop(
        folder,
        {
            "orders": _parquet(folder, "orders", [ORDERS[:11], [], ORDERS[11:12], ORDERS[12:]]),
            "customers": _parquet(folder, "customers", [CUSTOMERS[:5], CUSTOMERS[5:]]),
            "labels": _parquet(folder, "labels", [LABELS]),
            "baskets": _parquet(folder, "baskets", [BASKETS[:2], BASKETS[2:]]),
            "lines": _text(folder, "lines", [LINES[:5], LINES[5:], []]),
            "csv": _of_orders(_text(folder, "csv", csv)),
            "headed": _of_orders(
                _text(folder, "headed", [["id,customer,amount,tag", *half] for half in csv])
            ),
            "csv_gaps": _of_orders(_text(folder, "csv_gaps", [["", half[0], "", *half[1:]] for half in csv])),
            "json": _of_orders(_text(folder, "json", objects)),
            "json_gaps": _of_orders(
                _text(folder, "json_gaps", [[*half[:3], "", *half[3:]] for half in objects])
            ),
            "orc": _orc(folder, "orc", halves),
            "by_tag": _by_tag(folder, "by_tag"),
            "odd": _odd_names(folder, "odd names"),
            "ends": _written(
                folder / "ends" / "ends.txt", b"a b\r\nc\rd\n\r\n\ne f\r\r\ng", "a b|c|d|||e f||g"
            ),
            "packed": _written(
                folder / "packed" / "packed.txt.gz",
                gzip.compress("".join(f"{line}\n" for line in LINES).encode()),
                "|".join(LINES),
            ),
        },
    )


def write_text(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def _places(path: Path, rows: Sequence[Any]) -> Data:
    return [(row, frozenset({(path.name, at)})) for at, row in enumerate(rows)]


def _text(folder: Path, name: str, files: Iterable[Sequence[str]]) -> Data:
    data: Data = []
    for number, lines in enumerate(files):
        data += _places(write_text(folder / name / f"{name}-{number}.txt", lines), lines)
    return data


def _csv(order: Order) -> str:
    return ",".join("" if value is None else str(value) for value in order[:4])


def _object(order: Order) -> str:
    return json.dumps(dict(zip(Order._fields, order[:4], strict=False)))


def _of_orders(data: Data) -> Data:
    """The lines that are orders, as these."""
    by_line = {line(order): order for order in ORDERS for line in (_csv, _object)}
    return [(by_line[line], place) for line, place in data if line in by_line]


def table(name: str, rows: Sequence[Any]) -> pa.Table:
    columns = [
        pa.array(
            [list(row[at].items()) if isinstance(row[at], dict) else row[at] for row in rows], field.type
        )
        for at, field in enumerate(_SCHEMAS[name])
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMAS[name])


def _parquet(folder: Path, name: str, files: Iterable[Sequence[Any]]) -> Data:
    (folder / name).mkdir(parents=True)
    data: Data = []
    for number, rows in enumerate(files):
        path = folder / name / f"{name}-{number}.parquet"
        pq.write_table(table(name, rows), path, row_group_size=4)
        data += _places(path, rows)
    return data


def _by_tag(folder: Path, name: str) -> Data:
    """Orders in a folder for each tag, as Spark writes them by partition."""
    data: Data = []
    for tag in dict.fromkeys(order.tag for order in ORDERS):
        rows = [order for order in ORDERS if order.tag == tag]
        path = folder / name / f"tag={tag or '__HIVE_DEFAULT_PARTITION__'}" / f"{name}-{tag}.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(table("orders", rows).drop_columns(["tag"]), path, row_group_size=3)
        data += _places(path, rows)
    return data


def _odd_names(folder: Path, name: str) -> Data:
    """Names that a URL has other letters for."""
    (folder / name).mkdir(parents=True)
    data: Data = []
    for path, rows in (("a b%20c+d.parquet", LABELS[:4]), ("#ü?&=;é.parquet", LABELS[4:])):
        pq.write_table(table("labels", rows), folder / name / path)
        data += _places(Path(path), rows)
    return data


def _written(path: Path, data: bytes, rows: str) -> Data:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return _places(path, rows.split("|"))


def _orc(folder: Path, name: str, files: Iterable[Sequence[Order]]) -> Data:
    (folder / name).mkdir(parents=True)
    data: Data = []
    for number, rows in enumerate(files):
        path = folder / name / f"{name}-{number}.orc"
        # Stripes of four rows.
        pyarrow.orc.write_table(table("orders", rows), path, stripe_size=1, batch_size=4)
        data += _places(path, rows)
    return data
