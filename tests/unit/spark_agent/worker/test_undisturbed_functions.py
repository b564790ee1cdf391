"""That a function is looked at changes nothing of what it does: not its outputs, and not when objects go."""

from __future__ import annotations

import gc
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pyspark
import pytest

from tests.support.generators.capture import captured

ROWS = ["b", "a:1", "", "c c", "a:1", "d:22", "e"]
OF_EACH = [[position] for position in range(len(ROWS))]
Function = Callable[[Iterator[str]], Any]
#: Makes a function that notes in a list what becomes of its objects.
Maker = Callable[[list[Any]], Function]


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Closing:
    """Notes when it goes."""

    def __init__(self, events: list[Any], name: str) -> None:
        self.events, self.name = events, name

    def __del__(self) -> None:
        self.events.append(("gone", self.name))

    def size(self, row: str) -> int:
        return len(row)


def dropped_behind_the_loop(events: list[Any]) -> Function:
    def function(rows: Iterator[str]) -> Any:
        connection = Closing(events, "connection")
        for row in rows:
            yield connection.size(row)
        del connection
        events.append("after")

    return function


def dropped_in_the_loop(events: list[Any]) -> Function:
    def function(rows: Iterator[str]) -> Any:
        first: Any = Closing(events, "setup")
        for row in rows:
            first = None
            events.append(("row", row, first))
            yield row

    return function


def dropped_with_a_batch(events: list[Any]) -> Function:
    def function(rows: Iterator[str]) -> Any:
        batch = []
        for row in rows:
            batch.append(Closing(events, row))
            if len(batch) == 3:
                yield [closing.name for closing in batch]
                batch = []
                events.append("emptied")
        yield [closing.name for closing in batch]

    return function


def dropped_while_listing(events: list[Any]) -> Function:
    def function(rows: Iterator[str]) -> Any:
        outputs = []
        setup: Any = Closing(events, "setup")
        for row in rows:
            setup = None
            events.append(("row", row, setup))
            outputs.append(row)
        return iter(outputs)

    return function


def dropped_before_the_rows(events: list[Any]) -> Function:
    def function(rows: Iterator[str]) -> Any:
        setup = Closing(events, "setup")
        yield "header"
        for row in rows:
            yield setup.size(row)

    return function


MAKERS = [
    dropped_behind_the_loop,
    dropped_in_the_loop,
    dropped_with_a_batch,
    dropped_while_listing,
    dropped_before_the_rows,
]


@pytest.mark.parametrize("many", [None, 0, 1, 2, 4])
@pytest.mark.parametrize("maker", MAKERS)
def test_objects_go_when_they_would_go_anyway(maker: Maker, many: int | None) -> None:
    plain: list[Any] = []
    expected = list(islice(maker(plain)(iter(ROWS)), many))
    events: list[Any] = []
    assert captured(maker(events), ROWS, many)[0] == expected
    assert events == plain


def test_an_early_stop_frees_what_the_function_reads() -> None:
    events: list[Any] = []
    closing = Closing(events, "source")

    def records(of: Closing) -> Iterator[str]:
        for row in ROWS:
            yield row[: 9 + len(of.name)]

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield row.upper()

    source = records(closing)
    del closing
    captured(function, source, 1)
    del source
    assert events == [("gone", "source")]


class Plain:
    pass


def seen_by_weak_references(rows: Iterator[str]) -> Any:
    thing: Any = Plain()
    reference = weakref.ref(thing)
    for row in rows:
        thing = None
        yield row, reference() is None, thing


def seen_in_batches(rows: Iterator[str]) -> Any:
    batch = [Plain()]
    reference = weakref.ref(batch[0])
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield list(batch), reference() is None
            batch = []


def seen_in_a_list(rows: Iterator[str]) -> Any:
    outputs = []
    thing: Any = Plain()
    reference = weakref.ref(thing)
    for row in rows:
        thing = None
        outputs.append((row, reference() is None, thing))
    return outputs


def seen_by_counts(rows: Iterator[str]) -> Any:
    words = ["x"]
    for row in rows:
        yield row, sys.getrefcount(words)


@pytest.mark.parametrize(
    "function", [seen_by_weak_references, seen_in_batches, seen_in_a_list, seen_by_counts]
)
def test_who_asks_for_references_gets_the_same_outputs(function: Function) -> None:
    assert captured(function, ROWS)[0] == list(function(iter(ROWS)))


def test_variables_stay_what_they_are() -> None:
    def function(rows: Iterator[str]) -> Any:
        first, second = "a", ["b"]
        held = lambda: second  # noqa: E731 - its variable is a cell
        for row in rows:
            yield row, first, second, held()

    outputs, sources = captured(function, ROWS)
    assert outputs == [(row, "a", ["b"], ["b"]) for row in ROWS]
    assert sources == OF_EACH


def test_the_dictionary_of_a_function_that_shows_its_variables_stays() -> None:
    def function(rows: Iterator[str]) -> Any:
        outputs: list[str] = []
        shown = locals()
        for row in rows:
            outputs.append(row)
        return [sorted(shown)]

    assert captured(function, ROWS) == ([["outputs", "rows"]], None)


def test_where_a_trace_function_is_active_nothing_is_looked_at() -> None:
    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield row.upper()

    before = sys.gettrace()
    sys.settrace(lambda *_event: None)
    try:
        outputs, sources = captured(function, ROWS)
    finally:
        sys.settrace(before)
    assert outputs == [row.upper() for row in ROWS]
    assert sources is None


# -- objects that note when they are asked ------------------------------------------------------------------


def with_client(client: Any) -> Function:
    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield row, client.handle

    return function


def test_a_proxy_that_counts_gives_the_same_and_stays_a_bound() -> None:
    class Counting:
        def __init__(self) -> None:
            self.__dict__["many"] = 0

        def __getattr__(self, name: str) -> int:
            self.__dict__["many"] += 1
            return int(self.__dict__["many"])

    outputs, sources = captured(with_client(Counting()), ROWS)
    assert outputs == [(row, 1 + position) for position, row in enumerate(ROWS)]
    assert sources is None


def test_a_job_that_delegates_is_not_asked() -> None:
    asked: list[str] = []

    class Job:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return len

        def run(self, rows: Iterator[str]) -> Any:
            for row in rows:
                yield self.size(row)

    assert captured(Job().run, ROWS) == ([len(row) for row in ROWS], None)
    assert asked == ["size"] * len(ROWS)


def test_each_attribute_asked_for_is_the_functions_own() -> None:
    asked: list[str] = []

    class Spy:
        handle = 3

        def __getattribute__(self, name: str) -> Any:
            asked.append(name)
            return object.__getattribute__(self, name)

    assert captured(with_client(Spy()), ROWS) == ([(row, 3) for row in ROWS], None)
    assert asked == ["handle"] * len(ROWS)


def raising(*_arguments: Any) -> Any:
    raise AssertionError("the function does not ask this")


class OtherClass:
    handle = 3
    __class__ = property(raising)  # type: ignore[assignment] # as proxies do it


class Unequal:
    handle = 3
    __eq__ = raising
    __hash__ = raising  # type: ignore[assignment] # nobody asks
    __bool__ = __len__ = __iter__ = raising


class Pair(NamedTuple("Pair", [("handle", int)])):
    __len__ = raising
    __iter__ = raising
    __eq__ = raising
    __hash__ = raising


class Deciding(type):
    __eq__ = raising
    __hash__ = raising  # type: ignore[assignment] # nobody asks
    __instancecheck__ = __subclasscheck__ = raising


class OfDeciding(metaclass=Deciding):
    handle = 3


CLIENTS: dict[str, Callable[[], Any]] = {
    "another class": lambda: OtherClass(),
    "comparisons": lambda: Unequal(),
    "a tuple": lambda: Pair(3),
    "a metaclass": lambda: OfDeciding(),
}


@pytest.mark.parametrize("kind", CLIENTS)
def test_objects_with_methods_of_their_own_are_not_asked(kind: str) -> None:
    client = CLIENTS[kind]()

    def with_item(rows: Iterator[str]) -> Any:
        for row in rows:
            yield row, str.upper(row), client.handle

    assert captured(with_client(client), ROWS)[0] == [(row, 3) for row in ROWS]
    assert captured(with_item, ROWS)[0] == [(row, row.upper(), 3) for row in ROWS]


def test_a_callable_in_the_place_of_a_builtin_is_not_compared() -> None:
    class Own:
        __eq__ = raising

        def __hash__(self) -> int:
            return 1

        def __call__(self, rows: Any) -> Any:
            return rows

    enumerate = Own()

    def function(rows: Iterator[str]) -> Any:
        yield from enumerate(rows)

    assert captured(function, ROWS)[0] == ROWS


def test_a_class_whose_class_answers_is_not_asked() -> None:
    asked: list[str] = []

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            asked.append(name)
            return type.__getattribute__(cls, name)

    class Settings(metaclass=Meta):
        @staticmethod
        def cut(row: str) -> str:
            return row[:1]

    asked.clear()

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield Settings.cut(row)

    assert captured(function, ROWS)[0] == [row[:1] for row in ROWS]
    assert asked == ["cut"] * len(ROWS)


def test_a_module_that_is_loaded_late_is_not_loaded() -> None:
    asked: list[str] = []

    class Late(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            asked.append(name)
            return str.upper

    late = Late("late")

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield late.upper(row) if row == "never" else row

    assert captured(function, ROWS)[0] == ROWS
    assert asked == []


# -- broadcast variables ------------------------------------------------------------------------------------


class Broadcast:
    """As one of PySpark: what it has is loaded from a file when its value is asked for."""

    def __init__(self, path: Path, content: Any) -> None:
        self._path, self.loads = str(path / "broadcast"), 0
        Path(self._path).write_bytes(pickle.dumps(content))

    @property
    def value(self) -> Any:
        if not hasattr(self, "_value"):
            self.loads += 1
            self._value = pickle.loads(Path(self._path).read_bytes())
        return self._value


Broadcast.__module__ = pyspark.Broadcast.__module__


def test_a_broadcast_variable_that_no_row_needs_is_not_loaded(tmp_path: Path) -> None:
    names = Broadcast(tmp_path, {"b": 1})

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield row if row != "never" else names.value.get(row)

    assert captured(function, ROWS) == (ROWS, OF_EACH)
    assert names.loads == 0


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("size", [1, 1 << 21])
def test_what_is_looked_up_in_a_broadcast_variable_is_exact(
    tmp_path: Path, size: int, is_loaded: bool
) -> None:
    content = {"b": size * "1"}
    names = Broadcast(tmp_path, content)
    assert not is_loaded or names.value

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield names.value.get(row), row in names.value

    outputs, sources = captured(function, ROWS)
    assert outputs == [(content.get(row), row == "b") for row in ROWS]
    assert sources == OF_EACH
    assert names.loads == 1


def test_what_is_done_with_texts_of_a_broadcast_variable_is_exact(tmp_path: Path) -> None:
    names = Broadcast(tmp_path, dict.fromkeys(ROWS, "text"))

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield names.value[row].upper()

    assert captured(function, ROWS) == (["TEXT"] * len(ROWS), OF_EACH)
    assert names.loads == 1


class Remembering:
    created = 0

    def __init__(self) -> None:
        self.rows: list[str] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        Remembering.created += 1
        self.__dict__.update(state)

    def get(self, row: str) -> int:
        self.rows.append(row)
        return len(self.rows)


def test_an_object_in_a_broadcast_variable_is_not_created_to_look_at_it(tmp_path: Path) -> None:
    counts = Broadcast(tmp_path, Remembering())
    before = Remembering.created

    def function(rows: Iterator[str]) -> Any:
        for row in rows:
            yield counts.value.get(row)

    outputs, sources = captured(function, ROWS)
    assert outputs == [1 + position for position in range(len(ROWS))]
    assert sources is None
    assert Remembering.created == before + 1
