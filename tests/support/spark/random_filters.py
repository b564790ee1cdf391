"""Chains of filters and projections made by chance over one table whose values are hostile."""

from __future__ import annotations

import json
import math
import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Of the table: `rid` tells its rows apart.
SCHEMA = (
    "rid int, whole int, big bigint, real double, small float, text string, day date, price decimal(10,2)"
)
TEXT_SCHEMA = "rid int, whole int, big bigint, real double, text string, day date, price decimal(10,2)"

_TEXTS = ["a", "b", "ab", "A", "", "Zürich", "10", " 10", "7", "😀", "a%", "a_b", "null", None]
_REALS = [0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e300, 10.0, None]
_WHOLES = [0, 1, -1, 5, 10, 2**31 - 1, -(2**31), None]
_DAYS = [date(2013, 2, 28), date(2012, 2, 29), date(1600, 1, 1), date(1969, 12, 31), None]
_PRICES = [Decimal("0.00"), Decimal("1.10"), Decimal("-3.05"), Decimal("99999999.99"), None]

_CONDITIONS = [
    *("whole > 1", "whole <= 5", "whole = 10", "whole <> 0", "whole is null", "whole is not null"),
    *("whole in (1, 5, 10)", "whole not in (0, 1)", "whole between 0 and 5", "whole + 1 > 2", "big * 2 < 9"),
    *("whole % 3 = 1", "-whole > 0", "whole = big", "cast(whole as bigint) = big", "whole <=> null"),
    *("real > 1", "real = 0.0", "isnan(real)", "real <= 'NaN'", "real < whole", "real in (0.0D, 1.5D)"),
    *("text = 'a'", "text < 'b'", "text like 'a%'", r"text like '%\\_%'", "text like '_'", "text > 'Z'"),
    *("text in ('a', 'b', null)", "not (text = 'a')", "upper(text) = 'A'", "length(text) = 1", "text = 10"),
    *("cast(text as int) = 10", "try_cast(text as int) = 7", "contains(text, 'b')", "startswith(text, 'A')"),
    *("day > date'2013-01-01'", "year(day) = 2012", "day < '1970-01-01'", "month(day) = 2", "day is null"),
    *(
        "price > 1",
        "price = 1.1",
        "price * 2 > 3",
        "price < real",
        "cast(price as int) = 1",
        "price >= whole",
    ),
    *("coalesce(text, 'x') = 'x'", "if(whole > 1, text, 'b') = 'b'", "case when real > 1 then whole end > 0"),
    *("concat(text, 'x') = 'ax'", "abs(whole) = 1", "date_add(day, 1) > day", "round(real) = 10"),
    *("whole > 1 and text = 'a'", "whole > 1 or text = 'a'", "not (whole > 1 and real > 1)", "true"),
]
_MORE = [
    *("substring(text, 1, 1) = 'a'", "substring(text, -2, 1) = 'a'", "substring(text, 0, 2) < 'b'"),
    *("substring(text, -9, 8) = ''", "left(text, 1) = 'Z'", "right(text, 2) = '10'", "text || '' = text"),
    *("trim(text) = '10'", "ltrim(text) = text", "rtrim(text) = text", "trim(both 'a' from text) = 'b'"),
    *("text rlike '^a'", "text rlike '[0-9]+$'", "text rlike '^.?b|7'", "text rlike 'ü'"),
    *("greatest(whole, 5) = 5", "least(whole, 3) = whole", "greatest(text, 'b') = 'b'", "length(text) > 5"),
    *("abs(real) = 2.25D", "abs(big) > 5", "date_sub(day, 1) < day", "datediff(day, '2012-02-28') = 1"),
    *("nullif(text, 'a') is null", "nvl(whole, 7) = 7", "price in (1.10, 0)", "price between -4 and 1.1"),
    "text not in ('a', 'b', 'ab', '7', '10', 'x', 'y')",
    "whole in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
]
_OF_FLOATS = ["small > 0.1", "small = 0.1", "small < real", "small in (0.1F, 1.5F)", "isnan(small)"]
_PROJECTIONS = ["whole + 1", "-whole", "whole * 2", "coalesce(whole, 0)", "if(whole > 0, whole, big)"]


def rows(chance: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "rid": rid,
            "whole": chance.choice(_WHOLES),
            "big": chance.choice([*_WHOLES, 2**63 - 1]),
            "real": chance.choice(_REALS),
            "small": chance.choice([0.5, 0.1, math.nan, -0.0, None]),
            "text": chance.choice(_TEXTS),
            "day": chance.choice(_DAYS),
            "price": chance.choice(_PRICES),
        }
        for rid in range(count)
    ]


def write_parquet(path: Path, table: list[dict[str, Any]]) -> None:
    types = {
        **{"rid": pa.int32(), "whole": pa.int32(), "big": pa.int64(), "real": pa.float64()},
        **{"small": pa.float32(), "text": pa.string(), "day": pa.date32(), "price": pa.decimal128(10, 2)},
    }
    pq.write_table(pa.Table.from_pylist(table, schema=pa.schema(types)), path)


def csv_lines(chance: random.Random, table: list[dict[str, Any]]) -> list[str]:
    """Some of them malformed, or written in ways of their own; the first field is the number of the line."""
    lines = []
    for row in table:
        fields = [_csv_field(row[name]) for name in ("rid", "whole", "big", "real", "text", "day", "price")]
        at = chance.randrange(1, len(fields))
        fields[at] = chance.choice(
            [fields[at]] * 8
            + [
                "x",
                " 5",
                '"5"',
                "+5",
                "1e1",
                "007",
                "5.0",
                "a\\b",
                '"',
                '""',
                '"a b"',
                '" x"',
                '"a"b',
                '"x,y"',
            ]
        )
        if chance.random() < 0.1:
            fields = fields[: chance.randrange(2, 8)] + ["more"] * chance.randrange(2)
        lines.append(",".join(fields))
    return lines


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    return f'"{value}"' if isinstance(value, str) and chance_of(value) else str(value)


def chance_of(text: str) -> bool:
    """Is it written in quotes?"""
    return len(text) > 1


def json_lines(chance: random.Random, table: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in table:
        kept = {
            name: value if value is None or isinstance(value, int | float | str) else str(value)
            for name, value in row.items()
            if name not in ("day", "price", "small") and (value is not None or chance.random() < 0.5)
        }
        if chance.random() < 0.2:
            kept[chance.choice(["whole", "big", "real", "text"])] = chance.choice(
                [True, "5", 5.5, [1], {}, 1]
            )
        line = json.dumps(kept, ensure_ascii=chance.random() < 0.5)
        lines.append(line if chance.random() < 0.95 else line[:-1])
    return lines


def chain(chance: random.Random, frame: Any, *, has_floats: bool) -> Any:
    """Some filters and projections over a DataFrame with such columns."""
    conditions = _CONDITIONS + _MORE + (_OF_FLOATS if has_floats else [])
    for _ in range(chance.randrange(1, 5)):
        if chance.random() < 0.3:
            defined = f"cast({chance.choice(_PROJECTIONS)} as int) as whole"
            frame = frame.selectExpr(*(defined if name == "whole" else name for name in frame.columns))
        else:
            frame = frame.where(chance.choice(conditions))
    return frame
