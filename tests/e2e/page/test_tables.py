"""A real browser on the page of a Delta table: its rows in a version, whoever wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from tests.support.e2e.browser import served
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
