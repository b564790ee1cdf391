"""What a replay did, for who started it: the file `report.json` in its sandbox.

Promises that the file is whole whenever somebody reads it, and that the report never fails a job. Who reports
often pays for it little: the file is then written again now and then, and at the end. What the replay's
processes have noted for themselves (refusals, connections) is in it, too. Thread-safe.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

from spark_agent.contract.replay_notes import read_notes
from spark_agent.contract.replay_spec import REPLAY_REPORT
from spark_agent.delivery.log import logger

#: Records of one sink, and records that were left out, that are reported.
MAX_VALUES = MAX_SKIPPED = 1_000
#: Of the values of all sinks together.
MAX_VALUE_CHARACTERS = 10_000_000
#: Writing takes at most so large a share of the time.
_SHARE = 0.05

Fields = dict[str, Any]


class Report:
    """The report of one replay."""

    def __init__(self, sandbox: str) -> None:
        self._sandbox, self._path = sandbox, os.path.join(sandbox, REPLAY_REPORT)
        self._lock = threading.RLock()
        self._fields: Fields = {
            "application": None,
            "sources": [],
            "sinks": [],
            "skipped": [],
            "skipped_total": 0,
            "differences": [],
            "inferred": [],
        }
        self._skipped: set[tuple[Any, ...]] = set()
        self._characters = 0
        self._is_due_at = 0.0
        self._about_rows: list[str] = []

    def begin(self, application_id: str, *, is_first_named: bool) -> None:
        """Of several applications the first counts, or `is_first_named`, which has the original's name.

        What was said of the sources of those before is let go of then.
        """
        with self._lock:
            if is_first_named:
                self._fields["sources"].clear()
                for sentence in self._about_rows:
                    self._fields["differences"].remove(sentence)
                self._about_rows.clear()
            if self._fields["application"] is None or is_first_named:
                self._fields["application"] = application_id
            self.write()

    def source(self, node: int, name: str, call_site: str, way: str, why: str = "") -> None:
        """How a source is read: `literal`, `filter` or `whole`."""
        self._add(
            "sources", {"node": node, "name": name, "call_site": call_site, "way": way, "why": why or None}
        )

    def sink(self, sink: Fields) -> Fields:
        """Add a sink. Who has what comes back may say more of it with `update`."""
        self._add("sinks", sink)
        return sink

    def update(self, entry: Fields, **more: Any) -> None:
        with self._lock:
            entry.update(more)
            self._changed()

    def values(self, entry: Fields, texts: list[Any], total: int) -> None:
        """What an action gave the program: the first of its records as (type, text)."""
        with self._lock:
            kept: list[Any] = []
            for text in texts[:MAX_VALUES]:
                self._characters += len(text[1])
                if self._characters > MAX_VALUE_CHARACTERS:
                    break
                kept.append(text)
            entry.update(values=kept, total=total)
            self._changed()

    def skipped(self, failures: list[Fields], total: int) -> None:
        """The first of the records that a task run left out since a function raised on them.

        A partition that is computed again drops the same ones again: they count once.
        """
        with self._lock:
            listed = self._fields["skipped"]
            fresh = [failure for failure in failures if _key_of(failure) not in self._skipped]
            self._skipped.update(map(_key_of, fresh))
            listed += fresh[: MAX_SKIPPED - len(listed)]
            self._fields["skipped_total"] += total - (len(failures) - len(fresh))
            self._changed()

    def differs(self, sentence: str, *, is_about_rows: bool = False) -> None:
        """In what the script went another way than the original, or may have."""
        with self._lock:
            if sentence not in self._fields["differences"]:
                self._add("differences", sentence)
                if is_about_rows:
                    self._about_rows.append(sentence)

    def infers(self, reader: str) -> None:
        """A reader of DataFrames looks at all rows of its files, to know the columns."""
        with self._lock:
            if reader not in self._fields["inferred"]:
                self._add("inferred", reader)

    def _add(self, name: str, entry: Any) -> None:
        with self._lock:
            self._fields[name].append(entry)
            self._changed()

    def _changed(self) -> None:
        if time.monotonic() >= self._is_due_at:
            self.write()

    def write(self) -> None:
        """Write the file now. Never raises."""
        begin = time.monotonic()
        with self._lock:
            try:
                notes = read_notes(self._sandbox)
                noted = {name: notes[name] for name in ("refused", "connections")}
                text = json.dumps({**self._fields, **noted}, ensure_ascii=False)
                temporary = f"{self._path}.tmp"
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)
                os.replace(temporary, self._path)
            except Exception as error:  # noqa: BLE001 - a full disk, say: the command says what is missing
                logger.warning("the report of the replay could not be written: %r", error)
            now = time.monotonic()
            self._is_due_at = now + (now - begin) / _SHARE


def _key_of(failure: Fields) -> tuple[Any, ...]:
    """Which record of which operation it is."""
    record = failure.get("record") or {}
    return failure["node"], failure.get("partition"), record.get("node"), record.get("record_id")
