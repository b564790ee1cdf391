"""The records that a query starts at: by one name, or by several in a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from lineage_api.parameters.fields import (
    NODE_HELP,
    Expression,
    NodeNumber,
    Parameters,
    Partition,
    PathName,
    Position,
    RecordName,
    Text,
)
from lineage_service.queries import StartQuery

__all__ = ["StartParameters", "starts_listed"]

#: A list of some 1,000 record ids, which leaves room in an address for what stands beside it.
_MAX_STARTS_TEXT = 60_000
_START_FIELDS = ("record", "node", "partition", "offset", "key", "path", "row", "where", "failure")


class _OneStart(Parameters):
    record: RecordName | None = Field(
        default=None,
        description="Start: a record id (with `node` if it is ambiguous), or one with its node's id or "
        "number before it: `NODE_ID#RECORD_ID`, `NUMBER#RECORD_ID`.",
        examples=["write#0#0"],
    )
    node: NodeNumber | None = Field(
        default=None,
        description=f"Start: {NODE_HELP}; with `partition` and `offset`, or `key`, or `record`, or `path`.",
        examples=["3"],
    )
    partition: Partition | None = Field(default=None, description="Start: partition of `node`.", examples=[0])
    offset: Position | None = Field(
        default=None, description="Start: offset in `partition`, from 0.", examples=[0]
    )
    key: Text | None = Field(
        default=None, description="Start: all records of `node` with this key.", examples=["North"]
    )
    path: PathName | None = Field(
        default=None, description="Start: an input or output file.", examples=["/data/sums.csv"]
    )
    row: Position | None = Field(
        default=None, description="Start: row of `path`, from 0, header lines included.", examples=[0]
    )
    failure: Annotated[Position, Field(ge=1)] | None = Field(
        default=None,
        description="Start: the record that made a task fail, by the number of the failure. Backward only.",
        examples=[1],
    )
    where: Expression | None = Field(
        default=None,
        description="Start: all rows that fulfil this condition on columns, 10,000 at most; of `path` (a "
        "file, folder or glob), of `node`, or of the application's one output.",
        examples=["value like '%paid%'"],
    )

    @model_validator(mode="after")
    def _has_one_start(self) -> _OneStart:
        self._check_one()
        return self

    def _check_one(self) -> None:
        if self._present() not in _STARTS:
            raise ValueError(
                "name one start: record (and node), or node with partition and offset, or node with key, or "
                "path with row (and node), or where (with path and node), or failure; the request has "
                f"{', '.join(sorted(self._present())) or 'none'}"
            )

    def _present(self) -> frozenset[str]:
        return frozenset(name for name in _START_FIELDS if getattr(self, name) is not None)

    def start(self) -> StartQuery:
        return StartQuery(**{name: getattr(self, name) for name in _START_FIELDS})


_Positions = Annotated[list[Position], Field(min_length=1)]


class _ListedStart(_OneStart):
    """In a list, one object may name several records of one file, or of one partition."""

    rows: _Positions | None = None  # in place of `row`
    offsets: _Positions | None = None  # in place of `offset`

    def _present(self) -> frozenset[str]:
        present = super()._present()
        for one, several in _IN_PLACE_OF.items():
            if getattr(self, several) is not None:
                present |= {several if one in present else one}
        return present

    def starts(self) -> Iterator[StartQuery]:
        """One for each record."""
        start = self.start()
        for one, several in _IN_PLACE_OF.items():
            numbers = getattr(self, several)
            if numbers is not None:
                yield from (replace(start, **{one: number}) for number in numbers)
                return
        yield start


_IN_PLACE_OF = {"row": "rows", "offset": "offsets"}
_SEVERAL = TypeAdapter(list[_ListedStart])


class StartParameters(_OneStart):
    starts: Annotated[str, Field(min_length=2, max_length=_MAX_STARTS_TEXT)] | None = Field(
        default=None,
        description="Several starts in place of one: a list in JSON, of objects with the names of those "
        "parameters that name a start; `rows` in place of `row`, or `offsets` of `offset`, is a list of "
        "numbers. 10,000 records at most.",
        examples=['[{"record": "3#write#0#0"}, {"path": "/data/sums.csv", "row": 1}]'],
    )

    @model_validator(mode="after")
    def _has_one_start(self) -> StartParameters:
        if self.starts is None:
            self._check_one()
        elif self._present():
            raise ValueError(f"starts has all of them: leave out {', '.join(sorted(self._present()))}")
        else:
            self.several()
        return self

    def several(self) -> tuple[StartQuery, ...] | None:
        """None where one is named by the other parameters."""
        return None if self.starts is None else starts_listed("starts", self.starts)


def starts_listed(name: str, text: str) -> tuple[StartQuery, ...]:
    """The starts of a parameter that is a list in JSON. Raises ValueError."""
    try:
        starts = _SEVERAL.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise ValueError(
            f'{name} is no list of starts in JSON, such as [{{"record": "3#write#0#0"}}]'
            f"{f', at {place}' if place else ''}: {message}"
        ) from None
    if not starts:
        raise ValueError(f"{name} is empty: name at least one")
    return tuple(one for start in starts for one in start.starts())


_STARTS = frozenset(
    {
        frozenset({"record"}),
        frozenset({"record", "node"}),
        frozenset({"node", "partition", "offset"}),
        frozenset({"node", "key"}),
        frozenset({"path", "row"}),
        frozenset({"path", "row", "node"}),
        frozenset({"failure"}),
        frozenset({"where"}),
        frozenset({"where", "path"}),
        frozenset({"where", "node"}),
        frozenset({"where", "path", "node"}),
    }
)
