"""The columns of rows that a query asks for, and the schema of what is listed of a node."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Column, Record
from lineage_service.queries import ALL_COLUMNS
from lineage_service.tracing.files.json_values import MOST_COLUMNS
from lineage_service.tracing.files.row_columns import ColumnRequest
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["RequestedColumns", "no_such_column", "request_of", "schema_of"]

_MOST_NAMES = 20


def request_of(node: TopologyNode, names: Iterable[str] | None = None) -> ColumnRequest:
    """Of one node; None: every column."""
    return ColumnRequest(None if names is None else frozenset(names), types=_types_of(node))


def _types_of(node: TopologyNode) -> dict[str, str]:
    return {column.name: column.type for column in node.schema}


def schema_of(records: Sequence[Record], request: ColumnRequest) -> tuple[Column, ...]:
    """The columns of the listed rows in their order; without rows, those of the node."""
    listed = [record.source.columns for record in records if record.source is not None]
    names = dict.fromkeys(name for columns in listed if columns is not None for name in columns)
    if not any(columns is not None for columns in listed):
        names = dict.fromkeys(request.chosen(dict(request.types)))
    return tuple(Column(name=name, type=request.types.get(name, "")) for name in names)[:MOST_COLUMNS]


class RequestedColumns:
    """Those of one query, over all of its nodes. `names` None: none are asked for."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.is_any = names is not None
        self._names = None if names is None or ALL_COLUMNS in names else tuple(names)
        self._seen: dict[str, None] = {}

    def of(self, node: TopologyNode) -> ColumnRequest | None:
        """A request for the rows of one node."""
        return request_of(node, self._names) if self.is_any else None

    def shown(self, request: ColumnRequest, records: Sequence[Record]) -> tuple[Column, ...]:
        """The schema of the listed rows of a node; its columns are known from here on."""
        self._seen.update(dict.fromkeys(request.types))
        return schema_of(records, request)

    def check(self) -> None:
        """Raises InvalidQueryError if no listed row has a column that is asked for by name."""
        for name in self._names or ():
            if self._seen and name not in self._seen:
                raise no_such_column(name, self._seen)


def no_such_column(name: str, names: Iterable[str]) -> InvalidQueryError:
    columns = list(names)
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f"do you mean {near[0]!r}?" if near else f"they have {', '.join(columns[:_MOST_NAMES])}"
    return InvalidQueryError(f"no row has a column {name!r}: {hint}")
