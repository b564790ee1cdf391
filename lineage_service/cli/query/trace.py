"""`lineage trace`: what a record was made of, or what became of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.operations import application_heading, operation_label
from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line
from lineage_service.cli.query.row_table import print_records
from lineage_service.cli.query.start import (
    add_page_flags,
    add_row_flags,
    columns_of,
    store_queries,
    whole_number,
)
from lineage_service.cli.query.trace_start import add_start, choose_one, chosen_start, give_choices
from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import Choices, Trace
from lineage_service.queries import TraceQuery
from lineage_service.result_tables import trace_table
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store

__all__ = ["command", "configure"]


_ENDS = {"failed": "failed", "aborted": "was cancelled"}


#: Several rows fulfil the condition, and one has to be chosen.
_TO_CHOOSE = 3


def configure(parser: argparse.ArgumentParser) -> None:
    add_start(parser)
    parser.add_argument("--to", metavar="N", help="only what lies between the start and this node")
    parser.add_argument(
        "--depth", type=whole_number(1), metavar="N", help="follow at most this many operations"
    )
    parser.add_argument(
        "--in-application",
        action="store_true",
        help="do not go on into applications that wrote the input files, or read the output files",
    )
    parser.add_argument("--values", action="store_true", help="also captured values on the lineage path")
    add_page_flags(parser, "of each operation")
    parser.add_argument(
        "--only", metavar="N", help="list the records of this operation only, and count the others"
    )
    add_row_flags(parser)
    parser.add_argument(
        "--sort", metavar="COLUMN", help="order all rows of --only by this column, the smallest first"
    )
    parser.add_argument(
        "--filter", metavar="CONDITION", help="list only records of --only whose columns fulfil it"
    )
    parser.add_argument("--remarks", action="store_true", help="with --json: which rows stand out, too")
    parser.add_argument("--desc", action="store_true", help="with --sort: the largest first")
    add_format_flags(parser)
    spark = parser.add_argument_group("on Spark", "for what outgrows this machine; the result is the same")
    spark.add_argument(
        "--engine", choices=("local", "spark"), default="local", help="who walks the trace (default: local)"
    )
    spark.add_argument("--master", metavar="URL", help="Spark's master (default: local[*])")
    spark.add_argument(
        "--conf", action="append", metavar="NAME=VALUE", help="of the Spark session, any number of times"
    )
    spark.add_argument(
        "--store-in-spark",
        metavar="URL",
        help="the flow store as Spark's executors name it, where that is not what --store says",
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    if options.engine != "spark" and (options.master or options.conf or options.store_in_spark):
        raise InvalidQueryError("--master, --conf and --store-in-spark are for --engine spark")
    query = TraceQuery(
        direction="backward",
        to=options.to,
        depth=options.depth,
        limit=options.limit,
        values=options.values,
        only=options.only,
        sort=options.sort,
        desc=options.desc,
        filter=options.filter,
        columns=columns_of(options, is_table=options.only is not None),
        remarks=options.remarks or not (options.json or options.csv),
        across=not options.in_application,
    )
    spent = ""
    with output.working("tracing"), store_queries(settings) as queries:
        start = chosen_start(queries, options, query)
        if isinstance(start, Choices):
            give_choices(output, start, choose_one(start, ", or give FILE:LINE; or trace all of them: --all"))
            return _TO_CHOOSE
        application_id, query = start.application_id, start.query
        try:
            if options.engine == "spark":
                trace = _traced_in_spark(settings, options, application_id, query)
            else:
                trace = queries.trace(application_id, query)
        except TimeBudgetError as error:
            if error.next is None:
                raise
            trace = queries.trace(application_id, replace(query, cursor=error.next))
            spent = f"Not all: {error}, or give it more: --trace-seconds"
    notes = [*start.warnings, *(_notes(trace) if not spent else [spent])]
    columns, lines = trace_table(trace, query)
    output.give(trace, columns, lines, lambda console: _show(console, trace, options.full), notes)
    return 1 if spent else 0


def _traced_in_spark(
    settings: Settings, options: argparse.Namespace, application_id: str, query: TraceQuery
) -> Trace:
    """Raises LineageError, also where there is no PySpark."""
    if query.where is not None:
        raise InvalidQueryError("--all is not for --engine spark: choose one of the rows")
    try:
        from lineage_service.tracing.spark.api import SparkTracing, local_session
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        raise InvalidQueryError("--engine spark needs PySpark: pip install pyspark") from None
    store = existing_store(settings)
    with local_session(options.master or "local[*]", options.conf or ()) as spark:
        return SparkTracing(spark, store, location=options.store_in_spark).trace(application_id, query)


def _show(console: Console, trace: Trace, is_full: bool) -> None:
    before = ""
    for node in trace.nodes:
        number = node.node_id.rpartition("#")[2]
        if node.application_id != before:
            print_line(console, application_heading(node))
            before = node.application_id
        matches = "" if node.matches is None else f", {node.matches:,} match"
        listed = matches + ("" if node.total == len(node.records) else f", {len(node.records):,} listed")
        heading = Text(f"{number} ", "dim") + plain(node.name, "bold")
        counted = Text(f": {node.total:,} record{'' if node.total == 1 else 's'}{listed}")
        print_line(console, heading + counted)
        print_records(console, node.records, node.schema, is_full=is_full)
        for remark in node.remarks or ():
            print_line(console, plain(f"  stands out: {remark.text}", "yellow"))
        if node.remarks and node.remarks_of is not None and node.remarks_of < node.total:
            print_line(console, plain(f"  (of the first {node.remarks_of:,} of {node.total:,} rows)", "dim"))
    again = _command_to_replay(trace)
    if again is not None:
        print_line(console, plain(f"again, on these rows only: {again}", "dim"))


def _command_to_replay(trace: Trace) -> str | None:
    """Of a trace from one output row to rows of inputs."""
    if trace.direction != "backward" or len(trace.starts) != 1:
        return None
    [start] = trace.starts
    has_rows = any(node.kind == "source" and node.total for node in trace.nodes)
    if start.kind != "sink" or start.total != 1 or not has_rows:
        return None
    number, record = start.node_id.rpartition("#")[2], start.records[0].record_id
    return f"lineage replay {start.application_id} {number}#{record} -- YOUR COMMAND"


def _notes(trace: Trace) -> Iterator[str]:
    """What the records do not say of themselves."""
    if len(trace.starts) > 1:
        names = ", ".join(f"{start.node_id.rpartition('#')[2]} ({start.name})" for start in trace.starts)
        yield f"Several operations have this row, and the trace starts at each: {names}; --node selects one."
    if not trace.complete:
        yield (
            "This lineage is not complete: records may be missing (`lineage apps`, or a line below, says "
            "what is)."
        )
    for node in trace.nodes:
        yield from node.warnings or ()
        if node.state in _ENDS:
            yield (
                f"{operation_label(node)} {_ENDS[node.state]}: its records are those of tasks that "
                "had ended before."
            )
            continue
        if not node.exact:
            yield f"{operation_label(node)} has only an upper bound: it lists records that took no part."
        if node.reason and node.total:
            yield f"{operation_label(node)}: {node.reason}"
    if not trace.exact and all(node.exact for node in trace.nodes):
        yield "A part of the trace is only an upper bound: records may be listed that took no part."
    if trace.how:
        yield f"Values: {trace.how}"
    if trace.next is not None:
        yield f"there are more: --cursor {trace.next}, or --limit"
