"""`lineage maintain`: compacts the flow store, removes what is old or unwanted, once or again and again.

Prints a line for each application that something was done to. May run beside consumers, queries and other
`lineage maintain`. The work and its promises are in `maintenance_pass` and `maintenance`.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING

from lineage_service.errors import UnavailableError
from lineage_service.store.flow_store import existing_store
from lineage_service.store.maintenance import Maintenance
from lineage_service.store.maintenance_pass import MaintenanceOptions, one_pass
from spark_agent import contract

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=_positive,
        help="stay, and do it again so many seconds after each pass; without it: one pass",
    )
    parser.add_argument(
        "--delete",
        metavar="APPLICATION_ID",
        action="append",
        type=_application_id,
        default=[],
        help="delete this application, for good, in the flow store and in Neo4j; may be given several times",
    )
    parser.add_argument(
        "--keep-days",
        metavar="DAYS",
        type=_positive,
        help="delete applications that ended more than so many days ago",
    )
    parser.add_argument(
        "--keep-bytes",
        metavar="BYTES",
        type=_not_negative,
        help="delete the applications that ended first until the rest has at most so many bytes",
    )
    parser.add_argument(
        "--quiet-hours",
        metavar="HOURS",
        type=_positive,
        default=1.0,
        help="an application that is not complete is compacted when nothing of it came for so long "
        "(default: 1)",
    )
    parser.add_argument(
        "--file-hours",
        metavar="HOURS",
        type=_not_negative,
        default=1,
        help="files that nothing names any more stay for so long, for queries under way; at least 1 while "
        "anything else uses the store (default: 1)",
    )


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def _not_negative(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _application_id(text: str) -> str:
    if contract.APPLICATION_ID.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no application id")
    return text


def command(settings: Settings, options: argparse.Namespace) -> int:
    """One pass, or one after the other until Ctrl-C. Raises LineageError."""
    from lineage_service.graph.neo4j_store import from_settings
    from lineage_service.replays.sandbox import Sandboxes
    from lineage_service.triggering.stored_jobs import StoredJobs

    sandboxes = Sandboxes(settings.home)
    pass_options = MaintenanceOptions(
        delete=tuple(options.delete),
        keep_days=options.keep_days,
        keep_bytes=options.keep_bytes,
        quiet_hours=options.quiet_hours,
        file_hours=options.file_hours,
    )
    store, graph = existing_store(settings), from_settings(settings)
    with closing(graph) if graph is not None else nullcontext():
        maintenance, jobs = Maintenance(store, graph), StoredJobs(store)

        def work() -> None:
            one_pass(maintenance, pass_options, _say)
            for job, count in jobs.prune().items():
                _say(f"job {job}: {count:,} pairs of waves from before its training are removed")
            for replay in sandboxes.expire():
                _say(f"replay {replay}: its sandbox is removed, a day after it ran")

        if options.every is None:
            work()
            return 0
        while True:
            try:
                work()
            except UnavailableError as error:
                _say(f"the next pass tries again: {error}")
            time.sleep(options.every)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
