"""The structure of the code: no circles of imports, in Java too, and executors get what runs there."""

from __future__ import annotations

import ast
import re
import zipfile
from pathlib import Path

import grimp
import pytest

from scripts.structure import PACKAGES, ROOT, SOURCE_FOLDERS, circles, empty_names, python_files
from spark_agent.driver.shipping import write_archive

pytestmark = pytest.mark.unit

JAVA = Path(__file__).parents[3] / "spark_agent" / "jvm" / "src" / "lineagemaster"
#: The Java packages, and which others their classes may import. `delivery.kafka` has its own class loader.
JAVA_PACKAGES = {
    "guard": {"expression", "delivery"},
    "plan": {"expression", "capture", "delivery"},
    "expression": {"capture", "delivery"},
    "capture": {"delivery"},
    "delivery": set(),
    "delivery.kafka": {"delivery"},
}
#: Where modules are commands, or the jobs of a benchmark, and are called by their names.
COMMANDS = ("cli/", "perf/", "scripts/")
#: Nouns that end as participles do.
NOUNS = ("shipping", "value_sampling")
# fmt: off
VERBS_AND_ADJECTIVES = (
    "ask", "complete", "consume", "find", "get", "incomplete", "install", "keep", "kept", "lazy", "lost",
    "maintain", "make", "new", "newest", "serve", "start", "stop", "tabular", "told", "unread",
)
# fmt: on


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


def test_java_packages_import_only_those_below_them() -> None:
    imported: dict[str, set[str]] = {package: set() for package in JAVA_PACKAGES}
    for path in JAVA.rglob("*.java"):
        package = ".".join(path.parent.relative_to(JAVA).parts)
        imported[package] |= set(
            re.findall(r"^import lineagemaster\.([a-z.]+)\.", path.read_text("utf-8"), re.M)
        )
    for package, names in imported.items():
        assert names <= JAVA_PACKAGES[package], package
        assert JAVA.joinpath(*package.split("."), "package-info.java").is_file(), package


def test_names_say_what_they_are_bound_to() -> None:
    files = [file for folder in SOURCE_FOLDERS for file in python_files(ROOT / folder)]
    assert len(files) > 300
    assert [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files
        for line, name in empty_names(ast.parse(file.read_text(encoding="utf-8")))
    ] == []


def is_noun(module: str) -> bool:
    last = module.rpartition("_")[2]
    return module in NOUNS or not (last.endswith(("ed", "ing")) or last in VERBS_AND_ADJECTIVES)


def test_modules_are_named_by_nouns() -> None:
    files = [file.relative_to(ROOT) for folder in SOURCE_FOLDERS for file in python_files(ROOT / folder)]
    assert [
        str(file)
        for file in files
        if not any(part in f"{file}" for part in COMMANDS) and not is_noun(file.stem)
    ] == []


@pytest.mark.parametrize("module", ["persisted", "keeping", "files_read_lazy", "maintain"])
def test_a_module_that_is_no_noun_is_noticed(module: str) -> None:
    assert not is_noun(module)


def test_a_name_that_says_nothing_is_noticed() -> None:
    loop, function = "for each in nodes:\n    self.found = each\n", "def told(given, *, held=0): ...\n"
    tree = ast.parse(f"{loop}{function}import known.here as there")
    assert sorted(empty_names(tree)) == [
        (1, "each"), (2, "found"), (3, "given"), (3, "held"), (3, "told"), (4, "there"),
    ]  # fmt: skip
