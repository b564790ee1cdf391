"""The structure of the code: no circles of imports, and executors get what runs there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import grimp
import pytest

from scripts.structure import PACKAGES, circles
from spark_agent.driver.shipping import write_archive

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_no_module_imports_itself_over_others(graph: grimp.ImportGraph) -> None:
    assert circles(graph) == []


def test_a_circle_is_noticed() -> None:
    graph = grimp.ImportGraph()
    for module in "abcd":
        graph.add_module(module)
    for importer, imported in ("ab", "bc", "ca", "cd"):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"]]


def test_the_archive_for_executors_holds_what_workers_import_and_nothing_else(
    graph: grimp.ImportGraph, tmp_path: Path
) -> None:
    archive = tmp_path / "agent.zip"
    write_archive(str(archive))
    names = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in zipfile.ZipFile(archive).namelist()
    }
    rooms = ("spark_agent.contract", "spark_agent.delivery", "spark_agent.worker")
    assert names == {"spark_agent", *(name for name in graph.modules if name.startswith(rooms))}
    imported = {
        module for name in names - {"spark_agent"} for module in graph.find_modules_directly_imported_by(name)
    }
    assert imported <= names
