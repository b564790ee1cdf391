"""A Kafka and a Neo4j of these tests' own, which they may kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from lineage_service.devstack.errors import DownloadError, JavaError
from tests.support.soak.servers import Servers
from tests.support.soak.world import World


@pytest.fixture(scope="session")
def servers(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Servers]:
    try:
        made = Servers(tmp_path_factory.mktemp("servers"), jar_folder).__enter__()
    except (DownloadError, JavaError) as error:
        cannot_have(f"no servers to kill: {error}")
    yield made
    made.__exit__()


@pytest.fixture
def world(servers: Servers, tmp_path: Path) -> Iterator[World]:
    with World(servers, tmp_path) as made:
        yield made
