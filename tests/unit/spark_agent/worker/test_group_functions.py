from __future__ import annotations

import inspect
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import PySparkRuntimeError
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_agent.worker.group_functions import NO_ROWS, with_ids

ROW_TYPE = StructType([StructField("tag", StringType()), StructField("n", LongType())])
#: PySpark's numbers.
PANDAS, PANDAS_OF_TWO, ARROW, ARROW_OF_TWO, ARROW_BATCHES, FRAMES = 201, 206, 209, 210, 215, 216
MAP_IN_PANDAS = 205
IDS = ["id_0"]
IDS_OF_TWO = ["id_0", "id_1"]


def loaded(function: Callable[..., Any], evaluation: int) -> tuple[Callable[..., Any], StructType]:
    """What a worker unpickles."""
    id_columns = IDS_OF_TWO if evaluation in (PANDAS_OF_TWO, ARROW_OF_TWO) else IDS
    return pickle.loads(with_ids(dumps((function, ROW_TYPE)), evaluation, "group", id_columns))  # type: ignore[no-any-return]


def frame(rows: int, group: int = 7) -> pd.DataFrame:
    return pd.DataFrame({"tag": ["a"] * rows, "n": [*range(rows)], "group": [group] * rows})


def table(rows: int, group: int = 7) -> pa.Table:
    return pa.table(
        {
            "tag": ["a"] * rows,
            "n": pa.array([*range(rows)], pa.int64()),
            "group": pa.array([group] * rows, pa.int64()),
        }
    )


def agent_frames(error: BaseException) -> list[str]:
    modules = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [module for module in modules if module.startswith("spark_agent.")]


def test_rows_have_the_id_of_their_group() -> None:
    user, row_type = loaded(lambda rows: pd.DataFrame({"n": [1, 2], "tag": ["x", "y"]}), PANDAS)
    assert row_type.names == ["tag", "n", "id_0"]
    result = user(frame(3))
    assert result.to_dict("list") == {"n": [1, 2], "tag": ["x", "y"], "id_0": [7, 7]}


@pytest.mark.parametrize("evaluation", [PANDAS, ARROW])
def test_a_function_sees_what_it_sees_without_lineage(evaluation: int) -> None:
    plain: Any = frame(3) if evaluation == PANDAS else table(3)
    expected = plain.drop(columns="group") if evaluation == PANDAS else plain.drop_columns("group")
    user, _ = loaded(lambda key, rows: pickle.dumps((key, rows)), evaluation)
    key, rows = pickle.loads(user(("a",), plain))
    assert key == ("a",)
    assert rows.equals(expected)
    if evaluation == PANDAS:
        assert list(rows.columns) == ["tag", "n"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows["new"] = 1
    else:
        assert rows.schema == expected.schema


@pytest.mark.parametrize(
    ("function", "evaluation"),
    [
        (lambda rows: rows, PANDAS),
        (lambda key, rows: rows, ARROW),
        (lambda left, right: left, PANDAS_OF_TWO),
        (lambda key, left, right: left, ARROW_OF_TWO),
        (lambda *arguments: arguments, PANDAS),
    ],
)
def test_pyspark_counts_as_many_parameters(function: Callable[..., Any], evaluation: int) -> None:
    wrapped, _ = loaded(function, evaluation)
    assert len(inspect.getfullargspec(wrapped).args) == len(inspect.getfullargspec(function).args)


@pytest.mark.parametrize(
    ("left", "right", "ids"), [(2, 1, [7, 8]), (0, 1, [NO_ROWS, 8]), (2, 0, [7, NO_ROWS])]
)
@pytest.mark.parametrize("evaluation", [PANDAS_OF_TWO, ARROW_OF_TWO])
def test_rows_of_a_cogroup_have_the_ids_of_both_sides(
    evaluation: int, left: int, right: int, ids: list[int]
) -> None:
    make: Any = frame if evaluation == PANDAS_OF_TWO else table
    counted = lambda one, other: one.__class__({"n": [len(one)], "tag": [str(len(other))]})  # noqa: E731
    counted_tables = lambda one, other: pa.table({"n": [len(one)], "tag": [str(len(other))]})  # noqa: E731
    user, row_type = loaded(counted if evaluation == PANDAS_OF_TWO else counted_tables, evaluation)
    result = user(make(left, 7), make(right, 8))
    result = result if evaluation == PANDAS_OF_TWO else result.to_pandas()
    assert row_type.names == ["tag", "n", "id_0", "id_1"]
    assert result.to_dict("list") == {"n": [left], "tag": [str(right)], "id_0": ids[:1], "id_1": ids[1:]}


def test_what_the_user_keeps_of_a_result_stays_as_it_is() -> None:
    same, _ = loaded(lambda rows: rows, PANDAS)
    rows = frame(2)
    assert list(same(rows).columns) == ["tag", "n", "id_0"]
    assert list(rows.columns) == ["tag", "n"]


@pytest.mark.parametrize(
    "columns",
    [
        [0, 1],
        [5, 2],
        [2, 3],
        pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]),
        pd.to_datetime(["2020", "2021"]),
    ],
)
def test_columns_without_names_stay_without(columns: Any) -> None:
    user, _ = loaded(lambda rows: pd.DataFrame([["a", 1], ["b", 2]], columns=columns), PANDAS)
    result = user(frame(2))
    assert not any(isinstance(label, str) for label in result.columns)
    assert result.columns.is_unique
    assert result.iloc[:, 2].tolist() == [7, 7]
    assert result[result.columns[2]].tolist() == [7, 7]


@pytest.mark.parametrize(
    "result",
    [
        pd.DataFrame({"tag": ["a"]}),
        pd.DataFrame({"tag": ["a"], "n": [1], "more": [2]}),
        pd.DataFrame({"tag": ["a"], "id_0": [2]}),
        pd.DataFrame([[1]]),
        pd.DataFrame([[1, 2, 3]]),
    ],
)
def test_a_result_of_other_columns_is_an_error_in_the_words_of_pyspark(result: pd.DataFrame) -> None:
    from pyspark.worker import verify_pandas_result

    with pytest.raises(PySparkRuntimeError) as expected:
        verify_pandas_result(result, ROW_TYPE, True, truncate_return_schema=False)
    user, row_type = loaded(lambda rows: result, PANDAS)
    with pytest.raises(PySparkRuntimeError) as error:
        verify_pandas_result(user(frame(2)), row_type, True, truncate_return_schema=False)
    assert str(error.value) == str(expected.value)


@pytest.mark.parametrize(
    "result", [pd.DataFrame({"tag": ["a"], "m": [1]}), pd.DataFrame({"x": [1], "y": [1]})]
)
def test_a_result_of_other_names_is_an_error_in_the_words_of_pyspark(result: pd.DataFrame) -> None:
    test_a_result_of_other_columns_is_an_error_in_the_words_of_pyspark(result)


@pytest.mark.parametrize("result", [None, "text", [1], pd.Series([1]), pd.DataFrame()])
def test_pyspark_gets_what_is_no_table_or_empty_as_it_is(result: Any) -> None:
    user, _ = loaded(lambda rows: result, PANDAS)
    returned = user(frame(2))
    assert type(returned) is type(result)
    assert returned is result or len(returned) == len(result)
    in_arrow, _ = loaded(lambda rows: result, ARROW)
    assert type(in_arrow(table(2))) is type(result)


def test_empty_tables_have_the_column() -> None:
    user, _ = loaded(lambda rows: rows[:0], PANDAS)
    assert list(user(frame(2)).columns) == ["tag", "n", "id_0"]
    in_arrow, _ = loaded(lambda rows: rows[:0], ARROW)
    assert in_arrow(table(2)).schema.names == ["tag", "n", "id_0"]
    without_columns, _ = loaded(lambda rows: pa.table({}), ARROW)
    assert without_columns(table(2)).num_columns == 0


def test_a_table_keeps_its_chunks() -> None:
    chunks = pa.concat_tables([table(2), table(3)])
    user, _ = loaded(lambda rows: rows, ARROW)
    result = user(chunks)
    assert [len(batch) for batch in result.to_batches()] == [2, 3]
    assert result["id_0"].to_pylist() == [7] * 5
    assert result.schema.field("id_0").type == pa.int64()


def test_batches_are_read_when_the_function_asks() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for size in (1, 2, 3):
            read.append(size)
            yield from table(size).to_batches()

    def user(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield batch.slice(0, 1)
            yield batch

    wrapped, _ = loaded(user, ARROW_BATCHES)
    results = wrapped(batches())
    assert read == [1]
    sizes = []
    for result in results:
        assert result.schema.names == ["tag", "n", "id_0"]
        assert set(result.column("id_0").to_pylist()) == {7}
        sizes.append((len(result), len(read)))
    assert sizes == [(1, 1), (1, 1), (1, 2), (2, 2), (1, 3), (3, 3)]


def test_a_function_may_leave_batches_unread() -> None:
    wrapped, _ = loaded(
        lambda key, rows: iter([pa.RecordBatch.from_pydict({"tag": ["x"], "n": [1]})]), ARROW_BATCHES
    )
    (batch,) = wrapped(("a",), iter(table(3).to_batches()))
    assert batch.to_pydict() == {"tag": ["x"], "n": [1], "id_0": [7]}


def test_frames_of_an_iterator_have_the_id_too() -> None:
    def user(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        total = 0
        for part in frames:
            assert list(part.columns) == ["tag", "n"]
            total += len(part)
            yield pd.DataFrame({"tag": ["t"], "n": [total]})

    wrapped, _ = loaded(user, FRAMES)
    results = [*wrapped(iter([frame(2), frame(3)]))]
    assert [part.to_dict("list") for part in results] == [
        {"tag": ["t"], "n": [2], "id_0": [7]},
        {"tag": ["t"], "n": [5], "id_0": [7]},
    ]
    as_list, _ = loaded(lambda frames: [part[:1] for part in frames], FRAMES)
    assert [part["id_0"].tolist() for part in as_list(iter([frame(2), frame(3)]))] == [[7], [7]]


def test_frames_of_a_partition_have_the_id_of_the_last_row_that_was_read() -> None:
    def user(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"tag": ["first"], "n": [0]})
        for part in frames:
            yield part[["tag", "n"]]
            yield part[["tag", "n"]].assign(more=1)[:1]
        yield pd.DataFrame({"tag": ["last"], "n": [0]})

    wrapped, row_type = loaded(user, MAP_IN_PANDAS)
    parts = [frame(2).assign(group=[3, 4]), frame(0), frame(1).assign(group=[5])]
    assert row_type.names == ["tag", "n", "id_0"]
    results = [*wrapped(iter(parts))]
    assert all(list(result.columns) == ["tag", "n", "id_0"] for result in results)
    ids = [result["id_0"].tolist() for result in results]
    assert ids == [[NO_ROWS], [4, 4], [4], [], [], [5], [5], [5]]


def test_a_function_of_a_partition_may_read_ahead() -> None:
    def user(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        before = next(frames)
        for part in frames:
            yield before
            before = part
        yield before

    wrapped, _ = loaded(user, MAP_IN_PANDAS)
    results = wrapped(iter([frame(2, 1), frame(3, 2), frame(1, 3)]))
    assert [part["id_0"].tolist() for part in results] == [[2, 2], [3, 3, 3], [3]]


@pytest.mark.parametrize("kind", [list, tuple])
def test_what_is_no_iterator_stays_none(kind: Callable[[Any], Any]) -> None:
    wrapped, _ = loaded(lambda frames: kind([*frames]), MAP_IN_PANDAS)
    results = wrapped(iter([frame(2, 1), frame(3, 2)]))
    assert type(results).__name__ == kind.__name__
    assert not isinstance(results, Iterator)
    assert [part["id_0"].tolist() for part in results] == [[2, 2], [2, 2, 2]]


@pytest.mark.parametrize("evaluation", [ARROW_BATCHES, FRAMES])
def test_what_is_no_iterator_goes_to_pyspark_as_it_is(evaluation: int) -> None:
    parts: Any = [frame(1)] if evaluation == FRAMES else table(1).to_batches()
    wrapped, _ = loaded(lambda rows: 3, evaluation)
    assert wrapped(iter(parts)) == 3


@pytest.mark.parametrize("evaluation", [PANDAS, ARROW, ARROW_BATCHES])
def test_errors_of_the_user_show_no_line_of_the_agent(evaluation: int) -> None:
    rows: Any = frame(1) if evaluation == PANDAS else table(1)
    wrapped, _ = loaded(lambda rows: 1 // 0, evaluation)
    with pytest.raises(ZeroDivisionError) as error:
        wrapped(iter(rows.to_batches()) if evaluation == ARROW_BATCHES else rows)
    assert not agent_frames(error.value)


def test_errors_of_a_generator_show_no_line_of_the_agent() -> None:
    def failing(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(rows)
        raise ValueError("of the user")

    wrapped, _ = loaded(failing, ARROW_BATCHES)
    results = wrapped(iter(table(1).to_batches()))
    next(results)
    with pytest.raises(ValueError, match="of the user") as error:
        next(results)
    assert not agent_frames(error.value)


def test_a_function_that_does_not_unpickle_fails_as_ever() -> None:
    class Failing:
        def __reduce__(self) -> Any:
            return int, ("no number",)

    with pytest.raises(ValueError, match="no number") as error:
        pickle.loads(with_ids(pickle.dumps((Failing(), ROW_TYPE)), PANDAS, "group", IDS))
    assert not agent_frames(error.value)


def test_wide_frames_cause_no_warning() -> None:
    def wide(rows: pd.DataFrame) -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = pd.DataFrame(index=range(2))
            for column in range(150):
                result[f"c{column}"] = column
        return result

    names = StructType([StructField(f"c{column}", LongType()) for column in range(150)])
    user, _ = pickle.loads(with_ids(dumps((wide, names)), PANDAS, "group", IDS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert user(frame(1)).iloc[:, -1].tolist() == [7, 7]


def test_equal_functions_have_equal_commands() -> None:
    command = dumps((len, ROW_TYPE))
    assert with_ids(command, PANDAS, "group", IDS) == with_ids(command, PANDAS, "group", IDS)
