"""The sandboxes of replays: a folder each, below `replays` in the home, for its user's eyes only.

Two replays at once have two. A process locks the sandbox that it works in; the kernel lets go of the lock
when it ends, however it ends. What cannot be written is one sentence that names the sandbox.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lineage_service.replays.errors import SandboxError
from spark_agent.contract.replay_notes import NOTES, read_notes
from spark_agent.contract.replay_spec import OUTPUTS, REPLAY_REPORT, SANDBOX_LOCK

__all__ = [
    "FAILING_FILE",
    "INFLUENCE_FILE",
    "KEPT_S",
    "RESULT_FILE",
    "ROW_SET_FILE",
    "SIFT_FILE",
    "SPEC_FILE",
    "Sandbox",
    "Sandboxes",
]

SPEC_FILE, ROW_SET_FILE, RESULT_FILE = "spec.json", "rows.json", "result.json"
SIFT_FILE, INFLUENCE_FILE, FAILING_FILE = "sift.json", "influence.json", "failing.json"
STDOUT, STDERR, TEMPORARY = "stdout", "stderr", "tmp"
#: What belongs to one run of the command: a further run begins without.
_OF_RUN = (OUTPUTS, TEMPORARY, REPLAY_REPORT, NOTES, SPEC_FILE, STDOUT, STDERR, "checkpoint")
_ROUNDS, _KEEP = "rounds", "keep"
#: A sandbox that nobody asked to keep is there for so long, as what the store has of its replay.
KEPT_S = 86_400.0
#: Less free space than this is a full disk.
_LEAST_FREE = 32 << 20
_TRIES = 1_000


class Sandbox:
    """The folder of one replay. It is made with its lock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.id = folder, folder.name
        self.outputs = folder / OUTPUTS
        self.report = folder / REPLAY_REPORT
        self.spec = folder / SPEC_FILE
        self.stdout, self.stderr = folder / STDOUT, folder / STDERR

    def write(self, name: str, data: Any) -> Path:
        """A file of JSON, whole or not at all. Raises SandboxError."""
        path = self.folder / name
        with self._writable():
            draft = path.with_name(f"{name}.draft")
            with open(draft, "w", encoding="utf-8", opener=_private) as file:
                json.dump(data, file, ensure_ascii=False)
            draft.replace(path)
        return path

    def write_text(self, name: str, data: bytes) -> None:
        """Raises SandboxError."""
        with self._writable():
            draft = self.folder / f"{name}.draft"
            with open(draft, "wb", opener=_private) as file:
                file.write(data)
            draft.replace(self.folder / name)

    def read(self, name: str) -> Any:
        """None where there is no such file, or it is not JSON."""
        try:
            return json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def notes(self) -> dict[str, list[Any]]:
        """What processes of the replay have noted, by kind."""
        try:
            return read_notes(str(self.folder))
        except OSError:
            return {}

    def discard(self) -> None:
        """Remove it: nothing of use came into it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self) -> None:
        """It stays until it is removed by its name."""
        with self._writable():
            (self.folder / _KEEP).touch(0o600)

    def next_round(self, number: int) -> None:
        """Put away what the run `number` has left. Raises SandboxError."""
        with self._writable():
            place = self.folder / _ROUNDS / str(number)
            place.mkdir(0o700, parents=True)
            for name in _OF_RUN:
                with suppress(FileNotFoundError):
                    (self.folder / name).rename(place / name)
            self._make_folders()

    def _make_folders(self) -> None:
        for name in (OUTPUTS, TEMPORARY):
            (self.folder / name).mkdir(0o700, exist_ok=True)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SandboxError(
                f"the sandbox {self.folder} cannot be written ({error.strerror or error}): make room, or "
                f"remove it with `lineage replay --clean {self.id}`"
            ) from None


class Sandboxes:
    """All of one home."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(os.path.abspath(home)) / "replays"  # noqa: PTH100 - resolve() follows links

    @contextmanager
    def new(self) -> Iterator[Sandbox]:
        """A new one, locked while the block runs. Raises SandboxError."""
        sandbox, lock = self._made()
        try:
            yield sandbox
        finally:
            os.close(lock)

    def _made(self) -> tuple[Sandbox, int]:
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
            if free < _LEAST_FREE:
                raise SandboxError(
                    f"no replay can be made in {self.folder}: its disk is full ({free >> 20} MB are free). "
                    "Make room: `lineage replay --clean` removes earlier sandboxes"
                )
            sandbox = Sandbox(self._claimed())
            lock = os.open(sandbox.folder / SANDBOX_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sandbox._make_folders()
        except OSError as error:
            raise SandboxError(
                f"no sandbox can be made in {self.folder} ({error.strerror or error}): make room and make it "
                "writable, or give another folder with --home"
            ) from None
        return sandbox, lock

    def _claimed(self) -> Path:
        """The folder of the next number. Who makes it has it."""
        number = max((int(path.name) for path in self._folders()), default=0)
        for _ in range(_TRIES):
            number += 1
            folder = self.folder / str(number)
            try:
                folder.mkdir(0o700)
            except FileExistsError:
                continue
            return folder
        raise SandboxError(f"no sandbox can be made in {self.folder}: {number} of them are there")

    def _folders(self) -> list[Path]:
        """Those that are there, by their numbers."""
        try:
            paths = list(self.folder.iterdir())
        except OSError:
            return []
        own = [
            path
            for path in paths
            if path.name.isascii() and path.name.isdigit() and path.is_dir() and not path.is_symlink()
        ]
        return sorted(own, key=lambda path: int(path.name))

    def all(self) -> list[Sandbox]:
        """The newest first."""
        return [Sandbox(folder) for folder in reversed(self._folders())]

    def clean(self, id: str | None = None) -> list[str]:
        """Remove one, or all that nobody works in; the ids of those that are gone. Raises SandboxError."""
        chosen = [sandbox for sandbox in self.all() if id in (None, sandbox.id)]
        if id is not None and not chosen:
            raise SandboxError(f"there is no replay {id[:80]!r} in {self.folder}")
        gone = []
        for sandbox in reversed(chosen):
            if self._remove(sandbox):
                gone.append(sandbox.id)
            elif id is not None:
                raise SandboxError(f"replay {id} is running: end it first, with Ctrl-C where it was started")
        return gone

    def expire(self, now: float | None = None) -> list[str]:
        """Remove what is older than a day, but for what was asked to be kept. Raises SandboxError."""
        now = time.time() if now is None else now
        gone = []
        for sandbox in self.all():
            with suppress(FileNotFoundError):
                age = now - sandbox.folder.stat().st_mtime
                if age > KEPT_S and not (sandbox.folder / _KEEP).exists() and self._remove(sandbox):
                    gone.append(sandbox.id)
        return gone

    def _remove(self, sandbox: Sandbox) -> bool:
        """False where somebody works in it."""
        try:
            lock = os.open(sandbox.folder / SANDBOX_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(sandbox.folder)
        except BlockingIOError:
            return False
        except OSError as error:
            raise SandboxError(
                f"the sandbox {sandbox.folder} cannot be removed ({error.strerror or error}): remove "
                "it by hand"
            ) from None
        finally:
            os.close(lock)
        return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
