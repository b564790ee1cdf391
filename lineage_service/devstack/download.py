"""Brings jars into a folder: from this machine's Maven repository where it has them, else from a remote one.

A file with a jar's name in that folder is that jar, whole and verified by size and SHA-256: it is written
elsewhere and moved there. So a download that was cut goes on with the jars that are missing, and several
stacks may share the folder: of two processes that lack jars the second waits for the first. Remote access is
jgo's, a Maven client in Python.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from lineage_service.devstack.errors import DownloadError
from lineage_service.devstack.jars import Jar
from lineage_service.devstack.progress import Reporter

_THREADS = 8
_TRIES = 4
_FIRST_PAUSE_S = 0.5  # and twice as long each time
_TIMEOUT_S = 15
_SCRATCH_PREFIX = ".incoming-"
_LOCK = ".fetch.lock"
#: No download takes this long: a scratch folder of this age belongs to a process that was killed.
_SCRATCH_AGE_S = 6 * 3600


def fetch(jars: Sequence[Jar], folder: Path, repository: str, reporter: Reporter) -> list[Path]:
    """The jars' files in `folder`, in the order of `jars`; what is missing or damaged is fetched.

    `repository` is the root URL of a Maven repository, "" for the public one. Raises DownloadError, and
    OSError when `folder` cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_dead_scratch(folder)
    if _missing(jars, folder):
        with _alone(folder, reporter):
            missing = _missing(jars, folder)  # what no other process has brought in the meantime
            if missing:
                with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH_PREFIX) as scratch:
                    _Download(missing, folder, Path(scratch), repository).run(reporter)
    return [folder / jar.file_name for jar in jars]


def _missing(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="verify") as threads:
        is_whole = list(threads.map(lambda jar: jar.is_content_of(folder / jar.file_name), jars))
    return [jar for jar, whole in zip(jars, is_whole, strict=True) if not whole]


@contextmanager
def _alone(folder: Path, reporter: Reporter) -> Iterator[None]:
    """Inside, no other process fetches into this folder. The kernel lets go when the holder ends."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _take(lock):
            with reporter.waiting("Another process is fetching the same jars") as tick:
                while not _take(lock):
                    tick(0)
                    time.sleep(0.2)
        yield
    finally:
        os.close(lock)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_dead_scratch(folder: Path) -> None:
    for scratch in folder.glob(f"{_SCRATCH_PREFIX}*"):
        if time.time() - scratch.stat().st_mtime > _SCRATCH_AGE_S:
            shutil.rmtree(scratch, ignore_errors=True)


class _CancelledError(Exception):
    """Another jar failed or the user gave up; ends the threads that still download."""


class _Download:
    """One run of `fetch`: some threads, one count of bytes, one end."""

    def __init__(self, jars: Sequence[Jar], folder: Path, scratch: Path, repository: str) -> None:
        # Not at the top: jgo and requests take a third of a second to import, and most starts fetch nothing.
        from jgo.constants import MAVEN_CENTRAL_URL, default_maven_repo
        from jgo.maven import MavenContext, PythonResolver

        # jgo compares with the repository's own SHA-1 and warns; this module compares with the lock and acts.
        logging.getLogger("jgo").setLevel(logging.ERROR)
        self._jars = jars
        self._folder = folder
        self._scratch = scratch
        self._local = Path(default_maven_repo())
        self._repository = (repository or MAVEN_CENTRAL_URL).rstrip("/")
        self._context = MavenContext(
            resolver=PythonResolver(progress_callback=self._watched),
            repo_cache=scratch,
            local_repos=[],
            remote_repos={"stack": self._repository},
            timeout=_TIMEOUT_S,
        )
        self._cancelled = threading.Event()
        # Each file's bytes so far, written by the one thread that brings it.
        self._arrived = {jar.file_name: 0 for jar in jars}

    def run(self, reporter: Reporter) -> None:
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="download")
        try:
            futures = {threads.submit(self._bring, jar) for jar in self._jars}
            total = sum(jar.size for jar in self._jars)
            with reporter.waiting(f"Fetching {len(self._jars)} jars", total) as tick:
                shown, pending = 0, futures
                while pending:
                    done, pending = wait(pending, timeout=0.3, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                    arrived = sum(self._arrived.values())
                    tick(arrived - shown)
                    shown = arrived
        finally:
            self._cancelled.set()
            threads.shutdown(cancel_futures=True)

    def _bring(self, jar: Jar) -> None:
        """Puts one jar into the folder. Raises DownloadError when every try has failed."""
        local = self._local / jar.repository_path
        scratch = self._scratch / jar.file_name
        if jar.is_content_of(local):
            shutil.copyfile(local, scratch)
        else:
            self._download(jar).replace(scratch)
        scratch.replace(self._folder / jar.file_name)
        self._arrived[jar.file_name] = jar.size

    def _download(self, jar: Jar) -> Path:
        reason = ""
        for number in range(_TRIES):
            if number and self._cancelled.wait(_FIRST_PAUSE_S * 2 ** (number - 1)):
                raise _CancelledError
            try:
                path = self._download_once(jar)
            except OSError as error:  # every error of requests is one
                reason = _reason(error)
            except RuntimeError:  # jgo's word for every answer that is not 200
                reason = "it does not serve that file"
            else:
                if jar.is_content_of(path):
                    return path
                reason = "what it serves is not the file that the lock names"
        raise DownloadError(
            f"cannot download {jar.file_name} from {self._repository}: {reason}. The first `lineage up` "
            "needs the network: check it and its proxy, or give a Maven repository that this machine reaches "
            "with --maven-repository or LINEAGE_MAVEN_REPOSITORY. What has arrived is kept"
        )

    def _download_once(self, jar: Jar) -> Path:
        (self._scratch / jar.repository_path).unlink(missing_ok=True)  # of the try before
        component = self._context.project(jar.group, jar.artifact).at_version(jar.version)
        return Path(component.artifact(jar.classifier, "jar").resolve())

    @contextmanager
    def _watched(self, file_name: str, size: int) -> Iterator[Callable[[int], None]]:
        """jgo's progress callback: called for each file, gives what is called for each chunk of it."""
        self._arrived[file_name] = 0

        def update(count: int) -> None:
            if self._cancelled.is_set():
                raise _CancelledError
            self._arrived[file_name] += count

        yield update


def _reason(error: OSError) -> str:
    """A short word for one of requests' errors, whose own texts name a hundred inner things."""
    from requests import exceptions

    for kind, word in [
        (exceptions.ProxyError, "the proxy does not answer"),
        (exceptions.SSLError, "its certificate cannot be verified"),
        (exceptions.Timeout, f"no answer within {_TIMEOUT_S} s"),
        (exceptions.ConnectionError, "no connection"),
        (exceptions.RequestException, type(error).__name__),
    ]:
        if isinstance(error, kind):
            return word
    raise error  # not the network: the disk is full, the folder is gone
