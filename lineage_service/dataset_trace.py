"""A trace of a dataset, of the one row that is meant, of all, or the rows to choose from; its missing rows.

At a terminal and over HTTP alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Choices
from lineage_service.queries import MOST_STARTS, MissingQuery, Queries, RowQuery, StartQuery, TraceQuery

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
    if choices.version is not None and is_of_all:
        return _all_of_table(queries, rows, trace, choices)
    if rows.where is not None and is_of_all:
        start = replace(trace, path=choices.dataset, where=rows.where)
        return ChosenTrace(choices.application_id, start, choices.warnings)
    is_one = len(choices.choices) == 1 and choices.total in (None, 1)
    if rows.cursor is not None or choices.next is not None or not is_one:
        return choices
    choice = choices.choices[0]
    if choice.path is not None and choice.row is not None:
        start = replace(trace, path=choice.path, row=choice.row)
    else:
        start = replace(trace, node=None, record=f"{choice.node_id}#{choice.record_id}")
    return ChosenTrace(choices.application_id, start, choices.warnings)


def _all_of_table(queries: Queries, rows: RowQuery, trace: TraceQuery, choices: Choices) -> ChosenTrace:
    """Of all rows of a version that fulfil the condition: one application has written them."""
    if choices.next is not None or rows.cursor is not None:
        assert choices.version is not None
        every = replace(rows, version=int(choices.version), at=None, limit=MOST_STARTS, cursor=None)
        choices = queries.rows(every)
    if choices.next is not None:
        raise InvalidQueryError(
            f"more than {MOST_STARTS:,} rows fulfil the condition, and a trace starts at {MOST_STARTS:,} at "
            "most: ask for fewer"
        )
    applications = list(dict.fromkeys(node.rpartition("#")[0] for node in choices.nodes))
    if len(applications) > 1:
        raise InvalidQueryError(
            "the rows are of several applications, and a trace starts in one: name version "
            f"{choices.version} and one of {', '.join(applications)}"
        )
    starts = tuple(StartQuery(path=choice.path, row=choice.row) for choice in choices.choices)
    return ChosenTrace(applications[0], replace(trace, node=None, starts=starts), choices.warnings)


def missing_of_dataset(queries: Queries, rows: RowQuery, query: MissingQuery) -> tuple[str, MissingQuery]:
    """(the application, the query) for rows of a dataset: of one that was read, or of what was written.

    A row of a number is one of an input. Raises what `Queries.rows` raises.
    """
    is_input = query.row is not None or query.direction == "forward"
    named = queries.rows(replace(rows, where=None, row=None, as_input=is_input, direction=query.direction))
    return named.application_id, replace(query, path=named.dataset or rows.dataset)
