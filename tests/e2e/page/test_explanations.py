"""A real browser on what decided a record: the switch, the rows, a loop turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from lineage_service.testing.queries import MemoryQueries
from tests.support.decided_labels import APP, SINK, labels
from tests.support.e2e.browser import opened, served, violations

START = f"record={quote('write#0#0', safe='')}&node={SINK}"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(MemoryQueries([labels()]))) as address:
        yield address


def test_the_switch_leads_to_the_rows_that_decided_and_back(page, url):
    page.goto(f"{url}#/app/{APP}/trace?{START}")
    page.get_by_role("link", name="Only what decided it").click()
    expect(page.locator("h1")).to_contain_text("What decided it part-00000:1 1,17")
    expect(page.locator(".size")).to_have_text("1 of 3 input rows · a plain trace: 3")
    expect(page.locator(".input-row").first).to_contain_text("edges.csv:1")
    expect(page.get_by_role("link", name="Only what decided it")).to_have_attribute("aria-current", "true")
    rules = page.locator("section[aria-label='What was left out'] tbody tr")
    expect(rules).to_contain_text("reduceByKey (1) at labels.py:31")
    expect(rules).to_contain_text("1 of 3")
    expect(page.locator("main")).to_contain_text("Given, because the program may have used values of it")
    page.get_by_role("link", name="Everything").click()
    expect(page.locator(".trace-tabs")).to_be_visible()


def test_a_loop_is_one_box_that_opens_turn_by_turn(page, url):
    page.goto(f"{url}#/app/{APP}/explanation?{START}")
    loop = page.locator(".loop")
    expect(loop.locator("h2")).to_have_text("Loop at labels.py:31: 1 turn decided")
    expect(loop.locator("summary")).to_have_text(
        ["Before the loop: 1 record", "Turn 1: 1 record; 1 row came in"]
    )
    turn = loop.locator("details").last
    expect(turn.get_by_role("link", name="edges.csv:1")).to_be_hidden()
    turn.locator("summary").click()
    expect(turn).to_contain_text("unchanged to turn 14")
    turn.get_by_role("link", name="edges.csv:1").click()
    expect(page.locator("h1")).to_contain_text("1,17")


def test_without_what_decided_it_is_called_a_bound_and_shows_data_as_text(page):
    with served(create_app(MemoryQueries([labels(has_winners=False)]))) as address:
        page.goto(f"{address}#/app/{APP}/explanation?{START}")
        expect(page.locator(".notice").first).to_contain_text("This is an upper bound")
        expect(page.locator("main")).to_contain_text("Nothing was captured that says which rows decided")
        expect(page.locator(".input-row code").nth(1)).to_have_text("1,<b>23")
        page.get_by_text("Copy command").click()
        expect(page.locator("#commands")).to_contain_text(f'lineage explain {APP} "write#0#0" --node {SINK}')


def test_a_record_that_is_not_there_is_refused_in_the_words_of_the_service(page, url):
    page.goto(f"{url}#/app/{APP}/explanation?record=9%239&node={SINK}")
    expect(page.get_by_role("alert")).to_contain_text("no such record")
    page.errors.clear()  # the browser's own words for the 404


def test_it_fits_a_phone_and_axe_finds_nothing_serious(browser, url):
    with opened(browser, reduced_motion="reduce") as page:
        page.set_viewport_size({"width": 390, "height": 800})
        for view in ("explanation", "trace"):
            page.goto(f"{url}#/app/{APP}/{view}?{START}")
            expect(page.get_by_role("link", name="Only what decided it")).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert violations(page) == [], view
        assert page.errors == []
