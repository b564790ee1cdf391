"""Functions of Python over many rows that also say what each row that they give may come from.

Spark gives functions over groups (applyInPandas and its like) one group after the other. With lineage, a
group's rows have one column more, the id of the group, which the user's function does not see. What it gives
for a group gets the same id, in a column more. So each row names its group, whatever Spark does with it next.
Functions over partitions (mapInPandas) read one frame after the other. There, the id of a row names all rows
up to it, and what a function gives gets the id of the last row that it has read by then.

Promises that the user's function is called as ever, with equal arguments, that iterators stay lazy, and that
what is wrong with a result is told in PySpark's words. Knows nothing of operators and of Kafka.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature, getfullargspec
from itertools import chain, count
from typing import Any

from spark_agent.delivery.tracebacks import hide_agent, hiding

#: The id of a table of two that has no rows of the group.
NO_ROWS = -1


@dataclass(frozen=True, slots=True)
class Shape:
    """What a function takes and gives: whole tables of pandas or Arrow or, where lazy, iterators of parts."""

    tables: int
    is_pandas: bool
    is_lazy: bool = False
    is_of_group: bool = True  # else of all rows that were read by then


#: Shape by PySpark's number for it (PythonEvalType).
SHAPES = {
    201: Shape(1, is_pandas=True),
    205: Shape(1, is_pandas=True, is_lazy=True, is_of_group=False),
    206: Shape(2, is_pandas=True),
    209: Shape(1, is_pandas=False),
    210: Shape(2, is_pandas=False),
    215: Shape(1, is_pandas=False, is_lazy=True),
    216: Shape(1, is_pandas=True, is_lazy=True),
}


def with_ids(command: bytes, evaluation: int, column: str, id_columns: Sequence[str]) -> bytes:
    """A pickled (function, type of its rows) that takes a `column` more and gives `id_columns` more.

    The function itself is not unpickled here.
    """
    return pickle.dumps(_Command(command, evaluation, column, id_columns), protocol=4)


class _Command:
    """Unpickles as what PySpark's worker expects."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> Any:
        return load, self._arguments


def load(*arguments: Any) -> tuple[Callable[..., Any], Any]:
    """(function, type of its rows), with what `with_ids` says."""
    try:
        return _load(*arguments)
    except BaseException as error:
        hide_agent(error)
        raise


def _load(
    command: bytes, evaluation: int, column: str, id_columns: Sequence[str]
) -> tuple[Callable[..., Any], Any]:
    from pyspark import Broadcast
    from pyspark.serializers import CPickleSerializer
    from pyspark.sql.types import LongType, StructField, StructType

    serializer = CPickleSerializer()
    loaded = serializer.loads(command)
    if isinstance(loaded, Broadcast):  # of a large function
        loaded = serializer.loads(loaded.value)
    function, row_type = loaded
    shape = SHAPES[evaluation]
    tables: _Tables = _Arrow(column, id_columns)
    if shape.is_pandas:
        tables = _Pandas(column, id_columns, row_type, is_cut=not shape.is_of_group)
    if not shape.is_of_group:
        calling = _reading(function, tables)
    else:
        calling = (_lazily if shape.is_lazy else _at_once)(function, tables, shape.tables)
    id_fields = [StructField(name, LongType()) for name in id_columns]
    return _with_parameters_of(function, hiding(calling)), StructType([*row_type.fields, *id_fields])


def _with_parameters_of(function: Callable[..., Any], calling: Callable[..., Any]) -> Callable[..., Any]:
    """PySpark counts them, to know whether the function takes the key of the group."""
    parameters = [
        Parameter(f"argument_{index}", Parameter.POSITIONAL_OR_KEYWORD)
        for index in range(len(getfullargspec(function).args))
    ]
    calling.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # functions take attributes
    return calling


def _at_once(function: Callable[..., Any], tables: _Tables, table_count: int) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        key, groups = arguments[:-table_count], arguments[-table_count:]
        ids = [tables.id_of(group) for group in groups]
        return tables.with_ids(function(*key, *map(tables.without_id, groups)), ids)

    return called


def _lazily(function: Callable[..., Any], tables: _Tables, table_count: int) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        key, parts = arguments[:-table_count], iter(arguments[-1])
        first = next(parts)  # PySpark has read it, for the key
        with_ids = hiding(partial(tables.with_ids, ids=[tables.id_of(first)]))
        return _parts_with_ids(with_ids, function(*key, map(tables.without_id, chain((first,), parts))))

    return called


def _reading(function: Callable[..., Any], tables: _Tables) -> Callable[..., Any]:
    def called(parts: Any) -> Any:
        last_read = [NO_ROWS]

        def without_id(part: Any) -> Any:
            last_read[0] = tables.id_of(part, last_read[0])
            return tables.without_id(part)

        with_ids = hiding(partial(tables.with_ids, ids=last_read))
        return _parts_with_ids(with_ids, function(map(without_id, parts)))

    return called


def _parts_with_ids(with_ids: Callable[[Any], Any], results: Any) -> Any:
    """What is no iterator stays none, of a class of the same name: PySpark takes it or names it."""
    if isinstance(results, Iterator):
        return map(with_ids, results)
    if not hasattr(results, "__iter__"):
        return results
    return type(type(results).__name__, (), {"__iter__": lambda self: map(with_ids, results)})()


class _Pandas:
    """Tables as DataFrames of pandas. If `is_cut`, PySpark ignores columns behind those that it expects."""

    def __init__(self, column: str, id_columns: Sequence[str], row_type: Any, *, is_cut: bool) -> None:
        self._column, self._id_columns, self._row_type = column, id_columns, row_type
        self._is_cut = is_cut

    def id_of(self, frame: Any, of_none: int = NO_ROWS) -> int:
        """Of its last row. `of_none` if it has no rows."""
        return int(frame[self._column].iloc[-1]) if len(frame) else of_none

    def without_id(self, frame: Any) -> Any:
        del frame[self._column]
        return frame

    def with_ids(self, result: Any, ids: Sequence[int]) -> Any:
        """With a column for each id, unless PySpark would not take it anyway."""
        import pandas  # type: ignore[import-untyped] # without stubs, as in the tests

        if not isinstance(result, pandas.DataFrame):
            return result
        expected = len(self._row_type)
        if self._is_cut and len(result.columns) > expected:
            result = result.iloc[:, :expected]
        if len(result.columns) != expected or set(self._id_columns) & set(result.columns):
            self._verify(result)
            return result  # it has no columns and no rows
        # A copy of the data lies in few blocks. Of many, pandas would warn.
        widened = result.copy(deep=expected > 99)
        for label, row_id in zip(self._labels(result.columns), ids, strict=True):
            widened.insert(len(widened.columns), label, row_id)
        return widened

    def _verify(self, result: Any) -> None:
        from pyspark.worker import verify_pandas_result

        verify_pandas_result(result, self._row_type, True, truncate_return_schema=self._is_cut)

    def _labels(self, columns: Any) -> list[Any]:
        """Texts if there are some: PySpark takes columns by their names then, else by their places."""
        if any(isinstance(label, str) for label in columns):
            return [*self._id_columns]
        if columns.nlevels > 1:
            return [(name,) * columns.nlevels for name in self._id_columns]
        unused = (number for number in count(len(columns)) if number not in columns)
        return [next(unused) for _ in self._id_columns]


class _Arrow:
    """Groups as tables of Arrow, or as batches."""

    def __init__(self, column: str, id_columns: Sequence[str]) -> None:
        self._column, self._id_columns = column, id_columns

    def id_of(self, table: Any, of_none: int = NO_ROWS) -> int:
        """Of its last row. `of_none` if it has no rows."""
        return int(table.column(self._column)[-1].as_py()) if table.num_rows else of_none

    def without_id(self, table: Any) -> Any:
        columns, place = table.columns, table.schema.names.index(self._column)
        del columns[place]
        return _with_columns(table, columns, table.schema.remove(place))

    def with_ids(self, result: Any, ids: Sequence[int]) -> Any:
        """With a column for each id. PySpark looks at names and types then."""
        import pyarrow

        if not isinstance(result, (pyarrow.Table, pyarrow.RecordBatch)) or not result.num_columns:
            return result
        columns, schema = result.columns, result.schema
        for name, group_id in zip(self._id_columns, ids, strict=True):
            columns.append(pyarrow.repeat(pyarrow.scalar(group_id, pyarrow.int64()), result.num_rows))
            schema = schema.append(pyarrow.field(name, pyarrow.int64()))
        return _with_columns(result, columns, schema)


_Tables = _Pandas | _Arrow


def _with_columns(table: Any, columns: Sequence[Any], schema: Any) -> Any:
    return type(table).from_arrays(columns, schema=schema)
