from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from lineage_service.graph import connection, neo4j_store
from lineage_service.graph.graph_store import GraphRefusedError
from lineage_service.graph.neo4j_store import from_settings
from lineage_service.settings import Settings

URI = "bolt://127.0.0.1:1"


def password_of(settings: Settings) -> str:
    graph = from_settings(settings)
    assert isinstance(graph, neo4j_store.Neo4jGraph)
    try:
        return graph._connection._password
    finally:
        graph.close()


def test_the_password_comes_from_the_first_line_of_a_file_or_from_its_setting(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from the file\nsecond line\n")
    settings = Settings(neo4j_uri=URI, neo4j_password=SecretStr("from the setting"))
    assert password_of(settings) == "from the setting"
    assert password_of(settings.model_copy(update={"neo4j_password_file": str(file)})) == "from the file"


def test_a_password_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    with pytest.raises(
        GraphRefusedError, match=r"--neo4j-password-file: .*nowhere cannot be read: No such file"
    ):
        from_settings(Settings(neo4j_uri=URI, neo4j_password_file=missing))


def test_authorities_of_ones_own_check_the_servers_certificate() -> None:
    address, options = connection._secured("neo4j+s://host:7687", "ca.pem")
    assert address == "neo4j://host:7687"
    assert options["encrypted"] is True
    assert options["trusted_certificates"].certs == ("ca.pem",)


@pytest.mark.parametrize("uri", ["bolt://host:1", "bolt+s://host:1", "neo4j+ssc://host:1"])
def test_without_them_the_scheme_decides_alone(uri: str) -> None:
    assert connection._secured(uri, "") == (uri, {})
