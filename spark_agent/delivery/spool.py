"""The spool of one process: files with the messages that Kafka did not take in time.

Promises that a message which `write` accepted is in a file when it returns, so that neither the end of the
process nor a kill loses it. Promises never to raise, and that the files of a host stay below `max_bytes`.
Knows nothing of Kafka: `spool_delivery` sends what is here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import IO

from spark_agent.contract import spool_files, spool_folder
from spark_agent.contract.spool_files import SpooledMessage, SpoolHead
from spark_agent.delivery.settings import AgentSettings

#: A file is closed when it is as large as this, or as old: then others may send it, too.
FILE_BYTES = 8_000_000
FILE_S = 60.0


class Spool:
    """Where a process puts what it cannot deliver. Thread-safe."""

    def __init__(self, settings: AgentSettings, local_folders: str) -> None:
        """`local_folders` are Spark's, of the machine that the process runs on, separated by commas."""
        self.folder = spool_folder.spool_folder(settings.spool_dir, local_folders)
        self.servers = settings.bootstrap_servers
        self._is_own_folder = not settings.spool_dir
        self._max_bytes, self._is_synced = settings.spool_max_bytes, settings.spool_fsync
        self._lock = threading.RLock()
        self._file: IO[bytes] | None = None
        self._path = ""
        self._opened_at = 0.0

    def write(self, messages: Sequence[SpooledMessage]) -> str:
        """Append all of the messages. Returns why none of them is there; empty where all are."""
        data = b"".join(map(spool_files.encode_message, messages))
        with self._lock:
            problem = self._refusal(len(data))
            if problem:
                return problem
            try:
                self._append(data)
            except OSError as error:
                self.close()
                return f"the spool in {self.folder} cannot be written ({error.strerror or error})"
        return ""

    def problem(self) -> str:
        """Why nothing can be written now; empty where something can."""
        with self._lock:
            return self._refusal(0)

    def close(self) -> None:
        """Leave the file to whoever sends it. The next message opens another one."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
                spool_files.own_files.paths.discard(self._path)

    def waiting(self) -> list[str]:
        """The paths of all files here, oldest first, also those of other processes."""
        return spool_files.waiting_files(self.folder)

    # -- the file ------------------------------------------------------------------------------------

    def _refusal(self, size: int) -> str:
        """Why so many bytes more have no place here; empty where they have one."""
        if not self._max_bytes:
            return "the spool is off (spark.lineage.spool.maxBytes=0)"
        if problem := spool_folder.make_folder(self.folder, is_own=self._is_own_folder):
            return problem
        used = self._bytes_of_host()
        if used + size > self._max_bytes:
            return (
                f"the spool in {self.folder} is full, with {used:,} bytes: send them with "
                "`lineage spool deliver`, or raise spark.lineage.spool.maxBytes"
            )
        return ""

    def _bytes_of_host(self) -> int:
        total, prefix = 0, spool_files.new_name(host()).partition("_")[0] + "_"
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.startswith(prefix):
                        total += entry.stat().st_size
        except OSError:  # no folder yet, or a file that was sent just now
            pass
        return total

    def _append(self, data: bytes) -> None:
        """Raises OSError, and then no part of `data` is in a file that counts."""
        file = self._open()
        begin = file.tell()
        try:
            _write_all(file, data)
            if self._is_synced:
                os.fsync(file.fileno())
        except OSError:
            file.truncate(begin)
            raise
        if os.fstat(file.fileno()).st_nlink == 0:  # somebody has removed it: begin another one
            self.close()
            self._append(data)

    def _open(self) -> IO[bytes]:
        if self._file is not None and (
            self._file.tell() >= FILE_BYTES or time.monotonic() - self._opened_at > FILE_S
        ):
            self.close()
        return self._file or self._new_file()

    def _new_file(self) -> IO[bytes]:
        """Others see it once it is locked: else one of them could take it for empty, and remove it."""
        path = os.path.join(self.folder, spool_files.new_name(host()))
        unfinished = path + spool_files.UNFINISHED
        mode = 0o600 if self._is_own_folder else 0o660
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        # Unbuffered: what `write` returned from is with the system, whatever becomes of the process.
        file = open(os.open(unfinished, flags, mode), "wb", buffering=0)  # noqa: SIM115 - kept open
        try:
            spool_files.lock(file)
            head = SpoolHead(self.servers, host(), os.getpid(), time.time_ns() // 1_000_000)
            _write_all(file, spool_files.encode_head(head))
            spool_files.own_files.paths.add(path)
            os.rename(unfinished, path)
        except OSError:
            spool_files.own_files.paths.discard(path)
            file.close()
            os.unlink(unfinished)
            raise
        self._file, self._path, self._opened_at = file, path, time.monotonic()
        return file


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Raises OSError. A disk that is nearly full takes a part of it."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def host() -> str:
    """The name of this machine."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "host")
