"""A real browser on the failures of an application: above its graph, in it, and as a list."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from tests.support.e2e.browser import opened, served, violations
from tests.support.failed_applications import StoredFailures, run_failed
from tests.support.file_applications import APP
from tests.support.lanes import sampled

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A map that failed on one record in two attempts, and on another one; and a query with a batch."""
    stored = StoredFailures(tmp_path_factory.mktemp("failures"), [4])
    stored.add(
        run_failed(11, 10, record=["str", "c"]),
        run_failed(12, 11, record=["str", "c"]),
        run_failed(13, 12, position=1, message=MARKUP),
    )
    stored.add_query(first=1, position=2, certain=False, reason="Python was given rows in batches")
    with served(create_app(stored.queries)) as address:
        yield address


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(create_app(StoredFailures(tmp_path_factory.mktemp("healthy"), [4]).queries)) as address:
        yield address


def test_a_line_above_the_graph_names_operation_and_row(page, url):
    page.goto(f"{url}#/app/{APP}")
    notice = page.locator(".notice.failure", has_text="map failed")
    expect(notice.locator(".failure-line").last).to_have_text("map failed on line 2 of in.txt.")
    expect(page.locator(".tools")).to_contain_text("red frame: a task failed there")
    notice.get_by_role("link", name="All 3 failures").click()
    expect(page).to_have_title("Failures · Lineage Master")
    expect(page.locator(".failures-list > li")).to_have_count(3)


def test_an_application_without_failures_has_no_such_line(page, healthy):
    page.goto(f"{healthy}#/app/{APP}")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    expect(page.locator(".notice.failure")).to_have_count(0)
    page.goto(f"{healthy}#/app/{APP}/failures")
    expect(page.locator("main")).to_contain_text("No task of this application is known to have failed")


def test_the_list_says_what_is_known_of_each(page, url):
    page.goto(f"{url}#/app/{APP}/failures")
    failures = page.locator(".failures-list > li")
    of_query, of_two_attempts, of_another = (failures.nth(at) for at in range(3))
    expect(of_two_attempts.locator("h2")).to_have_text("ValueError: no number: 'c'")
    expect(of_two_attempts).to_contain_text("raised at etl.py:41")
    expect(of_two_attempts).to_contain_text("2 attempts, partition 0 of stage 2")
    expect(of_two_attempts).to_contain_text("yes: this record, and no other")
    expect(of_two_attempts).to_contain_text("in.txt:3 c")
    expect(of_query).to_contain_text("no: Python was given rows in batches")
    expect(of_query).to_contain_text("Input rows, perhaps")
    expect(of_query).to_contain_text("in.txt:2 b")
    expect(of_query.get_by_role("link", name="its trace")).to_have_count(0)
    expect(of_another.locator("h2")).to_contain_text(MARKUP)
    assert page.locator("main img").count() == 0


def test_a_failure_leads_to_the_trace_of_its_record_and_back(page, url):
    page.goto(f"{url}#/app/{APP}/failures")
    page.locator(".failures-list > li").nth(1).get_by_role("link", name="its trace").click()
    expect(page).to_have_url(re.compile(r"#/app/.*/trace\?failure=\d+$"))
    expect(page.locator("h1")).to_have_text("c")
    expect(page.locator("main")).to_contain_text("What a task that failed has captured does not count.")
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text(f"lineage trace {APP} backward --failure")
    page.keyboard.press("Escape")
    page.go_back()
    expect(page.locator(".failures-list > li")).to_have_count(3)
    expect(page.locator("#trail a")).to_have_text(["Applications", "job"])


def test_the_list_of_applications_counts_failed_tasks(page, url):
    page.goto(f"{url}#/applications")
    page.locator("tbody tr").get_by_role("link", name="4", exact=True).click()
    expect(page.locator(".failures-list > li")).to_have_count(3)


@pytest.mark.parametrize("width", [360, 1366])
def test_nothing_is_wider_than_the_screen(browser, url, width):
    with opened(browser) as page:
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{url}#/app/{APP}/failures")
        expect(page.locator(".failures-list > li")).to_have_count(3)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        for address, text in ((f"#/app/{APP}/failures", "no number"), (f"#/app/{APP}", "All 3 failures")):
            page.goto(url + address)
            expect(page.locator("main")).to_contain_text(text)
            assert violations(page) == [], address
        assert page.errors == []
