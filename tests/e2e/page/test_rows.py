"""A real browser on rows by their columns: of an operation, and of a trace, in order and filtered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect

from lineage_api.app import create_app
from tests.support.e2e.browser import opened, served, violations
from tests.support.file_applications import APP, MAP, SOURCE, questions_of
from tests.support.lanes import sampled

ROWS = {"EWR": 130, "JFK": 20}
FAR = 1048.3612345678
RECORDS = f"#/app/{APP}/nodes/{SOURCE}"
TABLE = f"#/app/{APP}/trace?node={MAP}&key=k&direction=backward&list={quote(f'{APP}#{SOURCE}', safe='')}"
#: Of the table: its rows without those of the heads.
LISTED = ".trace-table tbody tr"


def reading(origin: str, at: int) -> dict[str, object]:
    wind = FAR if (origin, at) == ("EWR", 77) else at % 40 + 1 / 3
    return {"id": at, "wind": wind, "carrier, code": "UA" if at % 2 else "DL"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("rows")
    partitions = []
    for split, (origin, count) in enumerate(ROWS.items()):
        path: Path = folder / "winds" / f"origin={origin}" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([reading(origin, at) for at in range(count)]), path)
        status = path.stat()
        about = {"size": status.st_size, "modified": status.st_mtime_ns // 1_000_000}
        part = {"path": str(path), "start": 0, "first": 0, "row": 0, "length": status.st_size, **about}
        partitions.append({"split": split, "parts": [part]})
    counts = list(ROWS.values())
    keys = {split: [("str", "k")] * count for split, count in enumerate(counts)}
    with served(create_app(questions_of(folder, partitions, counts, format="parquet", keys=keys))) as address:
        yield address


def heads(page: Page, table: str) -> list[str]:
    return [text.split("\n")[0] for text in page.locator(f"{table} thead th").all_inner_texts()]


def test_records_are_shown_by_columns_with_types_and_whole_values_on_demand(page, url):
    page.goto(url + RECORDS)
    expect(page.locator("tbody tr")).to_have_count(50)
    assert heads(page, "table") == ["Record", "origin", "id", "wind", "carrier, code", "Location"]
    expect(page.locator("thead")).to_contain_text("double")
    first = page.locator("tbody tr").first
    expect(first.locator("td").nth(3)).to_have_text("0.333333")
    expect(first.locator("td").last).to_have_text("origin=EWR/part-0.parquet:1")
    page.get_by_role("link", name="Show whole values").click()
    expect(first.locator("td").nth(3)).to_have_text("0.3333333333333333")
    expect(page).to_have_url(re.compile("full=1"))


@pytest.mark.thorough
def test_records_are_searched_by_a_condition(page, url):
    page.goto(url + RECORDS)
    page.get_by_label("Rows for which").fill("wind > 1000")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("1 match")
    expect(page.locator("tbody tr td").nth(3)).to_have_text("1048.36")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV of all").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0].endswith(',origin,id,wind,"carrier, code"')
    assert len(lines) == 2
    page.get_by_label("Rows for which").fill("wnd > 1000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("did you mean wind?")
    page.errors.clear()  # the browser's own words for the 422


@pytest.mark.thorough
def test_all_rows_of_a_trace_are_ordered_by_a_column(page, url):
    page.goto(url + TABLE)
    expect(page.locator(LISTED)).to_have_count(100)
    expect(page.locator(".trace-table")).to_contain_text("1 to 100 of 150 records")
    page.locator(".trace-table").get_by_role("link", name="wind", exact=True).click()
    head = page.locator(".trace-table th[aria-sort]")
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator(LISTED).first).to_contain_text("1048.36")
    expect(page).to_have_url(re.compile("sort=wind&desc=1"))
    page.get_by_role("button", name="Next").click()
    expect(page.locator(LISTED)).to_have_count(50)
    page.get_by_role("link", name="In their own order").click()
    expect(head).to_have_count(0)


@pytest.mark.thorough
def test_rows_of_a_trace_are_filtered_and_columns_chosen(page, url):
    page.goto(url + TABLE)
    expect(page.locator(LISTED)).to_have_count(100)
    page.get_by_label("Rows for which").fill("origin = 'JFK' and wind < 5")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".trace-table h2")).to_have_text(re.compile("^5 of 150 rows"))
    expect(page.locator(LISTED)).to_have_count(5)
    page.get_by_text("Columns: all 4").click()
    page.get_by_label("id", exact=True).uncheck()
    page.get_by_label("origin", exact=True).uncheck()
    page.get_by_role("button", name="Show these").click()
    expect(page.get_by_text("Columns: 2 of 4")).to_be_visible()
    assert heads(page, ".trace-table") == ["Record", "wind", "carrier, code", "Location"]
    with page.expect_download() as saved:
        page.get_by_role("button", name="All as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0].endswith(',wind,"carrier, code"')
    assert len(lines) == 6
    page.get_by_label("Rows for which").fill("wind <")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("^")
    page.errors.clear()  # the browser's own words for the 422


@pytest.mark.thorough
def test_a_row_beside_the_drawing_is_shown_by_its_columns(page, url):
    page.goto(f"{url}#/app/{APP}/trace?node={SOURCE}&partition=0&offset=77")
    columns = page.locator(".trace-panel .row-columns")
    expect(columns).to_contain_text("wind double")
    expect(columns).to_contain_text("1048.36")
    page.get_by_text("The row as it is").click()
    expect(page.locator(".trace-panel .pointed details code")).to_contain_text("1048.3612345678")


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious_on_rows(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        page.goto(url + RECORDS)
        expect(page.locator("tbody tr")).to_have_count(50)
        assert violations(page) == []
        page.goto(f"{url}{TABLE}&sort=wind&desc=1")
        expect(page.locator(LISTED)).to_have_count(100)
        page.get_by_text("Columns: all 4").click()
        assert violations(page) == []
