"""A trace of a dataset, of the one row that is meant, of all, or the rows to choose from; its missing rows.

At a terminal and over HTTP alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Choices
from lineage_service.queries import MissingQuery, Queries, RowQuery, TraceQuery

__all__ = ["ChosenTrace", "chosen_trace", "missing_of_dataset"]


@dataclass(frozen=True, slots=True)
class ChosenTrace:
    """What is to be traced, and in which application."""

    application_id: str
    query: TraceQuery
    warnings: tuple[str, ...] = ()


def chosen_trace(
    queries: Queries, rows: RowQuery, trace: TraceQuery, *, is_of_all: bool
) -> ChosenTrace | Choices:
    """The trace of one row, or with `is_of_all` of every row; else the rows, where there are several.

    The start, the direction and the node of `trace` are those of `rows`. Raises what `Queries.rows` raises.
    """
    choices = queries.rows(rows)
    node = rows.node
    if choices.dataset is None and len(choices.nodes) == 1:
        node = choices.nodes[0]  # of what has no files
    trace = replace(trace, direction=choices.direction, node=node)
    if trace.key is not None:
        if node is None and len(choices.nodes) != 1:
            raise InvalidQueryError(
                f"records of several operations have keys: give a node of {', '.join(choices.nodes)}"
            )
        return ChosenTrace(choices.application_id, replace(trace, node=node or choices.nodes[0]))
    if rows.where is not None and is_of_all:
        start = replace(trace, path=choices.dataset, where=rows.where)
        return ChosenTrace(choices.application_id, start, choices.warnings)
    if rows.cursor is not None or choices.next is not None or len(choices.choices) != 1:
        return choices
    choice = choices.choices[0]
    if choice.path is not None and choice.row is not None:
        start = replace(trace, path=choice.path, row=choice.row)
    else:
        start = replace(trace, node=None, record=f"{choice.node_id}#{choice.record_id}")
    return ChosenTrace(choices.application_id, start, choices.warnings)


def missing_of_dataset(queries: Queries, rows: RowQuery, query: MissingQuery) -> tuple[str, MissingQuery]:
    """(the application, the query) for rows of a dataset: of one that was read, or of what was written.

    A row of a number is one of an input. Raises what `Queries.rows` raises.
    """
    is_input = query.row is not None or query.direction == "forward"
    named = queries.rows(replace(rows, where=None, row=None, as_input=is_input, direction=query.direction))
    return named.application_id, replace(query, path=named.dataset or rows.dataset)
