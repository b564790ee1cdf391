"""Rows of files that fulfil a condition: the same as plain Python finds, whatever stands in the files."""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineage_service.conditions.filters import Where
from lineage_service.conditions.parser import parse
from lineage_service.conditions.tree import Column, Condition, Literal, text_of
from lineage_service.lineage import Dataset
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TopologyNode
from tests.support.conditions import conditions, holds

ZONE = datetime.timezone.utc
DAYS = st.dates(datetime.date(1950, 1, 1), datetime.date(2050, 1, 1))
TIMES = st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2050, 1, 1))
TEXTS = st.text(st.sampled_from("aB ,;\t|é名'\"\\%_"), max_size=4)
SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int64())])),
    ]
)
PLACES = st.fixed_dictionaries({"city": st.none() | TEXTS, "zip": st.none() | st.integers(-2, 2)})
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "n": st.integers(-3, 3),
    "price": st.decimals(places=2, min_value=-5, max_value=5),
    "x": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "name": TEXTS,
    "day": DAYS,
    "at": TIMES.map(lambda time: time.replace(tzinfo=ZONE)),
    "place": PLACES,
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=12
)


def _literals(name: str) -> st.SearchStrategy[Literal]:
    if name == "place":
        return st.builds(Literal, st.integers(-2, 2).map(Decimal))
    values = VALUES[name].map(lambda value: Decimal(str(value)) if isinstance(value, int | float) else value)
    return st.builds(Literal, values)


@st.composite
def _conditions(draw: st.DrawFn, names: Sequence[str] = tuple(VALUES)) -> Condition:
    name = draw(st.sampled_from(names))
    column = Column((name, "zip")) if name == "place" else Column((name,))
    chosen = conditions(st.just(column), _literals(name))
    if name != "name":
        chosen = chosen.filter(lambda condition: "like" not in text_of(condition))
    return draw(chosen)


def _node(format: str, infos: Sequence[Mapping[str, Any]], kind: str = "sink") -> TopologyNode:
    return TopologyNode(
        number=0,
        name="save",
        description="",
        kind=kind,
        relation="source" if kind == "source" else "flows",
        exact=True,
        reason="",
        call_site="",
        dataset=Dataset(namespace="file", name="/data", format=format),
        parents=(),
        partitions={int(info["split"]): info for info in infos},
    )


def _matches(
    node: TopologyNode, condition: Condition, counts: Mapping[int, int] | None = None
) -> list[tuple[int, int]]:
    with RecordLocations().search(node, Where(text_of(condition))) as search:
        places = [
            (partition, offset)
            for partition, count in (counts or {0: 1 << 40}).items()
            for offset, is_match in search.matching(partition, first=0, last=count, check=unlimited)
            if is_match
        ]
        assert not search.warnings
    return places


def _expected(rows: Sequence[Mapping[str, Any]], condition: Condition) -> list[tuple[int, int]]:
    return [(0, number) for number, row in enumerate(rows) if holds(condition, row)]


@pytest.mark.parametrize("format", ["parquet", "orc"])
@given(rows=ROWS, condition=_conditions(), data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_rows_of_files_with_types(
    format: str, rows: list[dict[str, Any]], condition: Condition, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # DuckDB would take the second name for a pattern, so that file comes to it through Arrow.
        path = Path(folder) / data.draw(st.sampled_from(("part-0", "part[0]*")))
        table = pa.Table.from_pylist(rows, SCHEMA)
        if format == "parquet":
            pq.write_table(table, path, row_group_size=data.draw(st.integers(1, 5)))
        else:
            pyarrow.orc.write_table(table, path)
        node = _node(format, [{"split": 0, "path": str(path), "start": 0}])
        assert _matches(node, condition) == _expected(rows, condition)


@pytest.mark.parametrize("name", ["part-0", "part[0]*"])
@pytest.mark.parametrize(
    ("where", "expected"),
    [("x > 5", [1]), ("x >= 5", [1]), ("x < 5", [0]), ("x = 1", [0]), ("not x <= 5", [1])],
)
def test_nan_is_greater_than_all_as_in_spark(
    tmp_path: Path, name: str, where: str, expected: list[int]
) -> None:
    path = tmp_path / name
    pq.write_table(pa.table({"x": [1.0, float("nan"), None]}), path)
    places = _matches(_node("parquet", [{"split": 0, "path": str(path), "start": 0}]), parse(where))
    assert places == [(0, number) for number in expected]


# -- lines ------------------------------------------------------------------------------------------


TEXT_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(10**20), 10**20) | st.sampled_from((2, 2.5, -0.1)),
            "name": st.none() | TEXTS,
        }
    ),
    max_size=12,
)
BLANKS = st.lists(st.sampled_from(("", " ", "\t ")), max_size=2)


def _written(path: Path, lines: Sequence[str], end: str) -> None:
    data = "".join(line + end for line in lines).encode()
    packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix)
    path.write_bytes(data if packed is None else packed(data))


def _lines_with_blanks(draw: Any, lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Blank lines between them, and which line each one is."""
    every: list[str] = []
    places: list[int] = []
    for line in lines:
        every += draw(BLANKS)
        places.append(len(every))
        every.append(line)
    return [*every, *draw(BLANKS)], places


@given(
    rows=TEXT_ROWS,
    name=st.sampled_from(("part-0", "part-0.gz", "part-0.bz2")),
    has_header=st.booleans(),
    end=st.sampled_from(("\n", "\r\n", "\r")),
    data=st.data(),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_lines_of_csv(
    rows: list[dict[str, Any]], name: str, has_header: bool, end: str, data: st.DataObject
) -> None:
    names = ("n", "name", "k") if has_header else ("_c0", "_c1", "_c2")
    texts = [
        ",".join(
            (
                "" if row["n"] is None else str(row["n"]),
                ""
                if row["name"] is None
                else '"' + row["name"].replace("\\", "\\\\").replace('"', '\\"') + '"',
                "end",
            )
        )
        for row in rows
    ]
    lines, _ = _lines_with_blanks(data.draw, [*([",".join(names)] if has_header else []), *texts])
    columns = {"n": names[0], "name": names[1]}
    chosen = data.draw(st.sampled_from(("n", "name")))
    numbers = st.integers(-(10**20), 10**20) | st.sampled_from((2, Decimal("2.5"), Decimal("-0.1"), 10**40))
    literals = st.builds(Literal, numbers.map(Decimal) if chosen == "n" else TEXTS)
    condition = data.draw(
        conditions(st.just(Column((columns[chosen],))), literals).filter(
            lambda condition: chosen == "name" or "like" not in text_of(condition)
        )
    )
    expected = [{columns[name]: value for name, value in row.items()} for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        _written(path, lines, end)
        node = _node("csv+header" if has_header else "csv", [{"split": 0, "path": str(path), "start": 0}])
        if not rows:  # nothing says which columns there are
            return
        assert _matches(node, condition) == _expected(expected, condition)


JSON_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-3, 3),
            "name": st.none() | TEXTS,
            "flag": st.none() | st.booleans(),
            "place": st.none() | st.fixed_dictionaries({"a/b~c": st.none() | st.integers(-2, 2)}),
        }
    ),
    min_size=1,
    max_size=12,
)


@given(rows=JSON_ROWS, in_arrays=st.booleans(), data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_lines_of_json(rows: list[dict[str, Any]], in_arrays: bool, data: st.DataObject) -> None:
    rows.append({"n": 1, "name": "x", "flag": True, "place": {"a/b~c": 1}})  # so that all keys are seen
    groups = [rows[at : at + 3] for at in range(0, len(rows), 3)]
    texts = [json.dumps(value, ensure_ascii=False) for value in (groups if in_arrays else rows)]
    lines, _ = _lines_with_blanks(data.draw, texts)
    column, literals = data.draw(
        st.sampled_from(
            (
                (Column(("n",)), st.integers(-3, 3).map(Decimal)),
                (Column(("name",)), TEXTS),
                (Column(("flag",)), st.booleans()),
                (Column(("place", "a/b~c")), st.integers(-2, 2).map(Decimal)),
            )
        )
    )
    condition = data.draw(
        conditions(st.just(column), st.builds(Literal, literals)).filter(
            lambda condition: column.parts == ("name",) or "like" not in text_of(condition)
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part-0"
        _written(path, lines, "\n")
        node = _node("json", [{"split": 0, "path": str(path), "start": 0}])
        assert _matches(node, condition) == _expected(rows, condition)


@given(
    lines=st.lists(st.text(st.sampled_from("ab é\t"), max_size=4), min_size=1, max_size=20),
    starts=st.sets(st.integers(1, 40), max_size=3),
    data=st.data(),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_lines_of_text_in_partitions(lines: list[str], starts: set[int], data: st.DataObject) -> None:
    condition = data.draw(
        conditions(st.just(Column(("value",))), st.builds(Literal, st.sampled_from((*lines, "a"))))
    )
    content = "".join(line + "\n" for line in lines).encode()
    begins = [0, *sorted(start for start in starts if start < len(content))]
    # The first byte of each line.
    firsts = [sum(len(line.encode()) + 1 for line in lines[:number]) for number in range(len(lines))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.txt"
        path.write_bytes(content)
        infos = [{"split": split, "path": str(path), "start": start} for split, start in enumerate(begins)]
        # By Hadoop's rule a line is of the partition before the one that begins at its first byte.
        split_of = [
            max(at for at, begin in enumerate(begins) if begin < first or not begin) for first in firsts
        ]
        counts = {split: split_of.count(split) for split in range(len(begins))}
        places = _matches(_node("text", infos, "source"), condition, counts)
    expected = [
        (split_of[number], number - split_of.index(split_of[number]))
        for number, line in enumerate(lines)
        if holds(condition, {"value": line})
    ]
    assert places == expected


@given(
    values=st.lists(
        st.none() | st.text(st.sampled_from("a=/ %é1"), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    data=st.data(),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_folders_are_columns(values: list[str | None], data: st.DataObject) -> None:
    condition = data.draw(
        conditions(
            st.just(Column(("k",))), st.builds(Literal, st.sampled_from(tuple(v or "x" for v in values)))
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        infos = []
        for split, value in enumerate(values):
            name = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="")
            path = Path(folder) / f"k={name}" / "part"
            path.parent.mkdir()
            pq.write_table(pa.table({"n": [1, 2]}), path)
            infos.append({"split": split, "path": str(path), "start": 0})
        both = parse(f"({text_of(condition)}) and n = 2")
        places = _matches(_node("parquet", infos), both, dict.fromkeys(range(len(values)), 2))
    assert places == [(split, 1) for split, value in enumerate(values) if holds(condition, {"k": value})]
