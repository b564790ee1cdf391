"""A real browser on what changed between two runs, over the real rows of a small store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from tests.support.e2e.browser import opened, served, violations
from tests.support.lanes import sampled
from tests.support.linked_applications import Applications

ROWS = {
    "monday": ("Graz,5", "Linz,7", "Wels,3"),
    "tuesday": ("Graz,5", "Linz,8", "Wels,3", "Ried,2"),
    "may": tuple(f"Graz,{at}" for at in range(130)),
    "june": tuple(f"Linz,{at}" for at in range(120)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparison")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    applications = Applications(folder)
    for began, (name, rows) in enumerate(ROWS.items(), 1):
        (folder / name).mkdir()
        (folder / name / "in").write_text("".join(f"{row}\n" for row in rows))
        applications.copy(name, began * 1_000, folder / name / "in", folder / name / "out")
        applications.end(name)
    with served(create_app(applications.questions)) as address:
        yield address


def test_two_runs_stand_side_by_side_with_the_input_rows_behind_each_change(page, url, folder):
    page.goto(f"{url}#/compare?before=monday&after=tuesday")
    expect(page).to_have_title("What changed · Lineage Master")
    expect(page.get_by_label("Earlier run", exact=True).last).to_contain_text("wrote 3 rows")
    expect(page.locator("main")).to_contain_text("1 row changed, 0 gone, 1 new, 2 the same.")
    changed, added = page.locator("tbody tr").all()
    expect(changed.locator("td").nth(1)).to_contain_text("Linz,7")
    expect(changed.locator("td").nth(2)).to_contain_text("Linz,8")
    expect(changed.locator("mark")).to_have_text(["Linz,7", "Linz,8"])
    expect(changed.locator(".because")).to_contain_text("in:2")
    expect(added.locator("td").nth(1)).to_have_text("no such row")
    expect(added.locator(".because")).to_contain_text("Ried,2")
    added.get_by_role("link", name="Trace what it is").click()
    expect(page.locator("main")).to_contain_text("Ried,2")


@pytest.mark.thorough
def test_the_form_asks_again_and_the_address_says_what(page, url):
    page.goto(f"{url}#/compare")
    expect(page.locator("main")).to_contain_text("Name a dataset")
    for label, text in (
        ("Earlier run", "monday"),
        ("Later run", "tuesday"),
        ("Columns that name a row", "valeu"),
    ):
        page.get_by_role("textbox", name=label).fill(text)
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("did you mean value?")
    page.get_by_role("textbox", name="Columns that name a row").fill("value")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(3)
    assert page.url.endswith("#/compare?before=monday&after=tuesday&key=value")
    page.errors.clear()  # the browser's own words for the 422


@pytest.mark.thorough
def test_many_rows_come_in_pages_and_those_of_one_kind_by_themselves(page, url):
    page.goto(f"{url}#/compare?before=may&after=june")
    expect(page.locator("main")).to_contain_text("0 rows changed, 130 gone, 120 new, 0 the same.")
    expect(page.locator("tbody tr")).to_have_count(50)
    expect(page.locator("main")).to_contain_text("1 to 50 of 200")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("main")).to_contain_text("51 to 100 of 200")
    page.get_by_role("link", name="new 120").click()
    expect(page.locator("main")).to_contain_text("1 to 50 of 100")
    expect(page.locator("tbody tr .sign").first).to_have_text("new")
    page.get_by_role("link", name="List up to 1,000").click()
    expect(page.locator("main")).to_contain_text("1 to 50 of 120")
    assert page.url.endswith("#/compare?before=may&after=june&kind=new&limit=1000")


@pytest.mark.thorough
def test_all_that_differs_is_had_as_csv(page, url):
    page.goto(f"{url}#/compare?before=may&after=june")
    with page.expect_download() as saved:
        page.get_by_role("button", name="All as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0].startswith("change,key,was,is,")
    assert len(lines) == 1 + 130 + 120


@pytest.mark.thorough
def test_runs_lead_to_their_applications_and_the_comparison_is_copied_as_a_command(page, url):
    page.goto(f"{url}#/compare?before=monday&after=tuesday")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text("lineage compare monday tuesday")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="tuesday").first.click()
    expect(page.locator("h1")).to_contain_text("tuesday")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(2)


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious_on_a_comparison(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        page.goto(f"{url}#/compare?before=monday&after=tuesday")
        expect(page.locator("tbody tr")).to_have_count(2)
        assert violations(page) == []
