"""Queries that group rows, and what each gives of some rows by plain Python, such as explained rows alone.

Some are written down, others are made by chance. Where a query leaves a choice (`first`, ties), what it gives
is a set of values, and any of them is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = "id int, k string, g int, v int, w double"
NAMES_SCHEMA = "g int, name string"


class Reading(NamedTuple):
    id: int
    k: str | None
    g: int | None
    v: int | None
    w: float | None


class Name(NamedTuple):
    g: int | None
    name: str


_CHOICE = random.Random(30)
READINGS = [
    Reading(
        at,
        _CHOICE.choice(["a", "b", "b", "c", None]),
        _CHOICE.choice([1, 2, 2, 3, None]),
        _CHOICE.choice([None, *range(-5, 12)]),
        _CHOICE.choice([None, float("nan"), -1.5, 0.25, 2.0, 7.5]),
    )
    for at in range(48)
] + [Reading(48, "null", 1, None, None), Reading(49, "null", 2, None, None)]
NAMES = [Name(1, "one"), Name(2, "two"), Name(2, "zwei"), Name(None, "none"), Name(5, "five")]
#: Files of the readings: groups have rows in several partitions.
FILES = 3

Row = tuple[Any, ...]
Evaluation = Callable[[Sequence[Reading], Sequence[Name]], list[Row]]


def write(folder: Path, readings: Sequence[Reading] = READINGS, names: Sequence[Name] = NAMES) -> None:
    """The tables as CSV."""
    for at in range(FILES):
        _write(folder / "readings" / f"{at}.csv", readings[at::FILES])
    _write(folder / "names" / "names.csv", names)


def _write(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(",".join(map(_text, row)) + "\n" for row in rows))


def _text(value: Any) -> str:
    return "" if value is None else "NaN" if value != value else str(value)


def row_at(path: str, row: int) -> Reading | Name:
    """The row of a file."""
    file = Path(path)
    return NAMES[row] if file.parent.name == "names" else READINGS[int(file.stem) :: FILES][row]


@dataclass(frozen=True)
class Query:
    """`count`: how many readings explain each row; None: as many as a trace has.

    `is_of_rdd`: the readings go through an RDD before the query, and its rows through another one.
    """

    text: str
    of: Evaluation
    count: int | None
    is_of_rdd: bool = False


class Choice(frozenset[Any]):
    """Values of which any one is right."""


def is_among(row: Row, rows: Iterable[Row]) -> bool:
    return any(len(row) == len(other) and all(map(_is_right, row, other)) for other in rows)


def _is_right(value: Any, expected: Any) -> bool:
    if isinstance(expected, Choice):
        return any(_is_right(value, one) for one in expected)
    return repr(value) == repr(expected)


# -- functions -----------------------------------------------------------------------------------------


class Function(NamedTuple):
    """One of SQL. `picks`: what says which row it takes; None: it takes no row."""

    text: str
    of: Callable[[Sequence[Row]], Any]
    picks: str | None = None


def _of(rows: Sequence[Row], at: int) -> list[Any]:
    return [row[at] for row in rows if row[at] is not None]


def _order(value: Any) -> Any:
    """NaN is larger than any other number."""
    return (True, 0.0) if value != value else (False, value)


def _by(rows: Sequence[Row], value: int, by: int, best: Callable[..., Any]) -> Any:
    known = [row for row in rows if row[by] is not None]
    if not known:
        return None
    extreme = _order(best((row[by] for row in known), key=_order))
    return Choice(row[value] for row in known if _order(row[by]) == extreme)


def functions(names: Sequence[str], column: str) -> dict[str, Function]:
    """Those over a column of relations with columns of these names, of which `id` is one."""
    at, of_id = names.index(column), names.index("id")

    def extreme(best: Callable[..., Any]) -> Callable[[Sequence[Row]], Any]:
        return lambda rows: best(_of(rows, at), key=_order, default=None)

    return {
        "min": Function(f"min({column})", extreme(min), f"min {column}"),
        "max": Function(f"max({column})", extreme(max), f"max {column}"),
        "min_by": Function(f"min_by(id, {column})", lambda rows: _by(rows, of_id, at, min), f"min {column}"),
        "max_by": Function(f"max_by(id, {column})", lambda rows: _by(rows, of_id, at, max), f"max {column}"),
        "first": Function(f"first({column})", lambda rows: Choice(row[at] for row in rows) or None, "first"),
        "any": Function(
            f"any_value({column}) ignore nulls", lambda rows: Choice(_of(rows, at)) or None, f"first {column}"
        ),
        "last": Function(
            f"last({column}, true)", lambda rows: Choice(_of(rows, at)) or None, f"last {column}"
        ),
        "count": Function(f"count({column})", lambda rows: len(_of(rows, at))),
        "sum": Function(f"sum({column})", lambda rows: sum(values) if (values := _of(rows, at)) else None),
    }


def grouped(rows: Sequence[Row], keys: Sequence[int], functions: Sequence[Function]) -> list[Row]:
    groups: dict[Row, list[Row]] = {} if keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[at] for at in keys), []).append(row)
    return [(*key, *(function.of(group) for function in functions)) for key, group in groups.items()]


def joined(readings: Sequence[Reading], names: Sequence[Name], *, is_outer: bool) -> list[Row]:
    pairs: list[Row] = []
    for reading in readings:
        met = [name for name in names if name.g is not None and name.g == reading.g]
        pairs += [(*reading, name.name) for name in met]
        if is_outer and not met:
            pairs.append((*reading, None))
    return pairs


# -- queries -------------------------------------------------------------------------------------------

_V = functions(Reading._fields, "v")
_K, _G, _NAME = 1, 2, 5


def of_readings(
    keys: Sequence[int], chosen: Sequence[Function], where: Callable[[Reading], bool] = lambda row: True
) -> Evaluation:
    return lambda readings, names: grouped(list(filter(where, readings)), keys, chosen)


def _has_value(row: Reading) -> bool:
    return row.v is not None


def _both_ends(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
    ends = grouped(list(filter(_has_value, readings)), [_G], [_V["min"], _V["max"]])
    return [(g, low + high) for g, low, high in ends]


def _of_one_group(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
    of_two = [row._replace(v=row.v if row.g == 2 else None) for row in readings]
    return [row for row in grouped(of_two, [_K], [_V["min"]]) if row[1] is not None]


def _largest(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
    return [(max(readings, key=lambda row: (row.v is not None, row.v or 0, row.id)).id,)]


def _of_minima(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
    minima = grouped([row for row in readings if row.k not in (None, "null")], [_K, _G], [_V["min"]])
    largest = Function("", lambda rows: max(row[2] for row in rows))
    return grouped([row for row in minima if row[2] is not None], [0], [largest])


def _joined(column: str, name: str, *, is_outer: bool) -> Evaluation:
    at, function = Reading._fields.index(column), functions(Reading._fields, column)[name]

    def of(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
        pairs = joined(readings, names, is_outer=is_outer)
        return grouped([pair for pair in pairs if pair[at] is not None], [_NAME], [function])

    return of


def _that_are_met(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
    met = {row.g for row in readings if row.v is not None and row.v > 0} - {None}
    return [tuple(name) for name in names if name.g in met]


def _first_two(readings: Sequence[Reading], names: Sequence[Name]) -> list[Row]:
    def place(row: Reading) -> Row:
        return (row.v is not None, row.v or 0, row.id)

    return [
        (row.id, row.k)
        for row in readings
        if sum(other.k == row.k and place(other) < place(row) for other in readings) < 2
    ]


QUERIES: dict[str, Query] = {
    "a minimum": Query("select k, min(v) from readings group by k", of_readings([_K], [_V["min"]]), 1),
    "what stands beside a maximum": Query(
        "select k, max_by(id, v), max(v) from readings group by k",
        of_readings([_K], [_V["max_by"], _V["max"]]),
        1,
    ),
    "both ends": Query(
        "select g, min(v) + max(v) as both from readings where v is not null group by g", _both_ends, 2
    ),
    "a minimum beside a sum": Query(
        "select k, min(v), sum(v) from readings group by k", of_readings([_K], [_V["min"], _V["sum"]]), None
    ),
    "one of several": Query(
        "select distinct k, g from readings",
        lambda readings, names: [*{(row.k, row.g) for row in readings}],
        1,
    ),
    "no two with a key": Query(
        "select g, first(v), first(k) from readings group by g",
        of_readings([_G], [_V["first"], functions(Reading._fields, "k")["first"]]),
        1,
    ),
    "a minimum of some rows": Query(
        "select k, min(v) filter (where g = 2) as low from readings group by k having low is not null",
        _of_one_group,
        1,
    ),
    "a text": Query(
        "select g, max(k) from readings where k is not null group by g",
        of_readings([_G], [functions(Reading._fields, "k")["max"]], lambda row: row.k is not None),
        1,
    ),
    "of all rows": Query("select max(struct(v, id)).id from readings", _largest, 1),
    "a maximum of minima": Query(
        "select k, max(low) from (select k, g, min(v) as low from readings group by k, g) "
        "where k <> 'null' and low is not null group by k",
        _of_minima,
        1,
    ),
    "behind a join": Query(
        "select name, min(v) from readings join names using (g) where v is not null group by name",
        _joined("v", "min", is_outer=False),
        1,
    ),
    "behind an outer join": Query(
        "select name, min_by(id, w) from readings left join names using (g) "
        "where w is not null group by name",
        _joined("w", "min_by", is_outer=True),
        1,
    ),
    "behind a union": Query(
        "select g, min(v) from (select g, v from readings where v > 3 union all "
        "select g, v from readings where v < 9) group by g",
        of_readings([_G], [_V["min"]], _has_value),
        1,
    ),
    "values that differ": Query(
        "select k, count(distinct g) from readings where k = 'b' group by k",
        lambda readings, names: [("b", len({row.g for row in readings if row.k == "b"} - {None}))],
        None,
    ),
    "of those that are met": Query(
        "select g, name from names where g in (select g from readings where v > 0)", _that_are_met, 1
    ),
    "the first by rank": Query(
        "select id, k from (select *, row_number() over (partition by k order by v, id) as place "
        "from readings) where place <= 2",
        _first_two,
        1,
    ),
    "between RDDs": Query(
        "select k, max(low) from (select k, g, min(v) as low from readings group by k, g) "
        "where k <> 'null' and low is not null group by k",
        _of_minima,
        1,
        is_of_rdd=True,
    ),
}


def by_chance(seed: int) -> Query:
    """A query over the readings, or over these and the names, with groups, and perhaps groups of groups."""
    chance = random.Random(seed)
    kind = chance.choice(["", "", "join", "left join"])
    names = [*Reading._fields, *(["name"] if kind else [])]
    table = f"readings {kind} names using (g)" if kind else "readings"
    least = chance.choice([None, None, -3, 2])
    keys = chance.sample([name for name in names if name in ("k", "g", "name")], chance.randint(0, 2))
    column = chance.choice(["v", "w", "v"])
    usual = [name for name in ("min", "max", "min_by", "max_by", "first", "any", "last") for _ in range(3)]
    chosen = [
        functions(names, column)[name]
        for name in dict.fromkeys(chance.choices([*usual, "count"], k=chance.randint(1, 3)))
        if name not in ("sum",)
    ]
    selected = ", ".join([*keys, *(function.text for function in chosen)])
    condition = f" where v >= {least}" if least is not None else ""
    text = f"select {selected} from {table}{condition}" + (f" group by {', '.join(keys)}" if keys else "")
    picks = {function.picks for function in chosen}

    def of(readings: Sequence[Reading], others: Sequence[Name]) -> list[Row]:
        rows: list[Row] = list(readings)
        if kind:
            rows = joined(readings, others, is_outer=kind == "left join")
        rows = [row for row in rows if least is None or (row[3] is not None and row[3] >= least)]
        return grouped(rows, [names.index(key) for key in keys], chosen)

    return Query(text, of, None if None in picks else len(picks))
