"""What is wrong with the log of a Delta table on this machine, and what to do: said of a file, in one line.

Delta's library says that some JSON or Parquet cannot be read, not where. Looked for only after it failed, but
for two things that it takes for granted: an entry without a byte, which a power cut leaves and which reads as
a commit of nothing; and a log that is gone, in whose place it would begin a new one. docs/operations.md, "A
damaged flow store", has the remedies.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["empty_entries", "log_damage", "lost_log"]

_ENTRY = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint(\.[0-9.]+)?\.parquet")
_PAGE = "operations.md#a-damaged-flow-store"
_EMPTY_IT = (
    "stop what uses the store, {how}, and start it again: what it held is read from Kafka again if it was "
    f"the newest, else `lineage apps` says who lacks rows ({_PAGE})"
)


def log_damage(table: str) -> str | None:
    """The first file of a table's log that is damaged, how, and what to do. None: nothing was found."""
    log = Path(table) / "_delta_log"
    if "://" in table or not log.is_dir():
        return None
    try:
        return _first_damage(log)
    except OSError:  # it goes while it is looked at, or nobody may look: the library's error says enough
        return None


def _first_damage(log: Path) -> str | None:
    entries, checkpoints = _entries(log), _checkpoints(log)
    sound = [checkpoint for checkpoint in checkpoints if _is_parquet(checkpoint)]
    covered = max(map(_version, sound), default=-1)
    first = min(map(_version, entries), default=None)
    is_whole_without = covered >= 0 or first == 0
    for checkpoint in checkpoints:
        if checkpoint not in sound:
            return f"{checkpoint} is damaged (no Parquet): {_without_checkpoint(is_whole_without)}"
    if not sound and (log / "_last_checkpoint").exists():
        remedy = _without_checkpoint(is_whole_without)
        return f"the checkpoint that {log}/_last_checkpoint names is gone: {remedy}"
    return _damaged_entry(log, entries, covered)


def _damaged_entry(log: Path, entries: list[Path], covered: int) -> str | None:
    """Of the entries that no checkpoint stands for, the first that is damaged or gone."""
    expected = covered + 1
    for entry in (entry for entry in entries if _version(entry) > covered):
        if _version(entry) != expected:
            gone = log / f"{expected:020}.json"
            remedy = (
                _restore(is_only=False) if expected == 0 else _EMPTY_IT.format(how="put an empty file there")
            )
            return f"{gone} is gone: {remedy}"
        if expected == 0 and not entry.stat().st_size:
            return f"{entry} is empty: {_restore(is_only=len(entries) == 1)}"
        if not _is_json(entry):
            remedy = (
                _restore(is_only=len(entries) == 1)
                if expected == 0
                else _EMPTY_IT.format(how="empty this file")
            )
            return f"{entry} is damaged (no JSON): {remedy}"
        expected += 1
    return None


def empty_entries(table: str) -> list[str]:
    """Entries of a table's log that have no byte, and so say nothing, where no checkpoint stands for them."""
    log = Path(table) / "_delta_log"
    if not log.is_dir():
        return []
    covered = max(map(_version, _checkpoints(log)), default=-1)
    return [
        f"{entry} is empty, as a machine that lost its power leaves it: what it held is read from Kafka "
        "again if nothing came after it; `lineage apps` says who lacks rows"
        for entry in _entries(log)
        if _version(entry) > covered and not entry.stat().st_size
    ]


def lost_log(table: str) -> str | None:
    """What to do where a table's folder has files of applications, and no log. None: it has one."""
    folder = Path(table)
    log = folder / "_delta_log"
    if log.is_dir() and (_entries(log) or _checkpoints(log)):
        return None
    if not any(folder.glob("application_id=*")):
        return None
    return (
        f"the log of the flow store's table in {table} is gone, so nobody knows which of its files count: "
        "restore a copy, or consume the topics into a new --store, as another --consumer-group "
        f"({_PAGE})"
    )


def _without_checkpoint(is_whole: bool) -> str:
    if is_whole:
        return f"remove it, and _last_checkpoint beside it: the log is whole without them ({_PAGE})"
    return _restore(is_only=False)


def _restore(*, is_only: bool) -> str:
    if is_only:
        return f"nothing was stored in this table: remove its folder ({_PAGE})"
    return (
        "the table cannot be read without it: restore a copy, or consume the topics into a new --store, as "
        "another --consumer-group "
        f"({_PAGE})"
    )


def _entries(log: Path) -> list[Path]:
    return sorted((path for path in log.iterdir() if _ENTRY.fullmatch(path.name)), key=_version)


def _checkpoints(log: Path) -> list[Path]:
    return sorted(path for path in log.iterdir() if _CHECKPOINT.fullmatch(path.name))


def _version(path: Path) -> int:
    return int(path.name[:20])


def _is_parquet(path: Path) -> bool:
    try:
        pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return False
    return True


def _is_json(path: Path) -> bool:
    try:
        return all(isinstance(json.loads(line), dict) for line in path.read_bytes().splitlines())
    except ValueError:
        return False
