"""The jars that a server is made of, as its lock file names them.

A lock (`kafka.lock`, `neo4j.lock`) has one jar a line, `group:artifact:version[:classifier] sha256 size`; it
is written by scripts/relock.py. Knows nothing of downloading.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from lineage_service.devstack.errors import LockError

_LINE = re.compile(
    r"(?P<group>[\w.-]+):(?P<artifact>[\w.-]+):(?P<version>[\w.-]+)(:(?P<classifier>[\w.-]+))?"
    r" (?P<sha256>[0-9a-f]{64}) (?P<size>[0-9]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One jar by its Maven coordinate, with what its content must be. `size` in bytes."""

    group: str
    artifact: str
    version: str
    classifier: str  # "" for most
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """`artifact-version[-classifier].jar`, as in a Maven repository."""
        return "-".join(filter(None, [self.artifact, self.version, self.classifier])) + ".jar"

    @property
    def repository_path(self) -> Path:
        """The jar's place below the root of a Maven repository."""
        return Path(*self.group.split("."), self.artifact, self.version, self.file_name)

    def is_content_of(self, path: Path) -> bool:
        """True if the file at `path` is this jar, byte for byte (by size and SHA-256)."""
        try:
            if path.stat().st_size != self.size:
                return False
            with path.open("rb") as file:
                digest = hashlib.sha256()
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError:
            return False
        return digest.hexdigest() == self.sha256


def parse_lock(text: str, name: str) -> tuple[Jar, ...]:
    """The jars of a lock file's text, in its order. `name` is for the message.

    Raises LockError for a line that is not `group:artifact:version[:classifier] sha256 size`.
    """
    jars = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise LockError(
                f"{name}, line {number}: {line!r} is not `group:artifact:version[:classifier] sha256 size`; "
                "install lineage-master again"
            )
        jars.append(
            Jar(
                group=match["group"],
                artifact=match["artifact"],
                version=match["version"],
                classifier=match["classifier"] or "",
                sha256=match["sha256"],
                size=int(match["size"]),
            )
        )
    return tuple(jars)


def read_lock(program: str) -> tuple[Jar, ...]:
    """The jars of `program`, `kafka` or `neo4j`."""
    name = f"{program}.lock"
    return parse_lock(resources.files(__package__).joinpath(name).read_text(), name)
