"""`lineage maintain`: compacts the flow store, removes what is old or unwanted, once or again and again.

The door: settings in, exit code out, a line for each application that something was done to. May run beside
consumers, questions and other `lineage maintain`. The work and its promises are in `maintenance`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from lineage_service.errors import LineageError, UnavailableError
from lineage_service.store.errors import StoreConflictError
from lineage_service.store.flow_store import existing_store
from lineage_service.store.maintenance import Compacted, Maintenance, Stored, expired
from spark_agent import contract

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["Wishes", "command", "configure", "one_pass"]

_DAY_S = 86_400.0
_HOUR_S = 3_600.0
#: An application that was killed never says that it ended. After so many days of silence it did.
ABANDONED_DAYS = 7
#: Events of an application that still runs are compacted when they are in more files than this: each minute
#: of a session that does nothing gives one.
MAX_EVENT_FILES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What one pass is to do, beside compaction."""

    delete: tuple[str, ...] = ()
    keep_days: float | None = None
    keep_bytes: int | None = None
    quiet_hours: float = 1.0
    file_hours: int = 1


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
        help="files that nothing names any more stay for so long, for questions under way; at least 1 while "
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

    wishes = Wishes(
        delete=tuple(options.delete),
        keep_days=options.keep_days,
        keep_bytes=options.keep_bytes,
        quiet_hours=options.quiet_hours,
        file_hours=options.file_hours,
    )
    store, graph = existing_store(settings), from_settings(settings)
    with closing(graph) if graph is not None else nullcontext():
        maintenance = Maintenance(store, graph)
        if options.every is None:
            one_pass(maintenance, wishes, _say)
            return 0
        while True:
            try:
                one_pass(maintenance, wishes, _say)
            except UnavailableError as error:
                _say(f"the next pass tries again: {error}")
            time.sleep(options.every)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def one_pass(
    maintenance: Maintenance,
    wishes: Wishes,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.time,
) -> None:
    """1. Finish and make deletions. 2. Retention. 3. Compaction. 4. Old files.

    What fails for one application does not keep the others from their turn; the first error is raised at the
    end.
    """
    errors: list[LineageError] = []

    def tried(application_id: str, work: Callable[[], None]) -> None:
        try:
            work()
        except StoreConflictError:
            say(f"{application_id}: is being written; left for the next pass")
        except LineageError as error:
            say(f"{application_id}: {error}")
            errors.append(error)

    def delete(application_id: str, why: str) -> Callable[[], None]:
        def work() -> None:
            size = stored[application_id].bytes if application_id in stored else 0
            maintenance.delete(application_id)
            stored.pop(application_id, None)
            say(f"{application_id}: deleted, {_size(size)} ({why})")

        return work

    now = clock()
    stored = maintenance.stored()
    unknown = [each for each in wishes.delete if each not in stored]
    for application_id in sorted({*wishes.delete, *maintenance.deleted(list(stored))}):
        why = "nothing of it was stored" if application_id in unknown else "as asked for"
        tried(application_id, delete(application_id, why))
    if wishes.keep_days is not None or wishes.keep_bytes is not None:
        ended: dict[str, float] = {}
        for application_id, each in stored.items():
            tried(application_id, partial(_look, maintenance, each, now, ended))
        keep_s = None if wishes.keep_days is None else wishes.keep_days * _DAY_S
        gone = expired(stored, ended, keep_s=keep_s, keep_bytes=wishes.keep_bytes, now=now)
        for application_id in gone:
            when = datetime.fromtimestamp(ended[application_id], timezone.utc)
            tried(application_id, delete(application_id, f"it ended at {when:%Y-%m-%d %H:%M} UTC"))
        total = sum(each.bytes for each in stored.values())
        if wishes.keep_bytes is not None and total > wishes.keep_bytes:
            say(f"{_size(total)} are stored and none that could go: the other applications have not ended")
    for application_id in sorted(stored):
        each = stored[application_id]
        tried(application_id, partial(_compact, maintenance, each, wishes, now, say))
    removed = maintenance.remove_old_files(wishes.file_hours)
    if removed:
        say(f"{removed} files that nothing named any more are removed")
    if errors:
        raise errors[0]


def _look(maintenance: Maintenance, stored: Stored, now: float, ended: dict[str, float]) -> None:
    """Put into `ended` when the application did, unless it runs still."""
    when = maintenance.ended(stored.application_id)
    if when is None and now - stored.changed > ABANDONED_DAYS * _DAY_S:
        when = stored.changed
    if when is not None:
        ended[stored.application_id] = when


def _compact(
    maintenance: Maintenance, stored: Stored, wishes: Wishes, now: float, say: Callable[[str], None]
) -> None:
    tables = stored.unsorted
    if not tables:
        return
    is_quiet = now - stored.changed > wishes.quiet_hours * _HOUR_S
    if not is_quiet and stored.small.get("events", 0) > MAX_EVENT_FILES:
        tables = ("events",)
        say(f"{stored.application_id}: {_described(maintenance.compact(stored.application_id, tables))}")
    elif is_quiet or maintenance.is_complete(stored.application_id):
        say(f"{stored.application_id}: {_described(maintenance.compact(stored.application_id, tables))}")


def _described(compacted: Sequence[Compacted]) -> str:
    files = [sum(each.files[at] for each in compacted) for at in (0, 1)]
    sizes = [sum(each.bytes[at] for each in compacted) for at in (0, 1)]
    tables = ", ".join(each.table for each in compacted)
    return (
        f"compacted {tables}: {files[0]} files to {files[1]}, {_size(sizes[0])} to {_size(sizes[1])}"
        if compacted
        else "was compacted by another process"
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
