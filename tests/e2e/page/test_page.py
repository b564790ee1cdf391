"""A real browser on the page: every view but the trace of a record, over the API with the in-memory twin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Route, expect

from lineage_api.access import Access
from lineage_api.app import create_app
from lineage_service.errors import UnavailableError
from lineage_service.lineage import Application, Graph
from lineage_service.testing.memory.lineages import MemoryLineage
from lineage_service.testing.queries import MemoryQueries
from tests.support.e2e.browser import opened, served, violations
from tests.support.flights_and_weather import APP, MARKUP, NAME, RUNNING, materialize, questions
from tests.support.lanes import sampled

NOT_FOUND = "Failed to load resource: the server responded with a status of 404 (Not Found)"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(questions(), materialize=materialize)) as address:
        yield address


# -- from view to view --------------------------------------------------------------------------------


def test_from_the_list_to_the_records_and_back(page, url):
    page.goto(f"{url}#/applications")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("main")).to_contain_text("incomplete: 3 blocks missing, 40 dropped")
    page.get_by_role("link", name="delays.py").click()
    expect(page.locator(".operations tbody tr")).to_have_count(11)
    expect(page.locator(".canvas[data-elements]")).to_have_attribute("data-elements", re.compile(r"^\d+$"))
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.locator(".operations tr", has_text="/data/delayed").get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("72 records, 50 on this page")
    expect(page).to_have_title("saveAsTextFile (8) · Lineage Master")
    page.go_back()
    expect(page.locator(".operations tbody tr")).to_have_count(11)
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_a_row_of_a_record_leads_to_its_trace(page, url):
    page.goto(f"{url}#/app/{APP}/nodes/8")
    page.locator("td code").nth(1).click()
    expect(page).to_have_url(re.compile(r"#/app/.*/trace\?node=8&partition=\d+&offset=\d+$"))
    page.go_back()
    expect(page.locator("main")).to_contain_text("72 records, 50 on this page")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("#/?text=tweet", "tweets"),
        ("#/?state=ended", "delays.py"),
        (f"#/app/{APP}", "saveAsTextFile"),
        (f"#/app/{APP}?open=none", "operations are drawn individually"),
        (f"#/app/{APP}/nodes/0?text=UA1001%2C", "1 match"),
        (f"#/app/{APP}/nodes/0?partition=1&offset=130", "read#1#"),
        ("#/nowhere", "This page has no such view."),
    ],
)
def test_an_address_that_was_sent_opens_the_same_view(page, url, address, said):
    page.goto(url + address)
    expect(page.locator("main")).to_contain_text(said)


@pytest.mark.thorough
def test_the_title_and_the_trail_say_where_one_is(page, url):
    page.goto(f"{url}#/app/{APP}/nodes/0")
    expect(page).to_have_title("textFile (0) · Lineage Master")
    expect(page.locator("#trail a")).to_have_text(["Applications", NAME])
    page.locator("#trail a").last.click()
    expect(page.locator("h1")).to_contain_text("delays.py")


# -- the list -----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_applications_are_searched_as_one_types(page, url):
    page.goto(f"{url}#/applications")
    page.get_by_label("Name or id").press_sequentially("twe")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "text=twe" in page.url
    page.get_by_label("Name or id").fill("nothing is called so")
    expect(page.locator("main")).to_contain_text("No application matches.")
    page.get_by_label("Name or id").fill("")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Lineage").select_option("complete")
    expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.thorough
def test_applications_come_in_pages(page, url):
    page.goto(f"{url}#/applications?limit=1")
    page.get_by_role("link", name="Older applications").click()
    expect(page.get_by_role("link", name="delays.py")).to_be_visible()
    page.get_by_role("link", name="Newest applications").click()
    expect(page.get_by_role("link", name="tweets")).to_be_visible()


def test_without_an_application_the_page_says_how_to_get_one(page):
    with served(create_app(MemoryQueries())) as url:
        page.goto(f"{url}#/applications")
        expect(page.locator("main")).to_contain_text("spark.lineage.enabled=true")


# -- an application -----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_stages_close_and_open_again(page, url):
    page.goto(f"{url}#/app/{APP}")
    canvas = page.locator(".canvas[data-elements]")
    expect(canvas).to_have_attribute("data-elements", "24")  # 11 operations, 10 edges, 3 stages
    page.get_by_role("button", name="Close all stages").click()
    expect(canvas).to_have_attribute("data-elements", "5")  # 3 stages, 2 lines
    assert page.url.endswith("?open=none")
    page.get_by_role("button", name="Open all stages").click()
    expect(canvas).to_have_attribute("data-elements", "24")


def test_an_application_says_what_is_missing(page, url):
    page.goto(f"{url}#/app/{RUNNING}")
    expect(page.locator(".notice.caution")).to_contain_text("its end has not arrived")
    expect(page.locator("main")).to_contain_text("still running")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    with page.expect_response("**/graph"):
        page.get_by_role("button", name="Refresh").click()
    expect(page.locator(".canvas[data-elements]")).to_be_visible()


def test_an_operation_without_an_exact_relation_says_so(page, url):
    page.goto(f"{url}#/app/{APP}")
    expect(page.locator(".operations")).to_contain_text("not exact: mapPartitions: any output of a split")
    page.goto(f"{url}#/app/{APP}/nodes/9")
    expect(page.locator(".notice.caution")).to_contain_text("Not exact: mapPartitions")


@pytest.mark.thorough
def test_an_application_without_operations_says_so(page):
    nothing = Application(
        application_id="empty",
        name="Empty",
        state="running",
        started=0,
        ended=None,
        complete=False,
        missing_blocks=0,
        counters={},
    )
    graph = Graph(application_id="empty", nodes=(), edges=())
    lineage = MemoryLineage(application=nothing, graph=graph, records={}, flows=())
    with served(create_app(MemoryQueries([lineage]))) as url:
        page.goto(f"{url}#/app/empty")
        expect(page.locator("main")).to_contain_text("This application has registered no operation yet.")


# -- records ------------------------------------------------------------------------------------------


def test_records_are_searched_and_paged(page, url):
    page.goto(f"{url}#/app/{APP}/nodes/0")
    expect(page.locator("main")).to_contain_text("261 records, 50 on this page")
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_role("link", name="read#0#50")).to_be_visible()
    page.get_by_label("Text in the record").fill("UA1001,")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("main")).to_contain_text("1 match")
    assert "text=UA1001" in page.url
    assert "cursor" not in page.url
    page.get_by_label("Text in the record").fill("no flight has this")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("main")).to_contain_text("No record matches.")


def test_all_records_are_had_as_csv(page, url):
    page.goto(f"{url}#/app/{APP}/nodes/0")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV of all").click()
    assert saved.value.suggested_filename == f"{APP}-0.csv"
    lines = saved.value.path().read_text().splitlines()
    assert len(lines) == 262
    assert lines[0].startswith("lineage.record_id,")
    assert lines[0].endswith(",flight,airport,hour,delay")
    expect(page.get_by_role("button", name="CSV: all 261 rows")).to_be_visible()


# -- keys ---------------------------------------------------------------------------------------------


def test_a_record_is_reached_without_a_mouse(page, url):
    page.goto(f"{url}#/applications")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="tweets")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="delays.py")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    page.locator(".canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("#status")).to_contain_text("operator")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Records")).to_be_visible()  # the graph has words like these, too
    expect(page.locator("main")).to_contain_text("21 records")
    page.keyboard.press("Shift+Tab")
    expect(page.locator("main [aria-busy], main[aria-busy]")).to_have_count(0)  # nothing else moves the focus
    page.locator("td a").first.focus()
    page.keyboard.press("End")
    expect(page.locator("tbody tr").last.locator("td a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/trace"))


@pytest.mark.thorough
def test_the_drawing_is_walked_by_arrows_and_says_where_it_is(page, url):
    page.goto(f"{url}#/app/{APP}")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator(".details").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator(".details").inner_text() != first
    assert page.locator("#status").inner_text() == page.locator(".details").inner_text()
    page.keyboard.press("Escape")
    expect(page.locator(".details")).to_contain_text("Point at an operation")


# -- what the page looks like -------------------------------------------------------------------------


@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious(browser, url, theme):
    views = {
        "#/": "delays.py",
        f"#/app/{APP}": "saveAsTextFile",
        f"#/app/{RUNNING}": "tweets.py:4",
        f"#/app/{APP}/nodes/8": "on this page",
        f"#/app/{APP}/nodes/9?text=late": "match",
        "#/nowhere": "no such view",
    }
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        for address, text in views.items():
            page.goto(url + address)
            expect(page.locator("main")).to_contain_text(text)
            if address == f"#/app/{APP}":
                expect(page.locator(".canvas[data-elements]")).to_be_visible()
            assert violations(page) == [], address
        assert page.errors == []


@pytest.mark.thorough
def test_the_theme_is_the_readers_choice(browser, url):
    with opened(browser, color_scheme="dark") as page:
        page.goto(f"{url}#/applications")
        background = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(background)
        page.locator("#theme").click()
        assert page.evaluate(background) != dark
        page.reload()
        expect(page.locator("#theme")).to_have_text("○ Light")
        assert page.evaluate(background) != dark
        page.locator("#theme").click()
        assert page.evaluate(background) == dark


@pytest.mark.thorough
def test_nothing_is_wider_than_a_laptop(page, url):
    for address in ("#/", f"#/app/{APP}", f"#/app/{APP}/nodes/8"):
        page.goto(url + address)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("tbody tr").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


# -- what goes wrong ----------------------------------------------------------------------------------


def test_markup_in_the_data_stays_text(page, url):
    page.goto(f"{url}#/app/{APP}/nodes/3")
    expect(page.locator("main")).to_contain_text(MARKUP)
    assert page.locator("main img").count() == 0
    page.goto(f"{url}#/app/{quote(MARKUP, safe='')}")
    expect(page.locator("main")).to_contain_text("no application")
    assert page.locator("main img").count() == 0
    assert set(page.errors) == {NOT_FOUND}
    page.errors.clear()


def test_a_service_that_is_away_is_told_and_can_be_tried_again(page, url):
    page.goto(f"{url}#/applications")
    expect(page.get_by_role("link", name="delays.py")).to_be_visible()
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_role("link", name="delays.py").click()
    expect(page.get_by_role("alert")).to_contain_text("Is `lineage serve` still running?")
    page.unroute("**/api/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".operations tbody tr")).to_have_count(11)
    page.errors.clear()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "address",
    ["#/", f"#/app/{APP}", f"#/app/{APP}/nodes/0", "#/lag"],
    ids=["list", "graph", "records", "lag"],
)
def test_every_view_tells_a_store_that_does_not_answer(page, url, address):
    def unavailable(route: Route) -> None:
        route.fulfill(
            status=503,
            headers={"Retry-After": "3"},
            content_type="application/problem+json",
            body='{"title": "The service cannot answer now", "detail": "the flow store is away"}',
        )

    page.route("**/api/**", unavailable)
    page.goto(url + address)
    expect(page.get_by_role("alert")).to_contain_text("the flow store is away")
    expect(page.locator("main")).to_contain_text("The service can be asked again in 3 s.")
    page.unroute("**/api/**")
    if address != "#/lag":
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("tbody tr").first).to_be_visible()
    page.errors.clear()


def test_a_question_that_is_out_of_time_says_so(page, url):
    page.route(
        "**/api/**/records**",
        lambda route: route.fulfill(
            status=504,
            content_type="application/problem+json",
            body='{"title": "The time budget is spent", "detail": "the search took longer than 30 s"}',
        ),
    )
    page.goto(f"{url}#/app/{APP}/nodes/0")
    expect(page.get_by_role("alert")).to_contain_text("the search took longer than 30 s")
    page.errors.clear()


def test_a_slow_answer_does_not_come_over_a_newer_one(page, url):
    held: list[Route] = []
    page.route("**/nodes/1/records**", lambda route: held.append(route))
    page.goto(f"{url}#/app/{APP}/nodes/1")
    expect(page.locator("h1")).to_be_visible()
    page.goto(f"{url}#/app/{APP}/nodes/8")
    expect(page.locator("main")).to_contain_text("72 records, 50 on this page")
    for route in held:
        route.abort()
    expect(page.locator("main")).to_contain_text("72 records, 50 on this page")
    page.errors.clear()


def test_the_page_asks_for_the_token_once(page):
    token, unauthorized = "the-token-of-a-test", "the server responded with a status of 401 (Unauthorized)"
    with served(create_app(questions(), materialize=materialize, access=Access.of(token))) as url:
        page.goto(f"{url}#/app/{APP}/nodes/8")
        expect(page.locator("h1")).to_have_text("This service requires a token")
        assert violations(page) == []
        page.get_by_label("Token").fill("another-token-than-that")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("The token is invalid.")
        page.get_by_label("Token").fill(f" {token} ")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("main")).to_contain_text("72 records, 50 on this page")
        page.goto(f"{url}#/applications")
        expect(page.get_by_role("link", name="delays.py")).to_be_visible()
        assert token not in page.evaluate("location.href + document.cookie + JSON.stringify(localStorage)")
    assert len(page.errors) >= 2
    assert all(unauthorized in error for error in page.errors)
    page.errors.clear()


class Down(MemoryQueries):
    def applications(self) -> tuple[Application, ...]:
        raise UnavailableError("the flow store /data/flows cannot be read")


@pytest.mark.thorough
def test_the_services_own_words_are_shown(page):
    with served(create_app(Down())) as url:
        page.goto(f"{url}#/applications")
        expect(page.get_by_role("alert")).to_contain_text("the flow store /data/flows cannot be read")
    page.errors.clear()
