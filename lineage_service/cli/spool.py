"""`lineage spool`: what agents could not deliver and put on a disk: list it, send it.

A folder may be that of this machine, or one that machines share; a URL names one in an object store. Files
that a running process still writes are left to it. Twice is harmless: consumers drop what they have.
"""

from __future__ import annotations

import argparse
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lineage_service.errors import LineageError
from lineage_service.kafka import client
from lineage_service.kafka.spooled_messages import SpooledMessages
from lineage_service.tracing.files.file_systems import FileSystems, is_local
from spark_agent.contract import spool_files
from spark_agent.contract.spool_files import ReadOutcome, SpoolFile
from spark_agent.contract.spool_folder import spool_folder

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: So many files are sent together.
_GROUP = 100


class SpoolError(LineageError):
    """A spool cannot be read."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "deliver"), help="show what waits, or send it to Kafka")
    parser.add_argument(
        "spool",
        nargs="?",
        default="",
        metavar="DIR|URL",
        help="the folder, or its URL in an object store (default: the one that jobs of this user have here)",
    )
    parser.add_argument(
        "--to",
        default="",
        metavar="HOST:PORT",
        help="with deliver: brokers to send to (default: those that the jobs had, which the files name)",
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `lineage spool`. Raises LineageError."""
    where = options.spool or os.environ.get("LINEAGE_SPOOL_DIR", "")
    where = where or spool_folder("", os.environ.get("SPARK_LOCAL_DIRS", ""))
    spool = _Folder(where) if is_local(where) else _Remote(where)
    return _list(spool, where) if options.action == "list" else _deliver(settings, spool, where, options.to)


def _list(spool: _Folder | _Remote, where: str) -> int:
    files = spool.files()
    for path in files:
        with spool.opened(path) as file:
            if file is None:
                _say(f"{path}: a running process has it")
                continue
            applications = Counter(
                message.key.decode(errors="replace").partition("#")[0] for message in file.messages()
            )
            servers = "no file of a spool" if file.head is None else f"for Kafka at {file.head.servers}"
            content = ", ".join(f"{count} messages of {name}" for name, count in sorted(applications.items()))
            _say(f"{path}: {content or 'no messages'}; {servers}{_damage(file.outcome)}")
    if not files:
        _say(f"nothing waits in {where}")
    for path in spool.files(spool_files.DAMAGED):
        _say(f"{path}: what is damaged of a file whose other messages were sent")
    return 0


def _deliver(settings: Settings, spool: _Folder | _Remote, where: str, brokers: str) -> int:
    """0 where nothing waits any longer, but for files of running processes."""
    delivery = _Delivery(client.options(settings))
    files = spool.files()
    for begin in range(0, len(files), _GROUP):
        with ExitStack() as claims:
            opened: dict[str, list[tuple[str, SpoolFile]]] = {}  # by brokers
            for path in files[begin : begin + _GROUP]:
                file = claims.enter_context(spool.opened(path))
                if file is None:
                    _say(f"{path}: a running process has it, and sends it")
                else:
                    servers = brokers or (file.head.servers if file.head else "")
                    opened.setdefault(servers if file.head else "", []).append((path, file))
            for servers, group in opened.items():
                delivery.send(servers, group)
    _say(f"{delivery.sent} messages sent from {where}")
    if delivery.problems:
        raise SpoolError("; ".join(delivery.problems.values()))
    return 1 if delivery.damaged else 0


class _Delivery:
    """Files go in groups, so that a slow broker answers once for many of them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options` are further ones of the client: TLS, passwords."""
        self._options = options
        self._clusters: dict[str, SpooledMessages] = {}
        self.problems: dict[str, str] = {}  # by brokers: the next file for them would not leave either
        self.sent = self.damaged = 0

    def send(self, servers: str, files: Sequence[tuple[str, SpoolFile]]) -> None:
        """Send these files and remove them. `servers` is empty for what is no file of a spool."""
        if servers in self.problems:
            return
        try:
            if servers:
                self._cluster(servers).send(message for _, file in files for message in file.messages())
            for path, file in files:
                self._remove(path, file)
        except LineageError as error:
            self.problems[servers] = str(error)

    def _cluster(self, servers: str) -> SpooledMessages:
        if servers not in self._clusters:
            self._clusters[servers] = SpooledMessages(client.with_ports(servers), options=self._options)
        return self._clusters[servers]

    def _remove(self, path: str, file: SpoolFile) -> None:
        is_damaged = file.is_damaged
        file.remove()
        self.sent += file.outcome.messages
        if is_damaged:
            self.damaged += 1
            kept = spool_files.damaged_name(path)
            _say(f"{path}: kept as {kept}, since it is damaged{_damage(file.outcome)}")


def _damage(outcome: ReadOutcome) -> str:
    damaged = f"; {outcome.damaged} records are damaged" if outcome.damaged else ""
    return damaged + ("; the last record was not written to its end" if outcome.cut else "")


def _say(line: str) -> None:
    print(line)  # noqa: T201 - the answer


class _Folder:
    """A spool in a folder of this machine."""

    def __init__(self, folder: str) -> None:
        path = Path(folder.removeprefix("file://")).expanduser().absolute()
        if path.exists() and not path.is_dir():
            raise SpoolError(f"{folder} is no folder")
        self._folder = str(path)

    def files(self, suffix: str = spool_files.SUFFIX) -> list[str]:
        return spool_files.waiting_files(self._folder, suffix)

    @contextmanager
    def opened(self, path: str) -> Iterator[SpoolFile | None]:
        """The claimed file; None where a running process has it."""
        try:
            claimed = spool_files.claim(path)
        except OSError as error:
            raise SpoolError(f"{path} cannot be read: {error.strerror or error}") from None
        if claimed is None:
            yield None
            return
        with claimed:
            yield claimed


class _Remote:
    """A spool in an object store, where a file is there when it is whole, and nobody locks it."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._systems = FileSystems()

    def files(self, suffix: str = spool_files.SUFFIX) -> list[str]:
        from pyarrow.fs import FileSelector, FileType

        with self._systems.connected(self._url) as (system, folder):
            infos = system.get_file_info(FileSelector(folder, allow_not_found=True))
            bucket = folder.strip("/").partition("/")[0]
            if not infos and system.get_file_info([bucket])[0].type == FileType.NotFound:
                raise SpoolError(f"{self._url}: there is no {bucket}")
        names = sorted(info.base_name for info in infos if info.base_name.endswith(suffix))
        return [f"{self._url}/{name}" for name in names]

    @contextmanager
    def opened(self, path: str) -> Iterator[SpoolFile | None]:
        with self._systems.connected(path) as (system, place), system.open_input_stream(place) as stream:
            yield _RemoteFile(system, place, io.BytesIO(stream.read()))


class _RemoteFile(SpoolFile):
    """A file of an object store."""

    def __init__(self, system: Any, place: str, file: io.BytesIO) -> None:
        super().__init__(file)
        self._system, self._place = system, place

    def _keep_damaged(self) -> None:
        self._system.move(self._place, spool_files.damaged_name(self._place))

    def _remove_whole(self) -> None:
        self._system.delete_file(self._place)
