"""Files of a spool: messages to Kafka that wait on a disk, and who may send them.

A process that cannot deliver its lineage appends its messages to a file of its own. Whoever claims the file
later sends them and removes it: the process itself, another one with lineage on that host, or
`lineage spool deliver`. The agent's Java code writes and reads the same files. Promises that a record which
was not written to its end, or was changed, is never taken for a message. Standard library only.

A file begins with `MAGIC` and a line of JSON: `servers` (the brokers), `host`, `pid`, `time` (Unix ms). Then
come records, all numbers big-endian: CRC-32 of the body (4 bytes), its length (4), and the body. A body is
the partition (4, signed; -1: by the key), the length of the topic's name (2) and of the key (2), then topic,
key and value.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple

__all__ = [
    "DAMAGED",
    "MAGIC",
    "SUFFIX",
    "UNFINISHED",
    "ClaimedFile",
    "SpoolFile",
    "SpoolHead",
    "SpooledMessage",
    "claim",
    "damaged_name",
    "encode_head",
    "encode_message",
    "new_name",
    "read_messages",
    "waiting_files",
]

MAGIC = b"LMSPOOL1\n"
#: Of files that wait, and of those that are left since a part of them is damaged.
SUFFIX, DAMAGED = ".spool", ".damaged"
#: Behind the name of a file that its writer has not locked yet.
UNFINISHED = ".new"
_HEAD, _BODY = struct.Struct(">II"), struct.Struct(">iHH")
#: Kafka's messages have a megabyte at most; a longer record is no record.
_MAX_BODY = 16_000_000
#: A file that another process cannot have locked, since its folder knows no locks, is free after so long.
#: Writers go on to a new file much earlier.
UNLOCKABLE_FREE_S = 600.0
_LOCKED_BY_OTHERS = (errno.EACCES, errno.EAGAIN)


class SpooledMessage(NamedTuple):
    """`partition` is -1 where the key decides."""

    topic: str
    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class SpoolHead:
    """Where the messages of a file are to go, and who wrote it."""

    servers: str
    host: str
    pid: int
    time_ms: int


@dataclass
class ReadOutcome:
    """What reading a file came upon. `cut` is how many bytes its last record has, if it is not whole."""

    messages: int = 0
    damaged: int = 0
    cut: int = 0


# -- writing ------------------------------------------------------------------------------------------


def new_name(host: str) -> str:
    """A file name that no other process uses. It begins with the host, and sorts by time behind that."""
    safe = "".join(character if character.isalnum() or character in ".-" else "-" for character in host)
    return f"{safe or 'host'}_{time.time_ns() // 1_000:016d}_{os.getpid()}_{secrets.token_hex(4)}{SUFFIX}"


def encode_head(head: SpoolHead) -> bytes:
    fields = {"servers": head.servers, "host": head.host, "pid": head.pid, "time": head.time_ms}
    return MAGIC + json.dumps(fields).encode() + b"\n"


def encode_message(message: SpooledMessage) -> bytes:
    topic = message.topic.encode()
    body = _BODY.pack(message.partition, len(topic), len(message.key)) + topic + message.key + message.value
    return _HEAD.pack(zlib.crc32(body), len(body)) + body


# -- reading ------------------------------------------------------------------------------------------


def read_head(file: IO[bytes]) -> SpoolHead | None:
    """The head; the file stands behind it afterwards. None where this is no file of a spool."""
    if file.read(len(MAGIC)) != MAGIC:
        return None
    try:
        fields = json.loads(file.readline(1_000_000))
        return SpoolHead(str(fields["servers"]), str(fields["host"]), int(fields["pid"]), int(fields["time"]))
    except (ValueError, KeyError, TypeError):
        return None


def read_messages(file: IO[bytes], outcome: ReadOutcome) -> Iterator[SpooledMessage]:
    """The messages behind the head, in their order. `outcome` counts them, and what is no message."""
    while head := file.read(_HEAD.size):
        checksum, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if len(head) < _HEAD.size:
            outcome.cut = len(head)
            return
        if not _BODY.size <= length <= _MAX_BODY:
            outcome.damaged += 1  # where the next record begins is not known
            return
        body = file.read(length)
        if len(body) < length:
            outcome.cut = len(head) + len(body)
            return
        message = _message(body) if zlib.crc32(body) == checksum else None
        if message is None:
            outcome.damaged += 1
            continue
        outcome.messages += 1
        yield message


def _message(body: bytes) -> SpooledMessage | None:
    partition, topic_length, key_length = _BODY.unpack_from(body)
    key_at = _BODY.size + topic_length
    value_at = key_at + key_length
    try:
        topic = body[_BODY.size : key_at].decode()
    except UnicodeDecodeError:
        return None
    return SpooledMessage(topic, partition, body[key_at:value_at], body[value_at:])


# -- who may send a file ------------------------------------------------------------------------------


@dataclass
class _OwnFiles:
    """Files that this process has open. A POSIX lock ends when any handle of its process is closed."""

    paths: set[str] = field(default_factory=set)


own_files: Final = _OwnFiles()


def waiting_files(folder: str, suffix: str = SUFFIX) -> list[str]:
    """The paths of the files in `folder` that wait, oldest first; none where there is no folder."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(suffix)]
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names, key=lambda name: name.split("_")[1:])]


def lock(file: IO[bytes]) -> bool | None:
    """Lock a file for this process: True; False where another has it; None where nobody can."""
    try:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return None
    except OSError as error:
        return False if error.errno in _LOCKED_BY_OTHERS else None
    return True


class SpoolFile:
    """A file that this process may send and remove."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.head = read_head(file)
        self.outcome = ReadOutcome()
        self._begin = file.tell()

    @property
    def is_damaged(self) -> bool:
        """Is a part of it no message? Known once its messages were read."""
        return bool(self.outcome.damaged) or (self.head is None and not self._is_empty())

    def messages(self) -> Iterator[SpooledMessage]:
        """All of its messages, from the first one. Raises OSError."""
        self._file.seek(self._begin)
        self.outcome = ReadOutcome()
        return read_messages(self._file, self.outcome) if self.head is not None else iter(())

    def remove(self) -> None:
        """Its messages were delivered: remove it, or keep what is damaged under another name."""
        if self.is_damaged:
            self._keep_damaged()
        else:
            self._remove_whole()

    def _is_empty(self) -> bool:
        """Was its writer killed at once?"""
        return self._file.seek(0, os.SEEK_END) == 0

    def _keep_damaged(self) -> None:
        raise NotImplementedError

    def _remove_whole(self) -> None:
        raise NotImplementedError


def damaged_name(path: str) -> str:
    """The name of what is left of a file since a part of it is damaged."""
    return path.removesuffix(SUFFIX) + DAMAGED


class ClaimedFile(SpoolFile):
    """A file of a folder. Use it as a context manager."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        super().__init__(file)
        self.path = path

    def _keep_damaged(self) -> None:
        os.replace(self.path, damaged_name(self.path))

    def _remove_whole(self) -> None:
        os.unlink(self.path)

    def __enter__(self) -> ClaimedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        own_files.paths.discard(self.path)


def claim(path: str) -> ClaimedFile | None:
    """Claim a file for this process; None where another one has it, or it is gone. Never waits.

    Raises OSError where it cannot be read.
    """
    if path in own_files.paths:
        return None
    own_files.paths.add(path)
    file: IO[bytes] | None = None
    try:
        file = open(path, "r+b")  # noqa: SIM115 - closed by ClaimedFile
        is_locked = lock(file)
        status = os.fstat(file.fileno())
        is_free = is_locked or (is_locked is None and time.time() - status.st_mtime > UNLOCKABLE_FREE_S)
        # It may have been sent and removed between `open` and `lock`.
        if is_free and os.stat(path).st_ino == status.st_ino:
            return ClaimedFile(path, file)
    except FileNotFoundError:
        pass
    except BaseException:
        _let_go(path, file)
        raise
    _let_go(path, file)
    return None


def _let_go(path: str, file: IO[bytes] | None) -> None:
    if file is not None:
        file.close()
    own_files.paths.discard(path)
