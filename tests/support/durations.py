"""How long each file of tests takes: recorded with `--record-durations`, and used to begin with the longest.

xdist gives whole files to its workers (`--dist loadfile`). One that takes minutes and is begun last keeps a
single worker busy while the others have nothing left to do.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

#: Seconds by file, of a run of all tests. A file's path is relative to the folder of the tests.
DURATIONS = Path(__file__).parents[1] / "durations.json"
#: What a file is taken for that no run has recorded.
UNKNOWN_S = 30.0
#: Files that take less than this are not recorded: their order does not matter.
LEAST_S = 1.0


def recorded() -> Mapping[str, float]:
    return json.loads(DURATIONS.read_text("utf-8")) if DURATIONS.exists() else {}


def longest_first(items: list[pytest.Item], folder: Path) -> None:
    """Sort tests by the duration of their files. Tests of one file stay together, in their order."""
    seconds = recorded()
    files = {item.path for item in items}
    order = sorted(files, key=lambda path: (-_seconds(path, folder, seconds), path))
    positions = {path: position for position, path in enumerate(order)}
    items.sort(key=lambda item: positions[item.path])


def _seconds(path: Path, folder: Path, seconds: Mapping[str, float]) -> float:
    if not path.is_relative_to(folder):
        return 0.0
    if path.relative_to(folder).parts[0] == "unit":  # not recorded: each takes moments
        return seconds.get(str(path.relative_to(folder)), 0.0)
    return seconds.get(str(path.relative_to(folder)), UNKNOWN_S)


class Recorder:
    """A plugin of pytest that adds up the seconds of each file and writes them at the end of the session.

    A file that was not run keeps what an earlier run recorded; one that is gone is dropped.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path = (self._folder.parent / report.nodeid.split("::", 1)[0]).relative_to(self._folder)
        self._seconds[str(path)] += report.duration

    def pytest_sessionfinish(self) -> None:
        merged = {**recorded(), **self._seconds}
        DURATIONS.write_text(_dump(self._existing(merged.items())), "utf-8")

    def _existing(self, durations: Iterable[tuple[str, float]]) -> dict[str, float]:
        return {
            path: round(seconds, 1)
            for path, seconds in durations
            if seconds >= LEAST_S and (self._folder / path).exists()
        }


def _dump(durations: Mapping[str, float]) -> str:
    longest = sorted(durations.items(), key=lambda item: (-item[1], item[0]))
    return json.dumps(dict(longest), indent=0) + "\n"
