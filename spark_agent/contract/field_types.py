"""What a field of an event may hold: values of JSON, each with its limits.

A type checks a value, and says the same as a JSON Schema (2020-12). So one declaration serves readers,
writers and other languages. `TEXT | None` is a field that may also be null. Knows no event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spark_agent.contract.errors import ContractError, in_short

__all__ = [
    "Anything",
    "Boolean",
    "FieldError",
    "FieldType",
    "Integer",
    "ListOf",
    "Literal",
    "MapOf",
    "Nullable",
    "Number",
    "Object",
    "OneOf",
    "Reference",
    "Text",
    "TupleOf",
]

Schema = dict[str, Any]


class FieldError(ContractError):
    """A field does not hold what it may. Its text names the path to the value: `dataset.symlinks[0]`."""

    def __init__(self, before: str, after: str, path: str = "") -> None:
        super().__init__(f"{before}'{path.lstrip('.')}'{after}")
        self.before, self.after, self.path = before, after, path

    def below(self, step: str) -> FieldError:
        """The same error, as who holds the value says it."""
        return FieldError(self.before, self.after, step + self.path)


def _refusal(value: object, expected: str) -> FieldError:
    if isinstance(value, bool):  # nearly a number, for Python: so it is said in words
        return FieldError("boolean in field ", f", not {expected}")
    return FieldError("", f" is {in_short(value)}, not {expected}")


def _check_within(key: str | int, field_type: FieldType, value: object) -> None:
    """Check what a list or an object holds at `key`."""
    try:
        field_type.check(value)
    except FieldError as error:
        raise error.below(_step(key)) from None


def _step(key: str | int) -> str:
    """A path's step. Names that others chose are cut, and stay on one line."""
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _NAME.fullmatch(key) else f"[{key[:80]!r}]"


_NAME = re.compile("[A-Za-z0-9_]{1,80}", re.ASCII)


class FieldType:
    """A type of values."""

    def check(self, value: object) -> None:
        """Raises FieldError unless the value is of this type."""
        raise NotImplementedError

    def schema(self) -> Schema:
        """The same as a JSON Schema."""
        raise NotImplementedError

    def __or__(self, other: None) -> Nullable:
        return Nullable(self)


@dataclass(frozen=True)
class Nullable(FieldType):
    """A value of a type, or null."""

    type: FieldType

    def check(self, value: object) -> None:
        if value is not None:
            self.type.check(value)

    def schema(self) -> Schema:
        schema = self.type.schema()
        if isinstance(schema.get("type"), str):
            return {**schema, "type": [schema["type"], "null"]}  # what else it says is of that type only
        if "enum" in schema:
            return {"enum": [*schema["enum"], None]}
        return {"anyOf": [schema, {"type": "null"}]}


@dataclass(frozen=True)
class Anything(FieldType):
    """Whatever it is: it goes back to where it came from."""

    def check(self, value: object) -> None:
        pass

    def schema(self) -> Schema:
        return {}


@dataclass(frozen=True)
class Text(FieldType):
    """A string. `pattern` matches all of it; `rule` says so for people."""

    pattern: str = ""
    rule: str = "a text"

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern, re.ASCII) if self.pattern else None

    def check(self, value: object) -> None:
        if not isinstance(value, str) or (self._pattern is not None and not self._pattern.fullmatch(value)):
            raise _refusal(value, self.rule)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{self.pattern}$"} if self.pattern else {"type": "string"}


@dataclass(frozen=True)
class Boolean(FieldType):
    """True or false, or `only` one of them."""

    only: bool | None = None

    def check(self, value: object) -> None:
        if not isinstance(value, bool) or self.only not in (None, value):
            expected = "neither true nor false" if self.only is None else f"not {str(self.only).lower()}"
            raise FieldError("", f" is {in_short(value)}, {expected}")

    def schema(self) -> Schema:
        return {"type": "boolean"} if self.only is None else {"const": self.only}


@dataclass(frozen=True)
class Integer(FieldType):
    """A whole number within limits, both included."""

    largest: int
    smallest: int = 0

    def check(self, value: object) -> None:
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or not self.smallest <= value <= self.largest
        ):
            raise _refusal(value, f"a number from {self.smallest} to {self.largest}")

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.smallest, "maximum": self.largest}


@dataclass(frozen=True)
class Number(FieldType):
    """A number of any kind and size."""

    def check(self, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _refusal(value, "a number")

    def schema(self) -> Schema:
        return {"type": "number"}


@dataclass(frozen=True)
class Literal(FieldType):
    """A number or a text."""

    def check(self, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise _refusal(value, "a number or a text")

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}


@dataclass(frozen=True)
class OneOf(FieldType):
    """One of some words."""

    words: tuple[str, ...]

    def check(self, value: object) -> None:
        if value not in self.words:
            raise FieldError("", f" is {in_short(value)}, none of {', '.join(self.words)}")

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class ListOf(FieldType):
    """A list. `longest` bounds its length; the entries stand in the order of their field `ascending`."""

    entry: FieldType
    longest: int | None = None
    ascending: str = ""

    def check(self, value: object) -> None:
        if not isinstance(value, list):
            raise _refusal(value, "a list")
        if self.longest is not None and len(value) > self.longest:
            raise FieldError("", f" has {len(value)} entries, at most {self.longest} are read")
        for index, entry in enumerate(value):
            _check_within(index, self.entry, entry)
        if self.ascending and not _is_ascending(entry[self.ascending] for entry in value):
            raise FieldError("", f" does not stand in the order of {self.ascending!r}")

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": self.entry.schema()}
        if self.longest is not None:
            schema["maxItems"] = self.longest
        if self.ascending:
            schema["description"] = f"In the order of `{self.ascending}`."
        return schema


def _is_ascending(values: Iterable[int]) -> bool:
    before = 0
    for value in values:
        if value < before:
            return False
        before = value
    return True


@dataclass(frozen=True)
class TupleOf(FieldType):
    """A list of as many entries as it has names; each has its type."""

    entries: Mapping[str, FieldType]

    def check(self, value: object) -> None:
        if not isinstance(value, list) or len(value) != len(self.entries):
            raise _refusal(value, f"[{', '.join(self.entries)}]")
        for index, (entry_type, entry) in enumerate(zip(self.entries.values(), value, strict=True)):
            _check_within(index, entry_type, entry)

    def schema(self) -> Schema:
        entries = [{"title": name, **entry.schema()} for name, entry in self.entries.items()]
        return {"type": "array", "prefixItems": entries, "minItems": len(entries), "items": False}


@dataclass(frozen=True)
class MapOf(FieldType):
    """An object with names of others: any, or those that `names` matches as a whole."""

    value: FieldType
    names: str = ""

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        return re.compile(self.names, re.ASCII) if self.names else None

    def check(self, value: object) -> None:
        if not isinstance(value, dict):
            raise _refusal(value, "an object")
        for name, entry in value.items():
            if self._names is not None and not self._names.fullmatch(name):
                raise FieldError("", f" is no name like {self.names}", _step(name))
            _check_within(name, self.value, entry)

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.value.schema()}
        if self.names:
            schema["propertyNames"] = {"pattern": f"^{self.names}$"}
        return schema


@dataclass(frozen=True)
class Object(FieldType):
    """An object whose `required` fields must be there, and whose `optional` ones may be missing.

    Fields of other names are left as they came: a later minor version may have brought them. Where a field of
    `needs` is there and not null, so are the fields that it names.
    """

    required: Mapping[str, FieldType] = field(default_factory=dict)
    optional: Mapping[str, FieldType] = field(default_factory=dict)
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def fields(self) -> Mapping[str, FieldType]:
        return {**self.required, **self.optional}

    def check(self, value: object) -> None:
        if not isinstance(value, dict):
            raise _refusal(value, "an object")
        for name, field_type in self.required.items():
            if name not in value:
                raise FieldError("", " is missing", _step(name))
            _check_within(name, field_type, value[name])
        for name, field_type in self.optional.items():
            if name in value:
                _check_within(name, field_type, value[name])
        for cause, names in self.needs.items():
            missing = [name for name in names if name not in value]
            if missing and value.get(cause) is not None:
                raise FieldError("", f" is missing, beside {cause!r}", _step(missing[0]))

    def schema(self) -> Schema:
        properties = {name: field_type.schema() for name, field_type in self.fields.items()}
        schema: Schema = {"type": "object", "properties": properties}
        if self.required:
            schema["required"] = list(self.required)
        if self.needs:
            schema["allOf"] = [
                {"anyOf": [{"properties": {cause: {"type": "null"}}}, {"required": list(names)}]}
                for cause, names in self.needs.items()
            ]
        return schema


@dataclass(frozen=True)
class Reference(FieldType):
    """A type by its name among `types`: said once, and able to hold values of its own kind."""

    name: str
    types: Mapping[str, FieldType]

    def check(self, value: object) -> None:
        self.types[self.name].check(value)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.name}"}
