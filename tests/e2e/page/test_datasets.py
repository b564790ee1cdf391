"""A real browser on the pages of datasets, over the real catalogue of a small store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from lineage_service.testing.queries import MemoryQueries
from spark_agent import contract
from tests.support import api_store
from tests.support.dataset_applications import Job, dataset, queries_of
from tests.support.e2e.browser import opened, served, violations
from tests.support.lanes import sampled

DAY = 86_400_000
#: Conditions, as they are in addresses.
NORTH, BOTH, WRONG, NOBODY = map(
    quote, ("value like 'North%'", "value like '%,%'", "valu = 1", "value = 'nobody'")
)
BEGAN = 1_795_000_000_000
SCHEMA = [
    {"name": "airport", "type": "string", "nullable": True},
    {"name": "month", "type": "string", "nullable": False},
    {
        "name": "wind",
        "type": "struct<mean:double>",
        "nullable": True,
        "fields": [{"name": "mean", "type": "double", "nullable": True}],
    },
]


def means(number: int, day: int, **ends: object) -> Job:
    """One run of the job that writes the monthly means."""
    job = Job(f"local-{number}", name="Monthly winds", began=BEGAN + day * DAY)
    flights = job.read("/data/flights.csv", rows=28_316)
    weather = job.read("/data/weather.csv", rows=26_115)
    joined = job.node("operator", contract.IDENTITY, [flights, weather])
    if "error" in ends:
        sink = job.node(
            "sink", contract.IDENTITY, [joined], dataset=dataset("/data/monthly", format="parquet")
        )
        job.time += 1
        job.tell(contract.ACTION_ENDED, node=sink, state=contract.ACTION_FAILED, error=ends["error"])
        return job.end(state="failed")
    job.write(
        "/data/monthly",
        [joined],
        rows=36,
        dataset=dataset("/data/monthly", format="parquet", partitions=["month"]),
        schema=SCHEMA,
    )
    return job.end()


def report(number: int, day: int) -> Job:
    job = Job(f"local-{number}", name="Report", began=BEGAN + day * DAY)
    monthly = job.read("/data/monthly", rows=36)
    job.write("/data/report", [monthly], rows=3)
    return job.end()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    error = {"type": "ValueError", "message": "no wind in June", "frame": "/jobs/winds.py:31"}
    jobs = [means(1, 0), means(2, 1, error=error), means(3, 2), report(4, 3)]
    with served(create_app(queries_of(*jobs))) as address:
        yield address


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a dataset whose rows are there: North,15 and South,7."""
    folder = tmp_path_factory.mktemp("store")
    with served(api_store.service(api_store.build(folder))) as address:
        yield f"{address}#/dataset?name={folder / 'sums.csv'}"


# -- the first page -----------------------------------------------------------------------------------


def test_the_first_page_lists_the_datasets_of_all_applications(page, url):
    page.goto(url)
    expect(page).to_have_title("Datasets · Lineage Master")
    expect(page.locator("tbody tr")).to_have_count(4)
    monthly = page.locator("tbody tr", has_text="monthly").first
    for said in ("parquet", "Monthly winds", "36", "1 job"):
        expect(monthly).to_contain_text(said)
    expect(monthly.locator(".is-failed")).to_have_text("1 of 3")
    expect(page.locator("tbody tr", has_text="weather.csv")).to_contain_text("only read")
    expect(page.locator("#places [aria-current]")).to_have_text("Datasets")


@pytest.mark.thorough
def test_datasets_are_searched_as_one_types_and_the_address_says_so(page, url):
    page.goto(url)
    page.get_by_label("Path, table or topic").press_sequentially("mont")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/datasets\?text=mont$"))
    page.reload()
    expect(page.get_by_label("Path, table or topic")).to_have_value("mont")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Path, table or topic").fill("nothing is called so")
    expect(page.locator("main")).to_contain_text("No dataset has this text")
    page.get_by_label("Path, table or topic").fill("")
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page).to_have_url(re.compile(r"#/$"))


@pytest.mark.thorough
def test_datasets_come_in_pages(page, url):
    page.goto(f"{url}#/datasets?limit=3")
    expect(page.locator("main")).to_contain_text("3 of 4 datasets")
    page.get_by_role("link", name="More datasets").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="First page").click()
    expect(page.locator("tbody tr")).to_have_count(3)


def test_without_a_dataset_the_page_says_how_to_get_one(page):
    with served(create_app(MemoryQueries())) as url:
        page.goto(url)
        expect(page.locator("main")).to_contain_text("spark.lineage.enabled=true")


@pytest.mark.thorough
def test_keys_lead_from_the_list_to_a_dataset(page, url):
    page.goto(url)
    page.locator("tbody a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("/data/monthly")
    assert page.evaluate("document.activeElement.tagName") == "H1"


# -- one dataset --------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_dataset_has_its_history_with_the_failed_run_in_red(page, url):
    page.goto(f"{url}#/dataset?name=/data/monthly")
    rows = page.locator("table", has_text="Writes and reads").locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("Report")
    expect(rows.nth(1)).to_contain_text("36")
    expect(rows.nth(2).locator(".is-failed")).to_have_text("failed")
    expect(rows.nth(2)).to_contain_text("ValueError: no wind in June")
    expect(rows.nth(1)).to_contain_text("complete")
    page.locator("#trail a").click()
    expect(page.locator("h1")).to_have_text("Datasets")


def test_a_dataset_shows_its_columns_with_types(page, url):
    page.goto(f"{url}#/dataset?name=/data/monthly&namespace=file")
    columns = page.locator("table", has_text="Columns with their types").locator("tbody tr")
    expect(columns).to_have_count(4)
    expect(columns.nth(1)).to_contain_text("divides the folders, never null")
    expect(columns.nth(3)).to_contain_text("mean")
    expect(columns.nth(3)).to_contain_text("double")


@pytest.mark.thorough
def test_what_is_before_and_after_is_drawn_and_listed(page, url):
    page.goto(f"{url}#/dataset?name=/data/monthly")
    expect(page.locator(".canvas[data-elements]")).to_have_attribute(
        "data-elements", "11"
    )  # 6 boxes, 5 lines
    expect(page.locator(".neighbours tbody tr")).to_have_count(6)
    winds = page.locator(".neighbours tbody tr", has_text="Monthly winds").first
    expect(winds.locator(".is-failed")).to_have_text("3 runs, 1 failed")
    expect(winds).to_contain_text("before")
    page.get_by_text("The same as a table: 5 neighbours").click()
    page.locator(".neighbours").get_by_role("link", name="report", exact=True).click()
    expect(page.locator("h1")).to_have_text("/data/report")
    page.go_back()
    expect(page.locator("h1")).to_have_text("/data/monthly")


@pytest.mark.thorough
def test_the_keys_walk_through_the_drawing_along_its_lines(page, url):
    page.goto(f"{url}#/dataset?name=/data/monthly")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".details")).to_contain_text("monthly dataset")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".details")).to_contain_text("Monthly winds job · 3 runs, 1 failed")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/app/local-3$"))


@pytest.mark.thorough
def test_an_unknown_dataset_is_answered_with_the_nearest(page, url):
    page.goto(f"{url}#/dataset?name=/data/montly")
    expect(page.get_by_role("alert")).to_contain_text("/data/monthly")
    page.errors.clear()  # the browser's own word for the 404


# -- finding rows -------------------------------------------------------------------------------------


def test_rows_are_found_by_a_condition_and_lead_to_their_trace(page, sums):
    page.goto(sums)
    page.get_by_label("Rows for which").fill("value like '%,%'")
    page.get_by_role("button", name="Find rows").click()
    expect(page.locator(".found tbody tr")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"where=value\+like"))
    page.reload()
    expect(page.get_by_label("Rows for which")).to_have_value("value like '%,%'")
    page.locator(".found tbody tr", has_text="South,7").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/trace\?"))
    expect(page.locator("h1")).to_contain_text("South,7")
    page.go_back()
    expect(page.locator(".found tbody tr")).to_have_count(2)
    page.get_by_role("link", name="trace all of these").click()
    expect(page.locator("h1")).to_contain_text("2 records")


@pytest.mark.thorough
def test_the_only_row_is_listed_as_well(page, sums):
    page.goto(f"{sums}&where={NORTH}")
    expect(page.locator(".found tbody tr")).to_have_count(1)
    expect(page.locator(".found")).to_contain_text("1 row in Sums by shop")
    expect(page.get_by_role("link", name="trace all of these")).to_have_count(0)


@pytest.mark.thorough
def test_what_cannot_be_understood_is_shown_with_its_place(page, sums):
    page.goto(f"{sums}&where={WRONG}")
    expect(page.get_by_role("alert")).to_contain_text("did you mean value?")
    lines = page.get_by_role("alert").inner_text().splitlines()
    assert lines[-1].index("^") == lines[-2].index("valu")
    page.get_by_label("Rows for which").fill("value = 'nobody'")
    page.keyboard.press("Enter")
    expect(page.locator(".found .empty")).to_be_visible()
    page.errors.clear()  # the browser's own words for the 422 and the 404


@pytest.mark.thorough
def test_what_no_row_fulfils_leads_to_the_inputs_that_lack_it(page, sums):
    page.goto(f"{sums}&where={NOBODY}")
    page.get_by_role("link", name="Why is there no such row?").click()
    expect(page.locator("h1")).to_have_text("Why is it not in the output?")
    expect(page.locator("main")).to_contain_text("No input has such a row.")
    expect(page.locator("#trail")).to_contain_text("Sums by shop")
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text("--where \"value = 'nobody'\"")
    page.go_back()
    expect(page.locator(".found .empty")).to_be_visible()
    page.errors.clear()  # the browser's own words for the 404


@pytest.mark.thorough
def test_a_dataset_leads_to_what_changed_between_its_runs(page, url):
    page.goto(f"{url}#/dataset?name=/data/monthly")
    page.get_by_role("link", name="Compare what its last two runs wrote").click()
    expect(page.locator("h1")).to_have_text("What changed")
    expect(page.get_by_role("textbox", name="Dataset")).to_have_value("/data/monthly")
    page.go_back()
    expect(page.locator("h1")).to_have_text("/data/monthly")
    page.errors.clear()  # these rows are not there


@pytest.mark.thorough
def test_columns_and_words_are_suggested(page, url):
    page.goto(f"{url}#/dataset?name=/data/monthly")
    field, suggestions = page.get_by_label("Rows for which"), page.locator(".suggestions button")
    expect(suggestions.first).to_have_text("airport string")
    field.press_sequentially("wind.")
    expect(suggestions).to_have_text(["wind.mean double"])
    suggestions.click()
    expect(field).to_have_value("wind.mean ")
    page.get_by_role("button", name="is not null", exact=True).click()
    expect(field).to_have_value("wind.mean is not null ")
    expect(suggestions).to_have_text(["and", "or"])


@pytest.mark.thorough
def test_a_search_is_copied_as_commands(browser, sums):
    with opened(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(f"{sums}&where={NORTH}")
        page.get_by_text("The same as a command").click()
        page.get_by_role("button", name="Copy the line for curl", exact=True).click()
        expect(page.get_by_role("button", name="Copied the line for curl", exact=True)).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("curl -G http://127.0.0.1:")
        assert copied.endswith("--data-urlencode \"where=value like 'North%'\"")


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious_on_rows_to_choose_from(browser, sums, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        page.goto(f"{sums}&where={BOTH}")
        expect(page.locator(".found tbody tr")).to_have_count(2)
        page.get_by_text("The same as a command").click()
        assert violations(page) == []


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious_on_the_pages_of_datasets(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        for address in (
            "#/",
            "#/datasets?text=nothing",
            "#/dataset?name=/data/monthly",
            "#/dataset?name=/data/flights.csv",
        ):
            page.goto(url + address)
            expect(page.locator(".loading")).to_have_count(0)
            assert violations(page) == [], address
        assert page.errors == []
