"""Where the flow store is: a folder of this machine, or an object store by its URL (s3://, gs://, az://).

Delta's library reads and writes both, with options from the environment under its own names. DuckDB and
pyarrow want files: those of an object store are copied into a folder of this machine, each once, since a file
of a Delta table never changes. The one module that knows the difference; knows nothing of tables and rows.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, FileSystem, FileType, PyFileSystem

from lineage_service.store.fsync import sync_commit, sync_recent

__all__ = ["StoreLocation"]

#: Copies that nothing asked for in so long go, when others come.
KEEP_COPIES_S = 86_400.0
_COPIES_AT_ONCE = 8
_CHUNK = 1 << 20


class StoreLocation:
    """One flow store's place. Threads may share it, and processes the folder of copies."""

    def __init__(self, where: str | Path, copies: Path | None = None) -> None:
        """`copies` is the folder for what an object store's files become here; None: a temporary one."""
        text = str(where)
        scheme, separator, _ = text.partition("://")
        self.is_local = not separator or scheme == "file"
        if self.is_local:
            self.uri = str(Path(unquote(urlsplit(text).path) if separator else text).absolute())
        else:
            self.uri = text.rstrip("/")
        self._copies = copies
        self._swept_at = 0.0
        self._lock = threading.Lock()

    def table(self, name: str) -> str:
        """A table's folder or URL."""
        return f"{self.uri}/{name}"

    def make(self, name: str) -> None:
        """Make a table's folder. Object stores have none. Raises OSError."""
        if self.is_local:
            Path(self.table(name)).mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        """Whether the table is there, whole or damaged. Makes nothing."""
        if self.is_local:
            return Path(self.table(name)).exists()
        return DeltaTable.is_deltatable(self.table(name))

    def filesystem(self, name: str) -> FileSystem:
        """A table's files, by their paths within it."""
        return PyFileSystem(DeltaStorageHandler(self.table(name)))

    def sync(self, name: str, versions: Iterable[int]) -> None:
        """Bring a table's commits onto the disk. Object stores keep what they took. Raises OSError."""
        if self.is_local:
            for version in versions:
                sync_commit(Path(self.table(name)), version)

    def sync_recent(self, name: str, newest: int, synced: int) -> None:
        """The same with those after `synced` that may not be there yet, whoever made them."""
        if self.is_local:
            sync_recent(Path(self.table(name)), newest, synced)

    def files(self, name: str, uris: Sequence[str]) -> list[str]:
        """Paths on this machine of files that a snapshot of the table names. Raises OSError."""
        if self.is_local:
            return self.uris(name, uris)
        folder = self._folder()
        if not uris:  # of a table that may not be there
            return []
        with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            copied = partial(_copied, folder, self.filesystem(name))
            return list(pool.map(copied, uris))

    def uris(self, name: str, uris: Sequence[str]) -> list[str]:
        """The same, where they are: paths on this machine, or URLs in an object store."""
        # Delta writes a space in a folder's name as %20, but not what stands below it.
        return [f"{self.table(name)}/{_within(uri)}" for uri in uris]

    def remove_parts(self, name: str, prefix: str) -> None:
        """Remove all files of a table in parts that begin so, as `key=3f`: also those that nothing names any
        more, and that old readers may still read. Raises OSError.
        """
        if self.is_local:
            for folder in Path(self.table(name)).glob(f"{prefix}*"):
                shutil.rmtree(folder)
            return
        system = self.filesystem(name)
        for info in system.get_file_info(FileSelector("", recursive=True)):
            if info.type == FileType.File and info.path.lstrip("/").startswith(prefix):
                system.delete_file(info.path)

    def _folder(self) -> Path:
        with self._lock:
            if self._copies is None:
                self._copies = Path(tempfile.mkdtemp(prefix="lineage-copies-"))
                weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
            self._copies.mkdir(parents=True, exist_ok=True, mode=0o700)
            if time.time() > self._swept_at + KEEP_COPIES_S / 24:
                self._swept_at = time.time()
                _sweep(self._copies, self._swept_at - KEEP_COPIES_S)
            return self._copies


def _sweep(folder: Path, before: float) -> None:
    """Remove what was last asked for before then. Other processes may do so at the same time."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()


def _copied(folder: Path, source: FileSystem, uri: str) -> str:
    """The path of a file's copy, made if it is missing: written aside, so that it is there whole or not."""
    target = folder / (hashlib.sha256(uri.encode()).hexdigest()[:40] + ".parquet")
    try:
        os.utime(target)
    except FileNotFoundError:
        part = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        with source.open_input_stream(_within(uri)) as stream, part.open("wb") as file:
            shutil.copyfileobj(stream, file, _CHUNK)
            # Else a power cut may leave the name and nothing in it, which is then taken for the file.
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    return str(target)


def _within(uri: str) -> str:
    """A file's path in its table, which has one level of partitions."""
    return "/".join(uri.split("/")[-2:])
