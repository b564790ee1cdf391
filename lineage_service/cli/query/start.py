"""What people type for an application and for a record, turned into what `Queries` understands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lineage_service.cli.local_paths import is_there
from lineage_service.cli.stores import open_lineage, open_queries
from lineage_service.errors import InvalidQueryError, NotFoundError, UnknownApplicationError
from lineage_service.newest_application import LAST, NoApplicationError
from lineage_service.queries import ALL_COLUMNS, Queries, column_names
from lineage_service.settings import Settings
from lineage_service.store.flow_store import location_text
from spark_agent.contract.dataset_names import is_topic_partition

if TYPE_CHECKING:
    from lineage_service.tracing.query.service import LineageQueries

__all__ = [
    "add_application",
    "add_limit_flag",
    "add_page_flags",
    "add_row_flags",
    "columns_of",
    "line_of_file",
    "start_of",
    "store_lineage",
    "store_queries",
    "whole_number",
]

MAX_LIMIT = 10_000


def add_application(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", help=f"an applicationId of `lineage apps`, or {LAST!r} for the newest")


def add_page_flags(parser: argparse.ArgumentParser, what: str, things: str = "records") -> None:
    add_limit_flag(parser, f"at most this many {things} {what}")
    parser.add_argument("--cursor", metavar="TEXT", help="go on where the answer before ended, as it says")


def add_limit_flag(parser: argparse.ArgumentParser, description: str) -> None:
    parser.add_argument(
        "--limit",
        type=whole_number(1, MAX_LIMIT),
        default=20,
        metavar="N",
        help=f"{description} (default: 20, at most {MAX_LIMIT:,})",
    )


def add_row_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--columns",
        metavar="A,B",
        help="only these columns of rows; '*' is every column, with --json or --csv",
    )
    parser.add_argument(
        "--full", action="store_true", help="whole values and paths: floats are not rounded, nothing is cut"
    )


def columns_of(options: argparse.Namespace, *, is_table: bool = False) -> tuple[str, ...] | None:
    """The columns of rows to ask for. JSON and CSV have the texts alone, unless columns are named.

    `is_table`: what is asked for is one table, so that CSV has a column for each.
    """
    if options.columns is not None:
        return column_names(options.columns)
    is_for_people = not (options.json or options.csv)
    return (ALL_COLUMNS,) if is_for_people or (options.csv and is_table) else None


@contextmanager
def store_queries(settings: Settings) -> Iterator[Queries]:
    """The queries of the settings' store, which is not created where it is missing.

    The error about something unknown names the store and the home. Raises LineageError.
    """
    with _errors_that_name_the_store(settings):
        yield open_queries(settings, makes_store=False)


@contextmanager
def store_lineage(settings: Settings) -> Iterator[LineageQueries]:
    """The same, with the files of the jobs. Raises LineageError."""
    with _errors_that_name_the_store(settings):
        yield open_lineage(settings)


@contextmanager
def _errors_that_name_the_store(settings: Settings) -> Iterator[None]:
    try:
        yield
    except UnknownApplicationError as error:
        raise UnknownApplicationError(error.application_id, location_text(settings)) from None
    except NoApplicationError:
        raise NotFoundError(
            f"no applications in {location_text(settings)}: run a job with lineage, and `lineage consume`"
        ) from None


def start_of(text: str | None, key: str | None, node: str | None) -> dict[str, Any]:
    """The fields of a TraceQuery that say where it begins. Raises InvalidQueryError."""
    if (text is None) == (key is None):
        raise InvalidQueryError(
            "say where the trace begins: FILE:LINE of an input or output file (lines count from 1), a record "
            "id such as write#0#12 or 30#write#0#12, --key with --node, or --where"
        )
    if key is not None:
        if node is None:
            raise InvalidQueryError("--key needs --node: the operation whose records have that key")
        return {"key": key, "node": node}
    path, row = line_of_file(text or "")
    if row is not None and ("#" not in path or is_there(path)):
        return {"path": path, "row": row, "node": node}
    if "#" not in (text or ""):
        raise InvalidQueryError(f"{text!r} is neither FILE:LINE nor a record id such as write#0#12")
    return {"record": text, "node": node}


def line_of_file(text: str) -> tuple[str, int | None]:
    """The path and the row of FILE:LINE; of a path alone, None. Raises InvalidQueryError.

    Records of a partition of a topic have offsets, which count from 0.
    """
    path, _, line = text.rpartition(":")
    if not (path and line.isascii() and line.isdigit()) or is_there(text):
        return _whole(text), None
    if is_topic_partition(path):
        return path, int(line)
    if int(line) < 1:
        raise InvalidQueryError(f"{text}: lines count from 1")
    return _whole(path), int(line) - 1


def _whole(path: str) -> str:
    """As jobs name it: from the root, where it is on this machine, or a glob in a folder that is."""
    whole = Path(path).absolute()
    is_glob = any(sign in path for sign in "*?[") and "/" in path and "://" not in path
    return str(whole) if is_there(path) or is_glob else path


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """For argparse: reads a number of that range."""

    def read(text: str) -> int:
        if not (
            text.isascii() and text.isdigit() and int(text) >= least and int(text) <= (most or int(text))
        ):
            ranged = f"from {least} to {most}" if most is not None else f"of {least} or more"
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number {ranged}")
        return int(text)

    return read
