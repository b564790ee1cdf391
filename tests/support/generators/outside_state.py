"""Functions that carry something from row to row in objects outside of the generator itself."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

Rows = Iterator[str]
CARRIED: dict[str, Callable[[Rows], Any]] = {}

LAST = ""
NOTED: list[str] = []
SAME_NOTED = NOTED
CURRENT = SimpleNamespace(last="")
LOCAL = threading.local()
VIEW = MappingProxyType(TOTALS := {"rows": 0})
push = NOTED.append


def carried(function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    CARRIED[function.__name__] = function
    return function


def remember(row: str) -> None:
    global LAST
    LAST = row


def note(row: str) -> None:
    NOTED.append(row)


def noted() -> list[str]:
    return NOTED


@functools.cache
def kept_for(_key: str) -> list[str]:
    return []


@functools.singledispatch
def passed_through(row: Any) -> str:
    before, CURRENT.last = CURRENT.last, row
    return before


class Numbered:
    """Its objects know how many there were before them."""

    numbers: ClassVar[list[int]] = []

    def __init__(self, row: str) -> None:
        self.row = row
        self.numbers.append(len(row))

    def __str__(self) -> str:
        return f"{len(self.numbers)} {self.row}"

    @property
    def before(self) -> str:
        return "".join(map(str, self.numbers))


class Shared:
    """Its objects show the last one that was created."""

    last = ""

    def __init__(self, row: str) -> None:
        self.before = Shared.last
        Shared.last = row


@dataclasses.dataclass
class Dated:
    row: str
    number: int = 0

    def __post_init__(self) -> None:
        TOTALS["rows"] += 1
        self.number = TOTALS["rows"]


class Counting:
    """A context that counts how often it was entered."""

    def __init__(self) -> None:
        self.many = 0

    def __enter__(self) -> int:
        self.many += 1
        return self.many

    def __exit__(self, *_error: object) -> None:
        pass

    def __bool__(self) -> bool:
        self.many += 1
        return self.many % 2 == 0


@carried
def global_that_is_set(rows: Rows) -> Any:
    for row in rows:
        yield row, LAST
        remember(row)


@carried
def outer_variable_that_is_set(rows: Rows) -> Any:
    last = ""

    def set_last(row: str) -> None:
        nonlocal last
        last = row

    def pairs() -> Iterator[tuple[str, str]]:
        for row in rows:
            yield row, last
            set_last(row)

    return pairs()


@carried
def length_of_what_is_noted(rows: Rows) -> Any:
    for row in rows:
        note(row)
        yield "late" if len(NOTED) > 3 else "early"


@carried
def unpacked_after_it_was_noted(rows: Rows) -> Any:
    for row in rows:
        note(row)
        yield [*SAME_NOTED, row]


@carried
def bound_method_that_appends(rows: Rows) -> Any:
    for row in rows:
        push(row)
        yield f"{NOTED}"


@carried
def result_that_is_changed(rows: Rows) -> Any:
    for row in rows:
        noted().append(row)
        yield len(noted())


@carried
def cached_result_that_is_changed(rows: Rows) -> Any:
    for row in rows:
        kept = kept_for("")
        kept.append(row)
        yield list(kept)


@carried
def namespace(rows: Rows) -> Any:
    for row in rows:
        yield row, CURRENT.last
        CURRENT.last = row


@carried
def local_of_a_thread(rows: Rows) -> Any:
    for row in rows:
        yield row, getattr(LOCAL, "last", "")
        LOCAL.last = row


@carried
def view_of_a_dictionary(rows: Rows) -> Any:
    for row in rows:
        TOTALS["rows"] += len(row)
        yield VIEW["rows"]


@carried
def function_for_types(rows: Rows) -> Any:
    for row in rows:
        yield passed_through(row), row


@carried
def text_of_a_new_object(rows: Rows) -> Any:
    for row in rows:
        yield str(Numbered(row))


@carried
def property_of_a_new_object(rows: Rows) -> Any:
    for row in rows:
        yield Numbered(row).before


@carried
def attribute_of_a_class(rows: Rows) -> Any:
    for row in rows:
        yield Shared(row).before, row


@carried
def new_object_of_a_data_class(rows: Rows) -> Any:
    for row in rows:
        if row:
            yield Dated(row)


@carried
def entered_for_each_row(rows: Rows) -> Any:
    counting = Counting()
    for row in rows:
        with counting as many:
            if row:
                yield many, row


@carried
def truth_of_an_object(rows: Rows) -> Any:
    counting = Counting()
    for row in rows:
        if counting:
            yield row


@carried
def default_dictionary(rows: Rows) -> Any:
    numbers: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    for row in rows:
        yield numbers[row]


@carried
def next_of_an_iterator(rows: Rows) -> Any:
    following = itertools.cycle("xyz").__next__
    for row in rows:
        if row:
            yield following(), row


@carried
def caller_of_a_method(rows: Rows) -> Any:
    numbers = list(range(100))
    take = operator.methodcaller("pop")
    for row in rows:
        if row:
            yield row, take(numbers)


@carried
def beside_a_generator(rows: Rows) -> Any:
    def lasts() -> Iterator[str]:
        while True:
            yield LAST

    for row, last in zip(rows, lasts(), strict=False):
        yield row, last
        remember(row)


@carried
def value_of_yield_from(rows: Rows) -> Any:
    def lengths() -> Iterator[int]:
        total = 0
        for row in rows:
            total += len(row)
            yield len(row)
        return total

    total = yield from lengths()
    yield total


@carried
def set_on_any_object(rows: Rows) -> Any:
    counting = Counting()
    for row in rows:
        before = counting.many
        object.__setattr__(counting, "many", len(row))
        yield before, row


@carried
def commit_that_is_used(rows: Rows) -> Any:
    class Log:
        many = 0

        def commit(self) -> int:
            self.many += 1
            return self.many

    log = Log()
    for row in rows:
        if row:
            yield log.commit(), row


def with_what_it_holds(pair: tuple[Counting, str]) -> tuple[int, str]:
    counting, row = pair
    before = counting.many
    counting.many = len(row)
    return before, row


@carried
def held_by_a_new_tuple(rows: Rows) -> Any:
    counting = Counting()
    for row in rows:
        yield with_what_it_holds((counting, row))


@carried
def key_that_is_added(rows: Rows) -> Any:
    seen: defaultdict[str, bool] = defaultdict(bool)
    for row in rows:
        if row not in seen:
            yield row
        _known = seen[row]


def note_in_a_module(row: str) -> None:
    import decimal

    decimal.last_row = row  # type: ignore[attr-defined]


@carried
def attribute_of_a_module(rows: Rows) -> Any:
    import decimal

    for row in rows:
        yield row, getattr(decimal, "last_row", "")
        note_in_a_module(row)


class Base:
    rows: ClassVar[list[str]] = []

    def __init__(self, row: str) -> None:
        self.before = "".join(self.rows)
        self.rows.append(row)


class Derived(Base):
    def __init__(self, row: str) -> None:
        super().__init__(row)


@carried
def class_above(rows: Rows) -> Any:
    for row in rows:
        yield Derived(row).before
