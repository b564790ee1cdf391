"""Laws of functions over many rows: each row that comes out names what was read, whatever they do."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.cloudpickle import dumps
from pyspark.sql.types import LongType, StructField, StructType

from spark_agent.worker.group_functions import NO_ROWS, with_ids

ROW_TYPE = StructType([StructField("n", LongType())])
#: PySpark's numbers.
APPLY_IN_PANDAS, MAP_IN_PANDAS, APPLY_IN_ARROW = 201, 205, 209
IDS = st.integers(0, 2**63 - 1)
#: What a function does, one step after the other: read a frame, or give one of so many rows.
STEPS = st.lists(st.just("read") | st.integers(0, 3), max_size=12)


def loaded(function: Any, evaluation: int) -> Any:
    return pickle.loads(with_ids(dumps((function, ROW_TYPE)), evaluation, "id", ["id_0"]))[0]


@given(frames=st.lists(st.lists(IDS, max_size=4), max_size=5), steps=STEPS)
def test_a_frame_names_the_last_row_that_was_read(frames: list[list[int]], steps: list[Any]) -> None:
    def user(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for step in steps:
            if step == "read":
                part = next(parts, None)
                assert part is None or list(part.columns) == ["n"]
            else:
                yield pd.DataFrame({"n": [1] * step})

    parts = (pd.DataFrame({"n": [0] * len(ids), "id": pd.array(ids, "int64")}) for ids in frames)
    given_ids = [part["id_0"].tolist() for part in loaded(user, MAP_IN_PANDAS)(parts)]
    expected, unread, last_read = [], iter(frames), NO_ROWS
    for step in steps:
        if step == "read":
            last_read = (next(unread, None) or [last_read])[-1]
        else:
            expected.append([last_read] * step)
    assert given_ids == expected


@given(
    group=IDS, rows=st.integers(1, 4), result=st.lists(st.integers(-5, 5), max_size=5), has_key=st.booleans()
)
def test_each_row_of_a_group_names_it(group: int, rows: int, result: list[int], has_key: bool) -> None:
    of_rows = lambda frame: pd.DataFrame({"n": result})  # noqa: E731 - told by its parameters
    of_key = lambda key, frame: pd.DataFrame({"n": result})  # noqa: E731
    frame = pd.DataFrame({"n": [*range(rows)], "id": pd.array([group] * rows, "int64")})
    user = loaded(of_key if has_key else of_rows, APPLY_IN_PANDAS)
    given_rows = user(("k",), frame) if has_key else user(frame)
    assert given_rows["n"].tolist() == result
    assert given_rows["id_0"].tolist() == [group] * len(result)


@given(group=IDS, chunks=st.lists(st.lists(st.integers(-5, 5), max_size=3), min_size=1, max_size=4))
def test_a_table_of_a_group_stays_the_same_but_for_the_id(group: int, chunks: list[list[int]]) -> None:
    table = pa.table({"n": pa.chunked_array(chunks, pa.int64())})
    ids = pa.array([group] * len(table), pa.int64())
    result = loaded(lambda rows: rows, APPLY_IN_ARROW)(table.append_column("id", ids))
    assert result.drop_columns("id_0").equals(table)
    assert result.schema.names == ["n", "id_0"]
    assert set(result["id_0"].to_pylist()) <= {group if len(table) else NO_ROWS}
