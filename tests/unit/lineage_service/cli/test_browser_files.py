"""Neo4j Browser's style speaks of what the graph has; its saved queries are the statements."""

from __future__ import annotations

import argparse
import io
import re
import zipfile
from pathlib import Path

import pytest

import lineage_cypher
from lineage_cypher import browser
from lineage_service.cli.browser_files import command
from lineage_service.errors import LineageError
from lineage_service.settings import Settings

PAGE = (Path(__file__).parents[4] / "docs" / "neo4j.md").read_text("utf-8")
#: The labels that mark a node or a record beside its own label.
MARKS = {"LineageSource", "LineageSink"}


def properties_of(name: str) -> set[str]:
    """The properties of a label or relationship, from the model's table in the documentation."""
    table = re.search(rf"^\| {name} \| \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table, name
    return {word for row in table[1].splitlines() for word in re.findall(r"\w+", row.split("|")[1])}


@pytest.mark.parametrize("selector", [rule for rule in browser.rules() if "." in rule])
def test_a_style_speaks_of_what_the_graph_has(selector: str) -> None:
    kind, _, name = selector.partition(".")
    assert kind in ("node", "relationship")
    caption = browser.rules()[selector].get("caption", "")
    if name in MARKS:
        assert caption == "", "a mark gives a colour; the caption is that of the label"
        assert name in PAGE
    elif name == "flow":  # has no properties
        assert caption == ""
    else:
        assert set(re.findall(r"\{(\w+)\}", caption)) <= properties_of(name)
        assert caption


def test_marks_come_after_the_labels_that_they_mark() -> None:
    """Of two rules for one node the later one wins."""
    nodes = [rule.removeprefix("node.") for rule in browser.rules() if rule.startswith("node.")]
    assert set(nodes[-2:]) == MARKS
    assert {"LineageNode", "LineageFlow", "LineageApplication", "Dataset"} == set(nodes[:-2])


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_captions_can_be_read_on_their_colours() -> None:
    for selector, rule in browser.rules().items():
        if selector.startswith("node"):
            light, dark = sorted(map(luminance, (rule["color"], rule["text-color-internal"])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, selector  # WCAG 2.2, 1.4.3


def test_the_sheet_holds_nothing_that_browsers_parser_stumbles_over() -> None:
    """It knows no comments, ends a value at `;`, and splits a property at every `:`."""
    for line in browser.style_sheet().splitlines():
        assert re.fullmatch(r"[\w.]+ \{|  [\w-]+: (\"[^\":;]*\"|[^\":;{}]+);|\}", line), line
    rules = browser.style_sheet().count("{\n")
    assert len(browser.rules()) == rules
    assert sum(map(len, browser.rules().values())) == browser.style_sheet().count(";\n")


def test_the_command_is_one_line_that_a_server_setting_can_hold() -> None:
    command = browser.style_command()
    assert "\n" not in command
    assert ";" not in command  # Browser splits the setting there
    assert command.isascii()
    assert command.startswith("style {")


def test_every_statement_for_people_is_a_saved_query_under_a_title_of_its_own() -> None:
    saved = {query.statement for query in browser.SAVED_QUERIES}
    assert saved >= {
        name for name in lineage_cypher.names() if name.startswith("show/") and "by_hash" not in name
    }
    titles = [query.title for query in browser.SAVED_QUERIES]
    assert len({*titles}) == len(titles)
    assert titles == sorted(titles, key=lambda title: title[0])


@pytest.mark.parametrize("query", browser.SAVED_QUERIES, ids=lambda query: query.statement)
def test_a_saved_query_sets_every_parameter_and_is_its_statement(query: browser.SavedQuery) -> None:
    name, *lines = browser.text_of(query).splitlines()
    assert name == f"// {query.title}"
    given = [line for line in lines if line.startswith(":param ")]
    assert [line.split()[1] for line in given] == list(query.parameters)
    statement = "\n".join(lines[len(given) :])
    assert statement == lineage_cypher.body(query.statement)
    assert {*re.findall(r"\$(\w+)", statement)} == {*query.parameters}


def test_the_zip_has_one_folder_with_a_file_for_each_query() -> None:
    with zipfile.ZipFile(io.BytesIO(browser.saved_queries())) as archive:
        names = archive.namelist()
        texts = [archive.read(name).decode() for name in names]
    assert {name.split("/")[0] for name in names} == {browser.FOLDER}
    assert all(re.fullmatch(r"[^/]+/\w+\.cypher", name) for name in names)
    assert texts == [browser.text_of(query) for query in browser.SAVED_QUERIES]
    assert browser.saved_queries() == browser.saved_queries()


def test_the_command_writes_both_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    settings = Settings(home=tmp_path / "home")
    assert command(settings, argparse.Namespace(folder=folder)) == 0
    assert (folder / browser.STYLE_NAME).read_text() == browser.style_sheet()
    assert (folder / browser.QUERIES_NAME).read_bytes() == browser.saved_queries()
    said = "".join(capsys.readouterr())
    assert browser.STYLE_NAME in said
    assert browser.QUERIES_NAME in said
    (tmp_path / "file").write_text("")
    with pytest.raises(LineageError, match="cannot write to"):
        command(settings, argparse.Namespace(folder=tmp_path / "file"))
