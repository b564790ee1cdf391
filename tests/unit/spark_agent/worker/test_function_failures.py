"""On which row of a batch a user's function has failed, as a worker of PySpark calls it."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark import SparkFiles, cloudpickle
from pyspark.serializers import BatchedSerializer, CloudPickleSerializer, CPickleSerializer

from spark_agent.worker import function_failures
from spark_agent.worker.function_failures import FILE_PREFIX, Attended, RowAtHand, attended, row_at_hand

BAD = 137
#: A worker as PySpark's are: it calls a function for each row, in three ways.
WORKER = """
def handle_worker_exception(error, outfile):
    outfile.append(type(error).__name__)

def _evaluate_batch_udf(function, rows):
    return [function(*row) for row in rows]

def main(load, function, dump, way, outfile):
    def process():
        iterator = load()
        if way == "generator":
            out = (function(*row) for row in iterator)
        elif way == "map":
            def mapper(row):
                return function(*row)
            out = map(mapper, iterator)
        else:
            out = (result for batch in iterator for result in _evaluate_batch_udf(function, batch))
        dump(out)
    try:
        process()
    except BaseException as error:
        handle_worker_exception(error, outfile)
"""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("pyspark.worker")
    exec(compile(WORKER, "worker.py", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "pyspark.worker", module)
    return module


def fails(number: int) -> int:
    if number == BAD:
        raise ValueError(number)
    return number


def loading(way: str, size: int, kind: type = list) -> Callable[[], Iterator[Any]]:
    firsts = range(0, 250, size)
    batches = (kind((at,) for at in range(first, min(first + size, 250))) for first in firsts)
    return lambda: batches if way == "arrow" else chain.from_iterable(batches)


def dump(results: Iterator[Any]) -> None:
    BatchedSerializer(CPickleSerializer(), 100).dump_stream(results, io.BytesIO())


def found_in(worker: ModuleType, function: Any, way: str, size: int = 100) -> RowAtHand | None:
    """What an error that leaves the worker says."""
    places: list[RowAtHand | None] = []
    vars(worker)["handle_worker_exception"] = lambda error, _: places.append(row_at_hand(error))
    worker.main(loading(way, size), function, dump, way, [])
    return places[0]


@pytest.mark.parametrize("way", ["generator", "map", "arrow"])
@pytest.mark.parametrize("size", [100, 7, 1000])
def test_the_row_at_hand_is_known_by_its_place_in_the_batch(way: str, size: int, worker: ModuleType) -> None:
    length = min(size, 250 - BAD // size * size)
    assert found_in(worker, fails, way, size) == RowAtHand(BAD % size, length)


def test_a_batch_may_be_a_tuple(worker: ModuleType) -> None:
    places: list[RowAtHand | None] = []
    vars(worker)["handle_worker_exception"] = lambda error, _: places.append(row_at_hand(error))
    worker.main(loading("map", 100, tuple), fails, dump, "map", [])
    assert places == [RowAtHand(37, 100)]


@pytest.mark.parametrize("way", ["generator", "map"])
def test_results_that_cannot_be_written_are_of_no_row(way: str, worker: ModuleType) -> None:
    def unpicklable(number: int) -> Any:
        return (at for at in range(number)) if number == BAD else number

    assert found_in(worker, unpicklable, way) is None


def test_a_batch_that_cannot_be_read_is_of_no_row(worker: ModuleType) -> None:
    def batches() -> Iterator[Any]:
        yield [(1,)]
        raise ValueError

    places: list[RowAtHand | None] = []
    vars(worker)["handle_worker_exception"] = lambda error, _: places.append(row_at_hand(error))
    worker.main(lambda: chain.from_iterable(batches()), fails, dump, "generator", [])
    assert places == [None]


def test_rows_without_arguments_are_not_told_apart(worker: ModuleType) -> None:
    def raises() -> None:
        raise ValueError

    places: list[RowAtHand | None] = []
    vars(worker)["handle_worker_exception"] = lambda error, _: places.append(row_at_hand(error))
    worker.main(lambda: iter([[(), ()]]), raises, dump, "arrow", [])
    assert places == [None]


class Task:
    def taskAttemptId(self) -> int:
        return 42


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """That of the running task."""
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: Task())
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    return tmp_path / f"{FILE_PREFIX}42"


def test_an_attended_function_is_itself_and_says_its_failure_to_a_task_that_asks(
    worker: ModuleType, file: Path
) -> None:
    file.write_text("of another function of the task")
    assert attended(fails) is fails
    function = cloudpickle.loads(cloudpickle.dumps(Attended(fails)))  # twice in one worker
    assert not isinstance(function, Attended)
    outfile: list[str] = []
    worker.main(loading("map", 100), function, dump, "map", outfile)
    assert outfile == ["ValueError"]
    assert file.read_text() == "37 100"


def test_a_task_that_does_not_ask_has_no_file(worker: ModuleType, file: Path) -> None:
    attended(fails)
    outfile: list[str] = []
    worker.main(loading("map", 100), fails, dump, "map", outfile)
    assert outfile == ["ValueError"]
    assert list(file.parent.iterdir()) == []


def test_a_pickled_function_is_itself_where_there_is_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = CloudPickleSerializer().dumps((Attended(fails), "int"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "spark_agent"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(function_failures.__name__)
    function, kind = CloudPickleSerializer().loads(pickled)
    assert (function(1), kind) == (1, "int")


def test_what_is_wrong_here_changes_no_error(
    worker: ModuleType, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch()

    def breaks(_error: BaseException) -> None:
        raise KeyError

    monkeypatch.setattr(function_failures, "row_at_hand", breaks)
    attended(fails)
    outfile: list[str] = []
    worker.main(loading("map", 100), fails, dump, "map", outfile)
    assert outfile == ["ValueError"]
