"""The files that jobs read and wrote, wherever they are: this machine, S3, Google's store, HDFS.

Paths are those that Spark gives them. One file can be asked for its state and opened for reading; what goes
wrong is one error, whose text says why and what to do. The one module that knows where a file is; knows
nothing of rows.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from lineage_service.errors import LineageError
from spark_agent.contract.dataset_names import remote_parts

__all__ = ["FileState", "FileSystems", "UnreadableError", "is_local"]

#: Of a remote file this much is asked for at once: where single rows are read, and where all of it is.
_REMOTE_PIECE = 1 << 18
_REMOTE_STRETCH = 1 << 23
_CONNECT_S, _REQUEST_S = 5.0, 30.0
#: A store that did not answer is not asked again for so long.
_UNREACHABLE_S = 15.0
_S3 = frozenset(("s3", "s3a", "s3n"))
_GOOGLE = frozenset(("gs", "gcs"))
_HADOOP = frozenset(("hdfs", "viewfs"))


class UnreadableError(LineageError):
    """A file cannot be read: why, and what to do."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What distinguishes one state of a file from another. Bytes, and Unix time in nanoseconds."""

    size: int
    modified_ns: int | None

    @property
    def modified(self) -> int | None:
        """In milliseconds, as jobs note it."""
        return None if self.modified_ns is None else self.modified_ns // 1_000_000


class FileSystems:
    """Opens files by their paths. Threads may share it; connections are made once, and reused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], Any] = {}
        self._unreachable: dict[tuple[str, str], tuple[float, str]] = {}

    def state(self, path: str) -> FileState:
        """Raises UnreadableError, also where there is something else than a file."""
        if is_local(path):
            with _readable():
                status = os.stat(path)  # noqa: PTH116 - a path of Spark's is a text, whatever stands in it
                return _local_state(status)
        with self.connected(path) as (system, place):
            from pyarrow.fs import FileType

            info = system.get_file_info([place])[0]
        if info.type == FileType.File:
            return FileState(int(info.size), info.mtime_ns)
        if info.type == FileType.Directory:
            raise UnreadableError(_NO_FILE)
        raise UnreadableError(_GONE)

    @contextmanager
    def opened(self, path: str, *, at_length: bool) -> Iterator[BinaryIO]:
        """The file's bytes, seekable. `at_length`: much of it will be read, one piece after the other.

        Raises UnreadableError, in the block too.
        """
        if is_local(path):
            with _readable():
                file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - closed below
            with file, _readable(while_open=True):
                _local_state(os.fstat(file.fileno()))
                yield file
            return
        with self.connected(path) as (system, place):
            source = system.open_input_file(place)
        with source:
            buffer = _REMOTE_STRETCH if at_length else _REMOTE_PIECE
            yield io.BufferedReader(_Remote(source, _parts(path)[0]), buffer)

    @contextmanager
    def connected(self, path: str) -> Iterator[tuple[Any, str]]:
        """(pyarrow's file system, the path in it). Raises UnreadableError, in the block too."""
        scheme, authority, key = _parts(path)
        store = (scheme, authority)
        with self._lock:
            until, why = self._unreachable.get(store, (0.0, ""))
        if time.monotonic() < until:
            raise UnreadableError(why)
        try:
            with _readable(store[0]):
                system, in_authority = self._system(store)
                yield system, f"/{key}" if in_authority else f"{authority}/{key}"
        except _UnreachableError as error:
            with self._lock:
                self._unreachable[store] = time.monotonic() + _UNREACHABLE_S, str(error)
            raise

    def _system(self, store: tuple[str, str]) -> tuple[Any, bool]:
        scheme, authority = store
        is_hadoop = scheme in _HADOOP
        make = _MAKERS.get(scheme)
        if make is None:
            raise UnreadableError(
                f"the file cannot be read (this service reads no {scheme}:// paths, only local files, "
                "s3, s3a, gs and hdfs): look at it with Spark"
            )
        # Making one may take long (libhdfs starts a JVM), so it is not done twice at the same time.
        with self._lock:
            if store not in self._made:
                self._made[store] = make(scheme, authority)
            return self._made[store], is_hadoop


class _UnreachableError(UnreadableError):
    """The store did not answer, so it is left alone for a while."""


class _Remote(io.RawIOBase):
    """pyarrow's file as one of Python's, so that Python's buffer can stand before it."""

    def __init__(self, source: Any, scheme: str) -> None:
        self._source, self._scheme = source, scheme

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _readable(self._scheme):  # here, where it cannot be taken for an error of what decompresses
            return cast(int, self._source.readinto(buffer))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return cast(int, self._source.seek(offset, whence))

    def tell(self) -> int:
        return cast(int, self._source.tell())


def is_local(path: str) -> bool:
    return remote_parts(path) is None


def _parts(path: str) -> tuple[str, str, str]:
    """(scheme, authority, the rest) of a remote path."""
    parts = remote_parts(path)
    assert parts is not None, path
    return parts


# -- connections ------------------------------------------------------------------------------------


def _s3(scheme: str, bucket: str) -> Any:
    """With the names of the environment that the flow store's library has (docs/operations.md)."""
    from pyarrow.fs import S3FileSystem

    options: dict[str, Any] = {"connect_timeout": _CONNECT_S, "request_timeout": _REQUEST_S}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region:
        options["region"] = region
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        parsed = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        options |= {"scheme": parsed.scheme, "endpoint_override": parsed.netloc + parsed.path.rstrip("/")}
        options.setdefault("region", "us-east-1")  # else a request to Amazon would ask for it
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true"):
        options["anonymous"] = True
    if os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() in ("1", "true"):
        options["force_virtual_addressing"] = True
    return S3FileSystem(**options)


def _google(scheme: str, bucket: str) -> Any:
    from pyarrow.fs import GcsFileSystem

    # Else it tries for a quarter of an hour.
    return GcsFileSystem(retry_time_limit=timedelta(seconds=_REQUEST_S))


def _hadoop(scheme: str, authority: str) -> Any:
    from pyarrow.fs import HadoopFileSystem

    host, _, port = authority.rpartition(":") if ":" in authority else (authority, "", "0")
    # libhdfs takes the name node of Hadoop's configuration where the path names none.
    address = f"{scheme}://{host}" if scheme == "viewfs" else host or "default"
    try:
        return HadoopFileSystem(address, int(port or 0))
    except (OSError, ValueError) as error:
        raise UnreadableError(
            f"the file cannot be read ({scheme}:// needs Hadoop's libhdfs and a JVM in this service, and "
            f"{_short(error)}): set HADOOP_HOME or ARROW_LIBHDFS_DIR, JAVA_HOME, and CLASSPATH to what "
            "`hadoop classpath --glob` prints, and restart the service"
        ) from None


_MAKERS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(_S3, _s3),
    **dict.fromkeys(_GOOGLE, _google),
    **dict.fromkeys(_HADOOP, _hadoop),
}


# -- what goes wrong --------------------------------------------------------------------------------

_GONE = "the file cannot be read any more (it is gone): put it back at this path to see its rows"
_NO_FILE = "the file cannot be read any more (there is no file at this path now but a folder or a device)"
_DENIED = "the file cannot be read (permission denied): let the user that runs this service read it"
_DENIED_STORE = (
    "the file cannot be read (the store denied access): give this service credentials that may read it, "
    "see operations.md"
)


@contextmanager
def _readable(scheme: str = "", *, while_open: bool = False) -> Iterator[None]:
    """What goes wrong with a file in the block becomes an UnreadableError.

    `while_open`: the block is the reader's, and its ValueErrors are its own.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise UnreadableError(_GONE) from None
    except IsADirectoryError:
        raise UnreadableError(_NO_FILE) from None
    except PermissionError:
        raise UnreadableError(_DENIED_STORE if scheme else _DENIED) from None
    except OSError as error:
        raise _other(error, scheme) from None
    except ValueError as error:  # of a path with a zero in it, or of pyarrow about what it was given
        if while_open:
            raise
        raise _other(error, scheme) from None


def _other(error: Exception, scheme: str) -> UnreadableError:
    text = str(error)
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
        return UnreadableError(_GONE)
    if scheme and any(
        sign in text for sign in ("ACCESS_DENIED", "Forbidden", "HTTP status 403", "SIGNATURE")
    ):
        return UnreadableError(_DENIED_STORE)
    if scheme and any(sign in text for sign in ("NO_SUCH", "Not Found", "HTTP status 404")):
        return UnreadableError(_GONE)
    if scheme and any(sign in text for sign in ("NETWORK_CONNECTION", "curlCode", "Connection refused")):
        return _UnreachableError(
            f"the file cannot be read (its store does not answer: {_short(error)}): check the address and "
            "the network, and ask again"
        )
    return UnreadableError(f"the file cannot be read ({_short(error)})")


def _short(error: Exception) -> str:
    """One line of an error that may be a page."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:120] or type(error).__name__


def _without_waiting(path: str, flags: int) -> int:
    """For open(): a pipe that took the place of the file would wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _local_state(status: os.stat_result) -> FileState:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(_NO_FILE)
    return FileState(status.st_size, status.st_mtime_ns)
