"""Events by chance for Hypothesis: those that follow the contract, and those that break it somewhere."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from spark_agent import contract
from spark_agent.contract.event_fields import EVENT_FIELDS
from spark_agent.contract.field_types import (
    Anything,
    Boolean,
    FieldType,
    Integer,
    ListOf,
    Literal,
    MapOf,
    Nullable,
    Number,
    Object,
    OneOf,
    Reference,
    Text,
    TupleOf,
)

MAX_DEPTH = 4
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5)
NUMBER = st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False)


def values(field: FieldType, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the field may hold."""
    match field:
        case Nullable():
            return st.none() | values(field.type, depth)
        case Text():
            return st.from_regex(f"({field.pattern})\\Z", fullmatch=True) if field.pattern else TEXT
        case Boolean():
            return st.booleans()
        case Integer():
            largest = min(field.largest, field.smallest + 9)
            return st.integers(field.smallest, field.largest) | st.integers(field.smallest, largest)
        case Number():
            return NUMBER
        case Literal():
            return NUMBER | TEXT
        case Anything():
            return NUMBER | TEXT | st.none()
        case OneOf():
            return st.sampled_from(field.words)
        case ListOf():
            return _lists(field, depth) if depth < MAX_DEPTH else st.just([])
        case TupleOf():
            return st.tuples(*(values(entry) for entry in field.entries.values())).map(list)
        case MapOf():
            names = st.from_regex(field.names + "\\Z", fullmatch=True) if field.names else TEXT
            return st.dictionaries(names, values(field.value, depth + 1), max_size=2)
        case Object():
            return objects(field, depth)
        case Reference():
            return values(field.types[field.name], depth)
    raise NotImplementedError(type(field))


def _lists(field: ListOf, depth: int) -> st.SearchStrategy[list[Any]]:
    entries = st.lists(values(field.entry, depth + 1), max_size=2)
    if not field.ascending:
        return entries
    return entries.map(lambda parts: sorted(parts, key=lambda part: part[field.ascending]))


def objects(field: Object, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    required = {name: values(type_, depth) for name, type_ in field.required.items()}
    optional = {name: values(type_, depth) for name, type_ in field.optional.items()}
    drawn = st.fixed_dictionaries(required, optional=optional)
    return drawn.map(
        lambda value: {name: value[name] for name in value if _has_its_needs(field, name, value)}
    )


def _has_its_needs(field: Object, name: str, value: Mapping[str, Any]) -> bool:
    needs = field.needs.get(name, ())
    return all(other in value and _has_its_needs(field, other, value) for other in needs)


@st.composite
def right_events(draw: st.DrawFn, types: tuple[str, ...] = tuple(EVENT_FIELDS)) -> dict[str, Any]:
    event_type = draw(st.sampled_from(types))
    return {
        "version": draw(st.sampled_from(["1.0", "1.8", "1.23"])),
        "type": event_type,
        "application_id": "app",
        "time": draw(st.integers(0, contract.MAX_TIME)),
        **draw(objects(EVENT_FIELDS[event_type])),
    }


_NUMBERS = [0, 1, -1, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, 0.5]
_LISTS: list[Any] = [[], [[]], [{}], [[1, 2]], ["a", "b"], [[1, 2, 3]] * 21]
_OBJECTS: list[Any] = [{}, {"1": -1}, {"1": 2}, {"a": {"b": []}}]
WILD: st.SearchStrategy[Any] = st.sampled_from(
    [*_NUMBERS, *_LISTS, *_OBJECTS, True, False, None, "", "a", "1.2", "a\0"]
).map(copy.deepcopy)


@st.composite
def broken_events(draw: st.DrawFn) -> dict[str, Any]:
    """Events of which something was taken away, added or replaced; most of them break the contract."""
    event = copy.deepcopy(draw(right_events()))
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(list(_places(event))))
        how = draw(st.sampled_from(["replace", "add", "remove"]))
        if how == "replace":
            holder[key] = draw(WILD)
        elif how == "add" and isinstance(holder, dict):
            names = st.sampled_from(sorted(EVENT_FIELDS[contract.RUN_FAILED].fields))
            holder[draw(names | TEXT)] = draw(WILD)
        else:
            del holder[key]
        if not event:
            break
    return event


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(list or object, index or name) of all that a value holds."""
    if isinstance(value, (dict, list)):
        for key, entry in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(entry)
