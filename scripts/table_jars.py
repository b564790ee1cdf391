"""The jars of a table format, which jobs of tests and benchmarks need: fetched by a lock, into .cache."""

from __future__ import annotations

from pathlib import Path

from lineage_service.devstack.download import fetch
from lineage_service.devstack.jars import parse_lock
from lineage_service.devstack.progress import Quiet
from lineage_service.settings import Settings
from scripts.environment import ROOT


def jars_of(lock: Path) -> list[Path]:
    """The files that the lock names. What is not there yet is fetched; raises what `fetch` does."""
    jars = parse_lock(lock.read_text(), lock.name)
    folder = ROOT / ".cache" / "lineage" / "jars"
    fetch(list(jars), folder, Settings().maven_repository, Quiet())
    return [folder / jar.file_name for jar in jars]
