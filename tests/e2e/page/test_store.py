"""A real browser on the page, over a real flow store: an application of 500 operations, and the lag page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from tests.support import api_store
from tests.support.e2e.browser import long_tasks, opened, served, violations
from tests.support.lanes import sampled
from tests.support.large_application import LARGE, tell


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("store")
    store = api_store.build(folder)
    tell(store, folder / "rows.txt")
    with served(api_store.service(store)) as address:
        yield address


def elements(page) -> int:
    return int(page.locator(".canvas[data-elements]").get_attribute("data-elements"))


@pytest.mark.thorough
def test_five_hundred_operations_are_drawn_by_stages_and_listed_whole(page, url):
    page.goto(f"{url}#/app/{LARGE}")
    expect(page.locator(".operations tbody tr")).to_have_count(500)
    expect(page.locator("main")).to_contain_text("0 of 500 operations are drawn individually")
    assert elements(page) <= 500
    assert "incomplete" not in page.locator("main").inner_text()
    page.get_by_role("button", name="Open all stages").click()
    expect(page.locator("main")).to_contain_text("The drawing has no room for all of 25 stages")
    assert 400 < elements(page) <= 500
    print("tasks of more than 50 ms:", [round(task) for task in long_tasks(page)])


@pytest.mark.thorough
def test_a_stage_of_many_is_opened_by_the_keys(page, url):
    page.goto(f"{url}#/app/{LARGE}")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    before = elements(page)
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".details")).to_contain_text("Stage 1 (closed): 20 operations")
    page.keyboard.press("Enter")
    expect(page.locator(".canvas[data-elements]")).not_to_have_attribute("data-elements", str(before))
    expect(page).to_have_url(re.compile(r"open=0$"))
    expect(page.locator("main")).to_contain_text("20 of 500 operations are drawn individually")


def test_records_of_a_real_store_come_with_their_rows(page, url):
    page.goto(f"{url}#/app/{api_store.APP}/nodes/0?text=paid")
    expect(page.locator("main")).to_contain_text("North,paid,10")
    expect(page.locator("main")).to_contain_text("orders.csv:2")
    page.goto(f"{url}#/app/{api_store.HALF}")
    expect(page.locator(".notice.caution")).to_contain_text("What is missing")


def test_the_lag_is_followed_while_it_is_seen(page, url):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/api/lag" in request.url else None)
    page.goto(f"{url}#/lag")
    expect(page.locator("main")).to_contain_text("1 message is waiting")
    expect(page.locator(".figure", has_text="Consumers")).to_contain_text("2")
    expect(page.locator("tbody tr", has_text="Half told")).to_be_visible()
    with page.expect_response("**/api/lag"):  # one more, by itself
        pass
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Pause")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Half told").click()
    expect(page.locator("h1")).to_contain_text("Half told")
    count = len(asked)
    page.wait_for_timeout(2_500)  # longer than the pause between two looks
    assert len(asked) == count, "a view that was left still asks"


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious_on_large_and_live_views(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        page.goto(f"{url}#/lag")
        expect(page.locator("main")).to_contain_text("1 message is waiting")
        assert violations(page) == []
        page.goto(f"{url}#/app/{LARGE}")
        expect(page.locator(".canvas[data-elements]")).to_be_visible()
        assert violations(page) == []
        assert page.errors == []


def test_a_row_that_is_in_no_output_says_at_which_operation_it_ended(page, url):
    page.goto(f"{url}#/app/{api_store.APP}/trace?node=0&partition=0&offset=3")
    page.get_by_role("link", name="Why is it not in the output?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Why is it not in the output?")
    expect(page.locator("main")).to_contain_text("North,open,90")
    end = page.locator(".end")
    expect(end.locator("dd").last).to_contain_text("filter (1)")
    expect(end).to_contain_text("filter: its function was not true of it")
    assert violations(page) == []
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text(f"lineage missing {api_store.APP} ")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="its trace").click()
    expect(page.locator(".trace-panel")).to_contain_text("North,open,90")
    page.go_back()
    page.locator(".end").get_by_role("link").first.click()
    expect(page.locator("h1")).to_contain_text("Sums by shop")
    page.go_back()
    page.go_back()
    expect(page.locator(".trace-panel")).to_contain_text("North,open,90")
