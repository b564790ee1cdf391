"""A real browser on the page of a Delta table: its rows in a version, whoever wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from tests.support.e2e.browser import served, violations
from tests.support.lineage_messages import APP
from tests.support.tables.merged_rows import DELETED, WRITTEN, merged
from tests.support.tables.written_tables import Lake


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    lake.write("first", "people", pa.table({"id": [1, 2], "name": ["Ada", "Bob"]}), began=1)
    lake.write("second", "people", pa.table({"id": [2], "name": ["Eve"]}), began=2)
    with served(create_app(lake.queries)) as address:
        yield f"{address}#/dataset?name={lake.path('people')}"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two Adas and Bob, who was renamed, rewritten and deleted. Another engine made version 5."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    lake.write("loader", "people", people("Ada", "Bob", "Ada"), began=1)
    for number, (application, names, statement) in enumerate(
        [
            ("updater", ("Ada", "Bo", "Ada"), "UPDATE"),
            ("compactor", ("Ada", "Bo", "Ada"), "OPTIMIZE"),
        ],
        start=2,
    ):
        [file] = lake.files("people")
        lake.rewrite(application, "people", file, people(*names), began=number, operation=statement)
    [file] = lake.files("people")
    lake.delete("people", file, [1])
    lake.write("later", "people", people("Eve", first=3), began=4)
    lake.rewrite(None, "people", file, people("Ada", "Ada"), operation="MERGE")
    with served(create_app(lake.queries)) as address:
        yield f"{address}#/dataset?name={lake.path('people')}"


def people(*names: str, first: int = 0) -> pa.Table:
    return pa.table({"id": range(first, first + len(names)), "name": names})


def test_a_row_is_found_in_a_version_and_leads_to_the_application_that_wrote_it(page, url):
    page.goto(url)
    finder = page.get_by_role("region", name="Find rows")
    finder.get_by_label("Rows for which").fill("id = 2")
    finder.get_by_role("button", name="Find rows").click()
    expect(finder.get_by_text("2 rows in version 1")).to_be_visible()
    expect(finder.locator("tbody tr")).to_have_count(2)
    finder.get_by_label("In version").fill("0")
    finder.get_by_role("button", name="Find rows").click()
    expect(page).to_have_url(re.compile(r"version=0"))
    expect(finder.locator("tbody tr")).to_have_count(1)
    expect(finder.locator("tbody tr")).to_contain_text("Bob")
    finder.get_by_label("In version").fill("")
    finder.get_by_role("button", name="Find rows").click()
    row = finder.locator("tbody tr", has_text="Eve")
    row.get_by_role("link", name="Trace").click()
    expect(page).to_have_url(re.compile(r"app/second/trace"))


def test_a_row_has_its_history_from_the_finder_to_the_traces_of_its_versions(page, changed):
    page.goto(f"{changed}&where=id%20%3D%201&version=2")
    finder = page.get_by_role("region", name="Find rows")
    finder.get_by_role("link", name="History of").click()
    expect(page).to_have_url(re.compile(r"#/history\?dataset=.*where=id.*version=2"))
    expect(page.locator("h1")).to_contain_text("History of a row of /")
    expect(page.locator("h1")).to_be_focused()
    expect(page.locator("main")).to_contain_text("4 versions. The last one, version 3, deleted it")
    expect(page.locator("#status")).to_contain_text("4 versions")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(4)
    for row, said in enumerate(
        (
            ("inserted", "WRITE", "id 1", "name Bob", "loader"),
            ("changed", "UPDATE", "was Bob → Bo", "updater"),
            ("rewritten", "OPTIMIZE", "the same values in another file", "compactor"),
            ("deleted", "DELETE", "was Bo"),
        )
    ):
        for text in said:
            expect(rows.nth(row)).to_contain_text(re.compile(text.replace(" ", r"\s*"), re.IGNORECASE))
    expect(page.locator(".notice")).to_have_count(0)
    for theme in ("light", "dark"):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
        assert violations(page) == []
    page.locator("tbody a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"app/updater/trace"))


def test_one_of_several_rows_is_chosen_and_what_is_not_known_of_it_is_said(page, changed):
    table = changed.partition("#")[0] + "#/history?dataset=" + changed.partition("name=")[2]
    page.goto(table)
    expect(page.locator("main")).to_contain_text("Say which row")
    page.get_by_label("Row for which").fill("name = 'Ada'")
    page.get_by_label("In version").fill("2")
    page.get_by_role("button", name="Show its history").click()
    expect(page.locator("main")).to_contain_text("2 rows in version 2 fulfil the condition")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.locator("tbody tr").last.get_by_role("link", name="History of").click()
    expect(page.get_by_label("Row for which")).to_have_value("name = 'Ada' and id = 2")
    notices = page.locator(".notice")
    expect(notices.first).to_contain_text("there may be more versions")
    expect(notices.last).to_contain_text("no application that is known made version 5 (MERGE)")
    page.get_by_label("Row for which").fill("id = 1")
    page.get_by_label("In version").fill("3")
    page.get_by_role("button", name="Show its history").click()
    expect(page.locator(".notice")).to_contain_text("1 that did were deleted")
    assert any("404" in error for error in page.errors)
    page.errors.clear()


def test_records_of_a_merge_say_what_it_did_with_them(page, tmp_path):
    with served(create_app(merged(tmp_path))) as url:
        page.goto(f"{url}#/app/{APP}/nodes/{WRITTEN}")
        rows = page.locator(".records tbody tr")
        expect(rows).to_have_count(3)
        expect(rows).to_contain_text(["copy", "update", "copy"])
        page.goto(f"{url}#/app/{APP}/trace?node={WRITTEN}&partition=0&offset=0")
        expect(page.locator(".trace-panel .facts")).to_contain_text(
            "copy: a row that the statement left as it was"
        )
        page.goto(f"{url}#/app/{APP}/trace?node={DELETED}&partition=0&offset=0")
        expect(page.locator(".trace-panel .facts")).to_contain_text(
            "delete: a row that the statement deleted"
        )
        expect(page.locator(".trace-list")).to_contain_text("version 7 of /t is without them")
