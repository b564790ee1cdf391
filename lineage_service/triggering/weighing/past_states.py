"""Inputs and outputs of an execution that is over, as it read and wrote them: or why they cannot be read so.

Files are as then if they are there with the sizes and times that the execution saw. Of a Delta table it is
the version of that time, by the times of its commits. What others wrote since is left out. Of a path that had
other files, or of a table that was written meanwhile, the state then is not known: nothing is guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lineage_service.errors import LineageError
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.triggering.certain.answers import output_change
from lineage_service.triggering.certain.evidence import Evidence
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import Commit, FileLook, FileLooks, LookError
from lineage_service.triggering.certain.given_inputs import (
    FileStates,
    GivenInput,
    WrittenOutput,
    named_after_a_day,
)
from lineage_service.triggering.weighing.container_rows import Container, RowReader, UnreadRowsError

__all__ = ["NotAsItWasError", "PastReader", "PastStates"]

#: For all listings together.
_LOOK_SECONDS = 300.0
#: The clock of the file system and that of the driver may differ so far: here, and elsewhere.
_LOCAL_NS, _REMOTE_NS = 2_000_000_000, 60_000_000_000
#: A commit may be so much later than its application's end.
_AFTER_END_NS = 5_000_000_000


class NotAsItWasError(LineageError):
    """`reason` is a word, the message a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A Delta table: its commits that are still in the log, the oldest first."""

    commits: Sequence[Commit]

    def at(self, unix_ns: int) -> Commit | None:
        """The newest one until then; None: the log does not reach so far."""
        return next((commit for commit in reversed(self.commits) if commit.time_ns <= unix_ns), None)

    def between(self, first_ns: int, last_ns: int) -> list[Commit]:
        return [commit for commit in self.commits if first_ns < commit.time_ns <= last_ns]


class PastStates:
    """Of one job. What was listed is not listed again."""

    def __init__(self) -> None:
        self._looks = FileLooks(FileSystems(), _LOOK_SECONDS)
        self._now: dict[str, FileLook] = {}
        self._tables: dict[str, _Table] = {}

    def inputs(
        self, execution: Execution, inputs: Sequence[GivenInput], extra: Sequence[str]
    ) -> dict[str, FileLook]:
        """By path, as the execution read them. Raises NotAsItWasError."""
        for source in inputs:
            if not source.is_file:
                raise NotAsItWasError("no_file", f"it read {source.name}, which {source.why}")
            if not source.paths:
                raise NotAsItWasError("unknown_input", f"{source.name} {source.why}")
        paths = list(dict.fromkeys([*(path for source in inputs for path in source.paths), *extra]))
        if not paths:
            raise NotAsItWasError("no_input", "no input of it is known")
        states: dict[str, FileLook] = {}
        for path in paths:
            if named_after_a_day(path, execution.began):
                raise NotAsItWasError(
                    "other_input", f"it read {path}, another place each day: such a job is always run"
                )
            read = {
                file: state
                for source in inputs
                if path in source.paths
                for file, state in source.files.items()
            }
            states[path] = self._input(execution, path, None if path in extra and not read else read)
        self._check_all_read(inputs, states)
        return states

    def outputs(self, evidence: Evidence, outputs: Sequence[WrittenOutput]) -> dict[str, FileLook]:
        """By path, as the last execution of the evidence wrote them. Raises NotAsItWasError."""
        execution = evidence.last
        assert execution is not None
        states: dict[str, FileLook] = {}
        for output in outputs:
            if output.path is None:
                raise NotAsItWasError("unknown_output", f"{output.name} {output.why}")
            now = self._look(output.path)
            states[output.path] = now
            if now.version is not None:
                states[output.path] = self._written_version(execution, now)
                continue
            why = output_change(output, replace(evidence, looks={output.path: now}), execution)
            if why is not None:
                raise NotAsItWasError("output_changed", why)
            other = [file for file, (size, _) in now.files.items() if size and file not in output.files]
            if other:
                raise NotAsItWasError(
                    "output_changed", f"{min(other)} of its output is not of this execution"
                )
        if not states:
            raise NotAsItWasError("unknown_output", "no output of it is known")
        return states

    # -- inputs --------------------------------------------------------------------------------------

    def _input(self, execution: Execution, path: str, read: FileStates | None) -> FileLook:
        """`read` None: which files it read is not known, so all must be older."""
        now = self._look(path)
        began_ns = execution.began * 1_000_000
        if now.version is not None:
            return self._read_version(execution, now, read or {})
        if read is None:
            if not now.is_older_than(began_ns):
                raise NotAsItWasError("changed", f"{now.newest or path} was written after it began")
            return now
        files: dict[str, tuple[int, int]] = {}
        for file, (size, modified) in sorted(now.files.items()):
            if file in read:
                if read[file] != (size, modified):
                    raise NotAsItWasError("changed", f"{file} is not as it read it")
                if modified >= execution.began:
                    raise NotAsItWasError("written", f"{file} was written while it ran")
                files[file] = size, modified
            elif size and modified * 1_000_000 <= began_ns + _slack(now):
                raise NotAsItWasError(
                    "unknown_input", f"{file} is older, and was not read: whether it was there is not known"
                )
        if not files:
            raise NotAsItWasError("changed", f"of {path} no file is left that it read")
        return _of_files(now, files)

    def _check_all_read(self, inputs: Sequence[GivenInput], states: Mapping[str, FileLook]) -> None:
        """Is each file that was read in one of the states?"""
        for source in inputs:
            looks = [states[path] for path in source.paths]
            if any(look.version is not None for look in looks):
                continue
            gone = [file for file in source.files if not any(file in look.files for look in looks)]
            if gone:
                raise NotAsItWasError("changed", f"{min(gone)} is gone since it read it")

    def _read_version(self, execution: Execution, now: FileLook, read: FileStates) -> FileLook:
        table, slack = self._table(now.path), _slack(now)
        first, last = execution.began * 1_000_000 - slack, _end_ns(execution) + slack
        commit = table.at(first)
        if commit is None:
            raise NotAsItWasError(
                "changed", f"which version {now.path} had then is not known: its log begins later"
            )
        if table.between(first, last):
            raise NotAsItWasError(
                "written", f"{now.path} was written while it ran: which version it read is not known"
            )
        look = _of_commit(now, commit)
        if read:
            files = _files_of_version(look)
            other = [file for file in read if file not in files]
            if other:
                raise NotAsItWasError(
                    "unknown_input", f"{min(other)} was read, and is not of version {commit.version}"
                )
        return look

    def _written_version(self, execution: Execution, now: FileLook) -> FileLook:
        commits = self._table(now.path).between(
            execution.began * 1_000_000, _end_ns(execution) + _AFTER_END_NS
        )
        if len(commits) != 1:
            many = "none is in its log" if not commits else f"{len(commits)} were made while it ran"
            raise NotAsItWasError(
                "output_changed", f"which version of {now.path} it wrote is not known: {many}"
            )
        return _of_commit(now, commits[0])

    # -- files ---------------------------------------------------------------------------------------

    def _look(self, path: str) -> FileLook:
        if path not in self._now:
            try:
                self._now[path] = self._looks.at(path)
            except LookError as error:
                raise NotAsItWasError("unknown_input", str(error)) from None
        return self._now[path]

    def _table(self, path: str) -> _Table:
        if path not in self._tables:
            try:
                self._tables[path] = _Table(commits=self._looks.commits(path))
            except LookError as error:
                raise NotAsItWasError("unknown_input", str(error)) from None
        return self._tables[path]


class PastReader(RowReader):
    """Reads the files of a state, whatever others have been written beside them since."""

    def _is_as_seen(self, now: FileLook, look: FileLook) -> bool:
        return all(now.files.get(file) == state for file, state in look.files.items())

    def read_all(self, containers: Sequence[tuple[Container, FileLook]]) -> None:
        """So that they are at hand. Raises NotAsItWasError."""
        for container, look in containers:
            try:
                self.rows(container, look)
            except UnreadRowsError as error:
                raise NotAsItWasError("unread", str(error)) from None


def _of_files(now: FileLook, files: dict[str, tuple[int, int]]) -> FileLook:
    newest = max(files, key=lambda file: files[file][1])
    return replace(
        now,
        digest=hashlib.sha256(repr(sorted(files.items())).encode("utf-8", "surrogateescape")).hexdigest(),
        count=len(files),
        bytes=sum(size for size, _ in files.values()),
        newest_ns=files[newest][1] * 1_000_000,
        newest=newest,
        files=files,
    )


def _of_commit(now: FileLook, commit: Commit) -> FileLook:
    return replace(
        now,
        digest=f"{now.path} {commit.version} {commit.time_ns}",
        newest_ns=commit.time_ns,
        newest=commit.name,
        version=commit.version,
    )


def _files_of_version(look: FileLook) -> set[str]:
    """Raises NotAsItWasError."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        uris: Any = DeltaTable(look.path, version=look.version).file_uris()
    except DeltaError as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise NotAsItWasError("unread", f"version {look.version} of {look.path}: {reason}") from None
    return {normal_path(str(uri)) for uri in uris}


def _slack(look: FileLook) -> int:
    return _LOCAL_NS if look.is_local else _REMOTE_NS


def _end_ns(execution: Execution) -> int:
    return (execution.ended if execution.ended is not None else execution.began) * 1_000_000
