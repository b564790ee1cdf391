"""Fetches the jars of Kafka and Neo4j for the tests, beside other things that a fresh clone has to make."""

from __future__ import annotations

from pathlib import Path

from lineage_service.devstack.download import fetch
from lineage_service.devstack.jars import read_lock
from lineage_service.devstack.progress import Quiet
from lineage_service.settings import Settings

FOLDER = Path(__file__).parents[1] / ".cache" / "lineage" / "jars"


def main() -> None:
    jars = {jar.file_name: jar for program in ("kafka", "neo4j") for jar in read_lock(program)}
    fetch(list(jars.values()), FOLDER, Settings().maven_repository, Quiet())


if __name__ == "__main__":
    main()
