"""One pass of maintenance over all applications of a store: deletions, retention, compaction, old files.

What fails for one application does not keep the others from their turn. The work on one application and its
promises are in `maintenance`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from lineage_service.errors import LineageError
from lineage_service.store.errors import StoreConflictError
from lineage_service.store.maintenance import Compacted, Maintenance, Stored, expired

__all__ = ["MaintenanceOptions", "one_pass"]

_DAY_S = 86_400.0
_HOUR_S = 3_600.0
#: An application that was killed never says that it ended. After so many days of silence it did.
ABANDONED_DAYS = 7
#: A replay is there to look at: its report stays in its sandbox.
REPLAY_DAYS = 1
#: Events of an application that still runs are compacted when they are in more files than this: each minute
#: of a session that does nothing gives one.
MAX_EVENT_FILES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceOptions:
    """What one pass is to do, beside compaction."""

    delete: tuple[str, ...] = ()
    keep_days: float | None = None
    keep_bytes: int | None = None
    quiet_hours: float = 1.0
    file_hours: int = 1


def one_pass(
    maintenance: Maintenance,
    options: MaintenanceOptions,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.time,
) -> None:
    """1. Finish deletions, and make those of the options. 2. Retention. 3. Replays that are old, or whose
    originals are gone. 4. Compaction. 5. Old files.

    The first error of an application is raised at the end.
    """
    work = _Pass(maintenance, options, say, clock())
    work.delete()
    work.retain()
    work.let_replays_go()
    work.compact()
    removed = maintenance.remove_old_files(options.file_hours)
    if removed:
        say(f"{removed} files that nothing named any more are removed")
    if work.errors:
        raise work.errors[0]


class _Pass:
    """The steps, over what was stored when it began."""

    def __init__(
        self,
        maintenance: Maintenance,
        options: MaintenanceOptions,
        say: Callable[[str], None],
        now: float,
    ) -> None:
        self._maintenance = maintenance
        self._options = options
        self._say = say
        self._now = now
        self._stored = maintenance.stored()
        self.errors: list[LineageError] = []

    def delete(self) -> None:
        """What the options name, and what an earlier pass did not finish."""
        missing = set(self._options.delete) - self._stored.keys()
        marked = self._maintenance.deleted(list(self._stored))
        for application_id in sorted({*self._options.delete, *marked}):
            self._delete(
                application_id, "nothing of it was stored" if application_id in missing else "as asked for"
            )

    def retain(self) -> None:
        """Delete what ended too long ago, and what ended first while there is too much."""
        keep_days, keep_bytes = self._options.keep_days, self._options.keep_bytes
        if keep_days is None and keep_bytes is None:
            return
        ended: dict[str, float] = {}
        for application_id, application in self._stored.items():
            self._attempt(application_id, partial(self._look_for_end, application, ended))
        keep_s = None if keep_days is None else keep_days * _DAY_S
        for application_id in expired(
            self._stored, ended, keep_s=keep_s, keep_bytes=keep_bytes, now=self._now
        ):
            when = datetime.fromtimestamp(ended[application_id], timezone.utc)
            self._delete(application_id, f"it ended at {when:%Y-%m-%d %H:%M} UTC")
        total = sum(application.bytes for application in self._stored.values())
        if keep_bytes is not None and total > keep_bytes:
            self._say(
                f"{_size(total)} are stored and none that could go: the other applications have not ended"
            )

    def let_replays_go(self) -> None:
        """Delete replays a day after their end, and with what they are replays of."""
        ended: dict[str, float] = {}
        for replay, original in sorted(self._replays().items()):
            if original not in self._stored:
                self._delete(replay, f"{original}, which it is a replay of, is gone")
                continue
            self._attempt(replay, partial(self._look_for_end, self._stored[replay], ended))
            if self._now - ended.get(replay, self._now) > REPLAY_DAYS * _DAY_S:
                self._delete(replay, f"it was a replay of {original}, and ended more than a day ago")

    def _replays(self) -> dict[str, str]:
        """With what each is a replay of."""
        try:
            return self._maintenance.replays(list(self._stored))
        except LineageError:  # of an application that is damaged: the others go on
            replays: dict[str, str] = {}
            for application_id in sorted(self._stored):
                self._attempt(application_id, partial(self._add_replay, application_id, replays))
            return replays

    def _add_replay(self, application_id: str, replays: dict[str, str]) -> None:
        replays.update(self._maintenance.replays([application_id]))

    def compact(self) -> None:
        for application_id in sorted(self._stored):
            self._attempt(application_id, partial(self._compact, self._stored[application_id]))

    def _attempt(self, application_id: str, work: Callable[[], None]) -> None:
        try:
            work()
        except StoreConflictError:
            self._say(f"{application_id}: is being written; left for the next pass")
        except LineageError as error:
            self._say(f"{application_id}: {error}")
            self.errors.append(error)

    def _delete(self, application_id: str, why: str) -> None:
        def work() -> None:
            size = self._stored[application_id].bytes if application_id in self._stored else 0
            self._maintenance.delete(application_id)
            self._stored.pop(application_id, None)
            self._say(f"{application_id}: deleted, {_size(size)} ({why})")

        self._attempt(application_id, work)

    def _look_for_end(self, stored: Stored, ended: dict[str, float]) -> None:
        """Put into `ended` when the application did, unless it runs still."""
        when = self._maintenance.ended(stored.application_id)
        if when is None and self._now - stored.changed > ABANDONED_DAYS * _DAY_S:
            when = stored.changed
        if when is not None:
            ended[stored.application_id] = when

    def _compact(self, stored: Stored) -> None:
        tables = stored.unsorted
        if not tables:
            return
        is_quiet = self._now - stored.changed > self._options.quiet_hours * _HOUR_S
        if not is_quiet and stored.small.get("events", 0) > MAX_EVENT_FILES:
            tables = ("events",)
        elif not is_quiet and not self._maintenance.is_complete(stored.application_id):
            return
        compacted = self._maintenance.compact(stored.application_id, tables)
        self._say(f"{stored.application_id}: {_description(compacted)}")


def _description(compacted: Sequence[Compacted]) -> str:
    if not compacted:
        return "was compacted by another process"
    files = [sum(table.files[at] for table in compacted) for at in (0, 1)]
    sizes = [sum(table.bytes[at] for table in compacted) for at in (0, 1)]
    tables = ", ".join(table.table for table in compacted)
    return f"compacted {tables}: {files[0]} files to {files[1]}, {_size(sizes[0])} to {_size(sizes[1])}"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
