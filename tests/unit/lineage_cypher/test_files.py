from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import lineage_cypher

ROOT = Path(__file__).parents[3]
HEADER = re.compile(
    r"// Purpose: (?P<purpose>.+?)\n// Parameters: (?P<parameters>.+?)\n// Index: (?P<index>.+?)\n"
    r"// Eager: (?P<eager>.+?)\n(?!//)",
    re.DOTALL,
)
INDEX = re.compile(r"\b(\w+)\(([^)]*)\)")
CYPHER_WORDS = re.compile(r"\b(UNWIND|DETACH DELETE|ON CREATE SET)\b|\b(MATCH|MERGE) \(")


def header(name: str) -> re.Match[str]:
    found = HEADER.match(lineage_cypher.statement(name))
    assert found, f"{name}.cypher does not open with Purpose, Parameters, Index, Eager"
    return found


@pytest.mark.parametrize("name", lineage_cypher.names())
def test_a_statement_names_exactly_its_parameters(name: str) -> None:
    named = set(re.findall(r"\$(\w+)", header(name)["parameters"]))
    assert named == set(re.findall(r"\$(\w+)", lineage_cypher.body(name)))
    assert named or header(name)["parameters"] == "none"


@pytest.mark.parametrize("name", lineage_cypher.names())
def test_a_statement_is_one_statement(name: str) -> None:
    assert ";" not in lineage_cypher.body(name)


def indexes_that_stand() -> set[tuple[str, str]]:
    """What the migrations made, and did not drop later."""
    standing: set[tuple[str, str]] = set()
    for migration in lineage_cypher.migrations():
        verb, _, rest = header(migration)["index"].partition(" ")
        assert verb in ("makes", "drops")
        standing = (set.union if verb == "makes" else set.difference)(standing, INDEX.findall(rest))
    return standing


@pytest.mark.parametrize(
    "name", [name for name in lineage_cypher.names() if name not in lineage_cypher.migrations()]
)
def test_the_indexes_that_a_statement_names_are_made_by_a_migration(name: str) -> None:
    made = indexes_that_stand()
    named = set(INDEX.findall(header(name)["index"]))
    assert named <= made
    assert named or header(name)["index"].startswith("none, ")


def test_every_index_serves_a_statement_or_a_question_of_the_documentation() -> None:
    page = (ROOT / "docs" / "neo4j.md").read_text("utf-8")
    named = {
        index
        for name in lineage_cypher.names()
        if name not in lineage_cypher.migrations()
        for index in INDEX.findall(header(name)["index"])
    }
    for label, properties in indexes_that_stand():
        assert (label, properties) in named or f"{label}({properties})" in page


def test_migrations_are_numbered_without_gaps_and_may_run_twice() -> None:
    numbers = [int(name.removeprefix(lineage_cypher.MIGRATIONS)[:4]) for name in lineage_cypher.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(
        re.search(r"IF (NOT )?EXISTS", lineage_cypher.body(name)) for name in lineage_cypher.migrations()
    )


def test_what_a_migration_makes_or_drops_is_known_by_name() -> None:
    made = {name: lineage_cypher.schema_name(name) for name in lineage_cypher.migrations()}
    assert made["migrations/0002_application_id"] == "lineage_application_id"
    assert made["migrations/0006_flow_hash_in"] == made["migrations/0010_no_flow_hash_in"]
    with pytest.raises(ValueError, match="ping neither makes nor drops"):
        lineage_cypher.schema_name("ping")


def test_a_statement_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="flow/nothing"):
        lineage_cypher.statement("flow/nothing")


def test_a_pasted_statement_holds_its_parameters_as_literals() -> None:
    text = lineage_cypher.pasted("show/backward", flowId='app#1#it\'s "ü" \\ here')
    assert r"""{flowId: "app#1#it's \"ü\" \\ here"}""" in text
    assert "$" not in text
    assert not text.startswith("//")


def test_a_pasted_statement_needs_every_parameter() -> None:
    with pytest.raises(KeyError, match="flowId"):
        lineage_cypher.pasted("show/backward")


FOR_PEOPLE = ["application/export_again", *(name for name in lineage_cypher.names() if name[:5] == "show/")]


@pytest.mark.parametrize("name", FOR_PEOPLE)
def test_the_documentation_shows_the_statements_for_people_as_they_are(name: str) -> None:
    assert f"\n{lineage_cypher.body(name)}\n```" in (ROOT / "docs" / "neo4j.md").read_text("utf-8")


def test_no_python_file_holds_cypher() -> None:
    holders = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("spark_agent", "lineage_service", "cypher", "api", "ui/lineage_page")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CYPHER_WORDS.search(node.value)
    ]
    assert holders == []
