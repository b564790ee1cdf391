"""What people type for several records of an application, turned into the starts of one query."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from lineage_service.cli.arguments import Parser
from lineage_service.cli.query.start import line_of_file, start_of, whole_number
from lineage_service.errors import InvalidQueryError
from lineage_service.queries import StartQuery

__all__ = ["add_starts", "start_queries"]


def add_starts(parser: argparse.ArgumentParser) -> None:
    if isinstance(parser, Parser):
        parser.is_intermixed = True
    parser.add_argument(
        "start",
        nargs="*",
        metavar="START",
        help="FILE:LINE of an output or input file, lines counted from 1, or a record id such as write#0#12 "
        "or 30#write#0#12; any number of them. With --where a file, folder or glob",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="all rows whose columns fulfil it, of START, of --node, or of the one output; repeatable",
    )
    parser.add_argument(
        "--failure",
        action="append",
        default=[],
        type=whole_number(1),
        metavar="N",
        help="the record that made a task fail, as `lineage failures` numbers it; repeatable",
    )
    parser.add_argument(
        "--node",
        metavar="N",
        help="the operation of the record ids, of FILE:LINE, of --key or of --where, by number",
    )
    parser.add_argument(
        "--key", action="append", default=[], help="all records of --node with this key; repeatable"
    )


def start_queries(options: argparse.Namespace) -> tuple[StartQuery, ...]:
    """All that is named. Raises InvalidQueryError."""
    starts = tuple(_starts(options))
    if not starts:
        raise InvalidQueryError(
            "say which records: FILE:LINE of an output or input file (lines count from 1), record ids such "
            "as write#0#12, --where, --failure, or --key with --node"
        )
    return starts


def _starts(options: argparse.Namespace) -> Iterator[StartQuery]:
    datasets: list[str] = []
    for text in options.start:
        path, row = line_of_file(text)
        if options.where and row is None and "#" not in text:
            datasets.append(path)
        else:
            yield StartQuery(**start_of(text, None, options.node))
    for where in options.where:
        for dataset in datasets or (None,):
            yield StartQuery(where=where, path=dataset, node=options.node)
    for number in options.failure:
        yield StartQuery(failure=number)
    for key in options.key:
        yield StartQuery(**start_of(None, key, options.node))
