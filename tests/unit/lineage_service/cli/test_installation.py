from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from lineage_service.cli import installation


def installed_from(folder: Path, origin: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = folder / "lineage_master-1.2.3.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: lineage-master\nVersion: 1.2.3\n")
    if origin is not None:
        (metadata / "direct_url.json").write_text(json.dumps(origin))
    distribution = importlib.metadata.PathDistribution(metadata)
    monkeypatch.setattr(installation, "distribution", lambda _name: distribution)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (
            {"url": "file:///a%20b/lineage_master-1.2.3-py3-none-any.whl", "archive_info": {}},
            "pip install '/a b/lineage_master-1.2.3-py3-none-any.whl[service]'",
        ),
        (
            {"url": "file:///clone", "dir_info": {"editable": True}},
            "pip install --editable '/clone[service]'",
        ),
        ({"url": "file:///clone", "dir_info": {}}, "pip install '/clone[service]'"),
        (
            {"url": "https://example.invalid/x.whl", "archive_info": {}},
            "pip install 'lineage-master[service] @ https://example.invalid/x.whl'",
        ),
        (None, "pip install 'lineage-master[service]==1.2.3'"),
    ],
)
def test_the_command_adds_to_what_is_installed_from_where_that_came_from(
    origin: dict[str, object] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_from(tmp_path, origin, monkeypatch)
    assert installation.install_command() == command
    assert installation.version() == "1.2.3"


def test_a_source_folder_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", absent)
    assert installation.version() == ""
    assert installation.install_command() == "pip install --editable '.[service]'"


def test_each_part_says_whether_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    states = installation.contents()
    assert list(states) == ["agent's jar", "web page", "service", "PySpark"]
    assert states["service"].startswith("no, only the agent: pip install ")
    assert states["PySpark"] == "no: pip install pyspark"
