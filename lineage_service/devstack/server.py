"""What the stack knows of a server: the seam between starting processes and being Kafka or Neo4j."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one server lives. All paths are absolute."""

    folder: Path  # its configuration and data
    logs: Path  # shared by all servers of the home

    @property
    def mark(self) -> str:
        """Stands on the server's command line, so that its process can be recognised."""
        return f"-Dlineage.server={self.folder}"


class Server(Protocol):
    """One program of the stack."""

    @property
    def name(self) -> str:
        """Its name in the state file and in `--only`, and of its lock file."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def version(self) -> str: ...

    @property
    def ports(self) -> Mapping[str, int]:
        """Each port that it listens on by purpose, with the well-known number."""

    def addresses(self, ports: Mapping[str, int]) -> dict[str, str]:
        """What clients connect to."""

    def logs(self, place: Place) -> Sequence[Path]:
        """Where it says why it died; the first is what its process prints."""

    def prepare(self, java: Path, jars: Sequence[Path], place: Place, ports: Mapping[str, int]) -> list[str]:
        """Writes its configuration and answers with the command that starts it.

        Raises ServerError when its data folder cannot be made.
        """

    def is_ready(self, addresses: Mapping[str, str]) -> bool:
        """True once it answers a real request. Gives up within a few seconds."""


def java_command(
    java: Path, place: Place, options: Sequence[str], class_path: Sequence[Path | str], main: Sequence[str]
) -> list[str]:
    """A short command for a long class path: all but the mark goes into an argument file (JDK 9+)."""
    crash_log = place.logs / f"{place.folder.name}-crash.log"
    arguments = [
        *options,
        f"-XX:ErrorFile={crash_log}",
        # A server that lives on after this answers some requests and not others. Dead is better: `up` starts
        # it again.
        "-XX:+ExitOnOutOfMemoryError",
        "-cp",
        ":".join(map(str, class_path)),
        *main,
    ]
    file = place.folder / "java.args"
    file.write_text("".join(f'"{_escape(argument)}"\n' for argument in arguments))
    return [str(java), place.mark, f"@{file}"]


def _escape(argument: str) -> str:
    return argument.replace("\\", "\\\\").replace('"', '\\"')
