"""A real browser on the trace of a record: over the in-memory twin, and what is large over a real store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect

from lineage_api.app import create_app
from lineage_service.errors import TimeBudgetError
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.testing.queries import MemoryQueries
from lineage_service.tracing.query.service import LineageQueries
from tests.support.e2e.browser import long_tasks, opened, served, violations
from tests.support.flights_and_weather import (
    APP,
    CHANGED,
    MARKUP,
    RUNNING,
    materialize,
    questions,
    run,
    still_running,
)
from tests.support.lanes import sampled
from tests.support.large_application import LARGE
from tests.support.large_application import tell as tell_large
from tests.support.linked_applications import Applications
from tests.support.wide_application import GROUP, MANY, SINK, SOURCE, tell

SOURCES = 100_000
SAVED = f"#/app/{APP}/trace?node=8&partition=0&offset=3"
COUNTED = f"#/app/{APP}/trace?node=10&partition=1&offset=0"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(questions(), materialize=materialize)) as address:
        yield address


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real store with a record of 100,000 sources, and a trace of 500 operations."""
    folder = tmp_path_factory.mktemp("large")
    store = DeltaFlowStore(folder / "flows")
    tell(store, folder, SOURCES)
    tell_large(store, folder / "rows.txt")
    with served(create_app(LineageQueries(store, time_budget_s=60))) as address:
        yield address


def elements(page: Page) -> int:
    frame = page.locator(".trace-frame[data-elements]")
    expect(frame).to_be_visible()
    return int(frame.get_attribute("data-elements") or -1)


def opens(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".trace-frame[data-elements]")).to_be_visible()
    expect(page.locator(".trace-panel")).not_to_contain_text("Counting")


# -- what it shows ------------------------------------------------------------------------------------


def test_a_record_stands_between_what_it_came_from_and_what_became_of_it(page, url):
    opens(page, f"{url}#/app/{APP}/trace?node=7&partition=0&offset=3")
    text = page.locator("h1").inner_text()
    assert "because of" in text
    parts = page.locator(".trace-list .part h3")
    expect(parts).to_contain_text(["join (6)", "map (7)", "saveAsTextFile (8)", "mapPartitions (9)"])
    expect(parts.nth(1)).to_contain_text("the selected record")
    expect(page.locator("#status")).to_contain_text(text[:40])
    expect(page).to_have_title(f"{text} · Lineage Master")


def test_one_operation_more_each_time_and_the_whole_way_on_demand(page, url):
    opens(page, url + SAVED)
    expect(page.locator(".trace-list .part")).to_have_count(2)
    page.get_by_role("link", name="One operation back").click()
    expect(page.locator(".trace-list .part")).to_have_count(3)
    expect(page).to_have_url(re.compile("up=2"))
    page.get_by_role("link", name="Whole trace").click()
    expect(page.locator(".trace-list .part")).to_have_count(9)
    expect(page.locator(".trace-left")).to_contain_text("Drawn: 9 records of 9 operations.")
    page.go_back()
    expect(page.locator(".trace-list .part")).to_have_count(3)
    page.go_back()
    expect(page.locator(".trace-list .part")).to_have_count(2)


def test_a_click_on_a_record_goes_to_its_way_and_back_returns(page, url):
    opens(page, url + SAVED)
    before = page.locator("h1").inner_text()
    page.locator(".trace-list .part", has_text="map (7)").get_by_role("link").first.click()
    expect(page.locator(".part", has_text="the selected record")).to_contain_text("map (7)")
    expect(page.locator("h1")).to_be_focused()
    page.go_back()
    expect(page.locator(".part", has_text="the selected record")).to_contain_text("saveAsTextFile (8)")
    expect(page.locator("h1")).to_have_text(before)


def test_a_click_into_the_drawing_goes_to_the_record_there(page, url):
    opens(page, url + SAVED)
    box = page.locator(".trace-canvas").bounding_box()
    assert box is not None
    # The drawing is centred: a stub, the operation it came from, the record.
    for share in (0.42, 0.46, 0.5, 0.54):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * 0.54)
        if page.locator(".trace-canvas.pointing").count():
            break
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile("node=7"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"{SAVED}&whole=1", "Drawn: 9 records of 9 operations."),
        (f"{SAVED}&direction=backward", "map (7)"),
        (
            f"#/app/{APP}/trace?path={quote('/data/weather.csv', safe='')}&row=1&whole=1",
            "Not exact: the trace through",
        ),
        (f"#/app/{APP}/trace?record=write%230%233&node=8", "saveAsTextFile (8)"),
        (f"#/app/{APP}/trace?node=2&key=ORD%2006h", "with the key ORD 06h"),
        (f"{COUNTED}&list={APP}%230", "24 rows of flights.csv"),
        (f"{COUNTED}&up=2&more={APP}%237%3A24", "24 records"),
    ],
)
def test_an_address_that_was_sent_opens_the_same_trace(page, url, address, said):
    opens(page, url + address)
    expect(page.locator("main")).to_contain_text(said)


def test_more_records_are_drawn_when_asked_for_and_all_stand_in_a_table(page, url):
    opens(page, f"{url}{COUNTED}&up=2")
    part = page.locator(".trace-list .part", has_text="map (7)")
    expect(part).to_contain_text("4 of 24 records")
    few = elements(page)
    part.get_by_role("button", name="+20 more").click()
    expect(part.locator("tbody tr")).to_have_count(24)
    assert few < elements(page) <= 500
    page.get_by_role("link", name="24 rows of flights.csv").click()
    table = page.locator(".trace-table")
    expect(table.locator("tbody tr")).to_have_count(24)
    expect(table.get_by_role("heading")).to_be_focused()
    page.get_by_role("link", name="Close the table").click()
    expect(table).to_have_count(0)


@pytest.mark.thorough
def test_pointing_at_a_record_lights_up_its_way(page, url):
    opens(page, f"{url}#/app/{APP}/trace?node=6&partition=0&offset=0&whole=1")
    page.locator(".trace-list .part", has_text="textFile (0)").locator("tbody tr").first.hover()
    lit = page.locator(".trace-list tr.lit")
    expect(lit.first).to_be_visible()
    keys = lit.evaluate_all("rows => rows.map((row) => row.dataset.key)")
    assert any(key.startswith(f"{APP}#8#write") for key in keys)
    assert not any(key.startswith(f"{APP}#3#read") for key in keys)
    expect(page.locator(".trace-panel")).to_contain_text("In the trace")


@pytest.mark.thorough
def test_values_on_the_way_are_told_or_how_to_get_them(page, url):
    opens(page, url + SAVED)
    expect(page.locator(".values")).to_contain_text("keyBy (2)")
    page.goto(f"{url}#/app/{RUNNING}/trace?node=1&partition=0&offset=0")
    expect(page.locator(".values")).to_contain_text("spark.lineage.detailed=true")
    expect(page.locator(".trace-notices")).to_contain_text("Incomplete: ")
    expect(page.locator(".trace-list")).to_contain_text("/data/tweets.txt is gone")


def test_a_changed_file_is_told_where_its_rows_are_shown(page, url):
    opens(page, f"{url}{SAVED}&whole=1")
    expect(page.locator(".trace-list .part", has_text="textFile (3)")).to_contain_text(CHANGED)


def test_a_way_goes_into_neo4j_from_the_page(page, url):
    opens(page, f"{url}{SAVED}&direction=backward")
    page.get_by_role("button", name="Write to Neo4j").click()
    expect(page.locator("main")).to_contain_text("9 records and 8 links are in Neo4j")
    expect(page.locator("main")).to_contain_text("MATCH (f:LineageFlow")


def test_markup_in_the_data_stays_text(page, url):
    opens(page, f"{url}#/app/{APP}/trace?node=3&partition=0&offset=1&whole=1")
    expect(page.locator("h1")).to_contain_text(MARKUP[:20])
    assert page.locator("main img").count() == 0


@pytest.mark.thorough
def test_a_way_that_comes_from_another_application_marks_the_border(page, tmp_path: Path):
    colours = tmp_path / "colours.txt"
    colours.write_text("red\ngreen\nblue\n")
    applications = Applications(tmp_path / "home")
    applications.copy("first", 100, colours, tmp_path / "a")
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b")
    with served(create_app(applications.questions)) as url:
        opens(page, f"{url}#/app/second/trace?node=1&partition=0&offset=1")
        expect(page.locator(".trace-panel .foreign")).to_have_text("first")
        page.get_by_role("link", name="Whole trace").click()
        expect(page.locator(".trace-list .part")).to_have_count(4)
        border = page.locator(".trace-list .part", has_text="in another application: first")
        expect(border).to_have_count(2)
        border.first.locator("tbody a").first.click()
        expect(page).to_have_url(re.compile("#/app/first/trace"))
        expect(page.locator("h1")).to_have_text("green")
        expect(page.locator(".trace-panel .foreign")).to_have_text("second")


# -- what is large ------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_record_with_a_hundred_thousand_sources_is_sampled_counted_listed_and_saved(page, large):
    opens(page, f"{large}#/app/{MANY}/trace?node={SINK}&partition=0&offset=0&whole=1")
    part = page.locator(".trace-list .part", has_text=f"textFile ({SOURCE})")
    expect(part).to_contain_text("4 of 100,000 records")
    expect(page.locator(".trace-left")).to_contain_text(
        "A sample is drawn: 6 of 100,002 records of 3 operations"
    )
    assert elements(page) <= 500
    for drawn in (24, 44, 64):
        part.get_by_role("button", name=re.compile(r"\+.* more")).click()
        expect(part.locator("tbody tr")).to_have_count(drawn)
        assert elements(page) <= 500
    page.get_by_role("link", name="100,000 rows of readings.csv").click()
    table = page.locator(".trace-table")
    expect(table).to_contain_text("1 to 100 of 100,000 records")
    far = "Stands out: readings.csv:501: column 2 1,048, the others 0 to 42"
    expect(table.locator(".outlier")).to_contain_text(far)
    expect(page.locator(".trace-panel .outlier")).to_contain_text(far)
    for _ in range(10):
        table.get_by_role("button", name="Next").click()
    expect(table).to_contain_text("1,001 to 1,100 of 100,000 records")
    expect(table).to_contain_text("readings.csv:1001")
    with page.expect_download() as saved:
        table.get_by_role("button", name="All as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert len(lines) == SOURCES + 1
    assert lines[501].endswith('"station 0,1048",')
    print("tasks of more than 50 ms:", [round(task) for task in long_tasks(page)])


@pytest.mark.thorough
def test_what_is_beyond_the_drawing_leads_to_the_table(page, large):
    more = quote(f"{MANY}#{SOURCE}:200", safe="")
    opens(page, f"{large}#/app/{MANY}/trace?node={GROUP}&partition=0&offset=0&more={more}")
    assert 400 < elements(page) <= 500
    part = page.locator(".trace-list .part", has_text=f"textFile ({SOURCE})")
    expect(part.locator("tbody tr")).to_have_count(200)
    part.get_by_role("button", name="+99,800 more").click()
    expect(page.locator(".trace-table")).to_contain_text("1 to 100 of 100,000 records")


@pytest.mark.thorough
def test_a_way_of_five_hundred_operations_stays_within_the_measure(page, large):
    opens(page, f"{large}#/app/{LARGE}/trace?node=499&partition=0&offset=7&whole=1")
    few = elements(page)
    assert few < 100
    expect(page.locator(".trace-left")).to_contain_text("in the middle as")
    expect(page.locator(".trace-list")).to_contain_text("Operations that are not drawn")
    expect(page.locator(".trace-panel")).to_contain_text("rows.txt")
    page.get_by_role("application").focus()
    while "click to show each" not in page.locator("#status").inner_text():
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("unfold="))
    page.wait_for_function(
        f"() => Number(document.querySelector('.trace-frame[data-elements]')?.dataset.elements) > {few}"
    )
    assert elements(page) <= 500
    print("tasks of more than 50 ms:", [round(task) for task in long_tasks(page)])


class Spent(MemoryQueries):
    """Takes too long at first, and tells what was found so far."""

    patience = 0

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        if query.cursor is None and query.depth is None and self.patience == 0:
            error = TimeBudgetError("the query took longer than its 30 s")
            error.next = "0"
            raise error
        answer = super().trace(application_id, query)
        return replace(answer, nodes=answer.nodes[:3]) if self.patience == 0 else answer


def test_a_trace_that_takes_too_long_shows_what_was_found_and_goes_on(page):
    slow = Spent([run(60), still_running()])
    with served(create_app(slow)) as url:
        opens(page, f"{url}{SAVED}&whole=1&direction=backward")
        expect(page.locator(".trace-notices")).to_contain_text("This is what was found so far")
        expect(page.locator(".trace-list .part")).to_have_count(3)
        slow.patience = 1
        page.locator(".trace-notices").get_by_role("button", name="Continue the trace").click()
        expect(page.locator(".trace-list .part")).to_have_count(9)
        expect(page.locator(".trace-notices")).to_be_empty()
        slow.patience = 0
        opens(page, f"{url}{SAVED}&direction=backward")
        expect(page.locator(".trace-panel")).to_contain_text("This is what was found so far")
        slow.patience = 1
        page.locator(".trace-panel").get_by_role("button", name="Continue the trace").click()
        expect(page.locator(".trace-panel")).to_contain_text("1 row of weather.csv")
    assert all("504" in error for error in page.errors)
    page.errors.clear()


def test_a_record_that_is_not_there_and_a_service_that_is_away_are_told(page, url):
    page.goto(f"{url}#/app/{APP}/trace?node=8&partition=0&offset=99999")
    expect(page.get_by_role("alert")).to_contain_text("there is no such record")
    page.route("**/api/**", lambda route: route.abort())
    page.goto(url + SAVED)
    expect(page.get_by_role("alert")).to_contain_text("Is `lineage serve` still running?")
    page.unroute("**/api/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".trace-frame[data-elements]")).to_be_visible()
    page.errors.clear()


# -- keys, and what it looks like ---------------------------------------------------------------------


@pytest.mark.thorough
def test_a_way_is_walked_by_keys(page, url):
    opens(page, f"{url}{SAVED}&whole=1")
    drawing = page.get_by_role("application")
    drawing.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#status")).to_contain_text("map (7); 1 input, 1 output")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#status")).to_contain_text("join (6); 2 inputs, 1 output")
    expect(page.locator(".trace-list tr.lit")).to_have_count(9)
    page.keyboard.press("ArrowLeft")
    first = page.locator("#status").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.locator("#status").inner_text() != first
    page.keyboard.press("ArrowUp")
    assert page.locator("#status").inner_text() == first
    page.keyboard.press("Escape")
    expect(page.locator(".trace-list tr.lit")).to_have_count(0)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("node=7&partition=0&offset=3&whole=1"))


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious_on_a_way(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        for address in (SAVED, f"{COUNTED}&whole=1", f"{COUNTED}&list={APP}%230"):
            page.goto("about:blank")
            opens(page, url + address)
            assert violations(page) == [], address
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        page.goto(f"{url}#/app/{RUNNING}/trace?node=1&partition=0&offset=0")
        expect(page.locator(".values")).to_contain_text("spark.lineage.detailed=true")
        assert violations(page) == []
        assert page.errors == []
