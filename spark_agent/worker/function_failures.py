"""Says in a worker of Python at which row of its batch a user's function for rows has failed.

A function that is unpickled by way of `attended` stays what it is, and is called as ever: a row that goes
well costs nothing. Only the worker's last step, which hands an error to the JVM, is preceded by a look at the
frames that the error has passed. What it sees goes into a small file beside those of the job. The JVM makes
it, empty, for a task that asks, reads it, and removes it (FailedCall.java).

Promises that nothing is raised here, and that the error goes on as it is.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from itertools import chain, pairwise
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function")

#: The file's name is this and the number of the task's attempt.
FILE_PREFIX = ".lineage-call-"
#: Where PySpark's worker hands on an error, since version 4.0.
_LAST_STEP = "handle_worker_exception"
_WORKERS = ("pyspark.worker", "__main__")
#: What calls a function for each row of a batch of Arrow.
_OF_ARROW = "_evaluate_batch_udf"


class RowAtHand(NamedTuple):
    """The place of a row in the batch that Python was given last, and the size of that."""

    place: int
    size: int


class Attended:
    """Pickles a function so that the worker which unpickles it says on which row it fails.

    PySpark keeps what is pickled with the user's function, which may serve a later application. There it is
    the plain function where nobody brings the agent to executors. So what loads it is pickled by value.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        def load(function: Function) -> Function:  # defined here, so cloudpickle pickles it by value
            try:
                from spark_agent.worker.function_failures import attended
            except Exception:  # noqa: BLE001 - no agent, or another one
                return function
            return attended(function)

        return load, (self.function,)


def attended(function: Function) -> Function:
    """The function itself. From now on, this process says on which row one fails."""
    with contextlib.suppress(Exception):
        for name in _WORKERS:
            module = sys.modules.get(name)
            if module is not None:
                _attend(module)
    return function


def _attend(module: ModuleType) -> None:
    original = getattr(module, _LAST_STEP, None)
    if original is None or getattr(original, "is_attended", False):
        return

    def handle_worker_exception(error: BaseException, *args: Any, **kwargs: Any) -> None:
        with contextlib.suppress(Exception):
            _report(error)
        original(error, *args, **kwargs)

    handle_worker_exception.is_attended = True  # type: ignore[attr-defined] # a mark for the next function
    setattr(module, _LAST_STEP, handle_worker_exception)


def _report(error: BaseException) -> None:
    from pyspark import SparkFiles, TaskContext

    task = TaskContext.get()
    if task is None:
        return
    path = os.path.join(SparkFiles.getRootDirectory(), f"{FILE_PREFIX}{task.taskAttemptId()}")
    row = row_at_hand(error) if os.path.exists(path) else None
    if row is not None:
        with open(path, "w", encoding="ascii", opener=_opened) as file:
            file.write(f"{row.place} {row.size}")


def _opened(path: str, flags: int) -> int:
    """The task may end at any time, with its file."""
    return os.open(path, flags & ~os.O_CREAT)


def row_at_hand(error: BaseException) -> RowAtHand | None:
    """Where it is known: PySpark reads lists of rows, one row after the other.

    What is raised outside of the calls of functions, as when results are written, is of no row.
    """
    frames = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") in _WORKERS
    ]
    names = [frame.f_code.co_name for frame in frames]
    if "process" not in names or names[-1] == "process":
        return None
    for frame, inner in pairwise(frames):
        if frame.f_code.co_name.startswith(_OF_ARROW):
            return _in_rows(frame.f_locals, inner.f_locals)
    last = frames[-1]
    if last.f_code.co_name.startswith(_OF_ARROW):
        return _in_rows(last.f_locals, last.f_locals)
    return _in_batches(frames[names.index("process")].f_locals.get("iterator"))


def _in_rows(of_batch: Mapping[str, Any], of_row: Mapping[str, Any]) -> RowAtHand | None:
    """Of a list of the arguments of each row, and of those that the function got."""
    rows, row = of_batch.get("rows"), of_row.get("row")
    if not isinstance(rows, list) or not isinstance(row, tuple):
        return None
    places = [index for index, arguments in enumerate(rows) if arguments is row]
    return RowAtHand(places[0], len(rows)) if len(places) == 1 else None


def _in_batches(rows: Any) -> RowAtHand | None:
    if type(rows) is not chain:
        return None
    places = [place for referent in gc.get_referents(rows) if (place := _place(referent)) is not None]
    return places[0] if len(places) == 1 else None


def _place(referent: Any) -> RowAtHand | None:
    """Of an iterator over a batch, which the JVM pickles as a tuple or a list, how far it is."""
    if type(referent) not in (type(iter([])), type(iter(()))):
        return None
    state: Any = referent.__reduce__()  # what makes it again: `iter`, its batch, its place
    if len(state) < 3:
        return None
    return RowAtHand(state[2] - 1, len(state[1][0]))
