"""A real browser on the page, over the API with the in-memory twin."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
import uvicorn
from fastapi import FastAPI

from api.access import Access
from api.app import create_app
from tests.e2e import chromium
from tests.unit.flights_and_weather import APP, CHANGED, MARKUP, RUNNING, materialize, questions


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(questions(), materialize=materialize)) as address:
        yield address


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Page]:
    path = chromium.find()
    if path is None:
        if os.environ.get("LINEAGE_TEST_CHROMIUM") == "required":  # what .ci/run says
            pytest.fail("no Chromium", pytrace=False)
        pytest.skip("no Chromium: apt-get install chromium")
    with chromium.opened(path) as page:
        yield page


@pytest.fixture
def page(browser: chromium.Page) -> Iterator[chromium.Page]:
    browser.errors.clear()
    browser.go("about:blank")
    yield browser
    assert browser.errors == []


def test_from_the_list_to_a_records_way_and_back(page, url):
    page.go(url)
    page.until_text("incomplete: 3 blocks missing, 40 dropped")
    page.click("td a", "delays.py")
    page.until("document.querySelectorAll('svg .node').length === 11")
    assert "84" in page.evaluate(
        "[...document.querySelectorAll('svg .flows')].map((each) => each.lastChild.textContent)"
    )
    page.click("svg a[aria-label*='/data/delayed']")
    page.until_text("72 records, 50 on this page")
    page.click("a", "write#0#1")
    page.until_text("Where it came from")
    page.until_text("flights.csv:")
    page.until_text(CHANGED)
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.evaluate("history.back()")
    page.until_text("72 records, 50 on this page")


def test_an_address_that_was_sent_opens_the_same_trace(page, url):
    path = quote("/data/weather.csv", safe="")
    page.go(f"{url}#/app/{APP}/trace?path={path}&row=1")
    page.until_text("What became of it")
    assert page.evaluate("document.title") == "read#0#1 of textFile · Lineage Master"
    assert "Not exact: the way through mapPartitions (9)" in page.text()
    assert "Nothing came before it." in page.text()


def test_layers_follow_the_graph(page, url):
    page.go(f"{url}#/app/{APP}/trace?node=8&partition=0&offset=0&direction=backward")
    page.until("document.querySelectorAll('.backward .layer').length === 5")
    sides = page.evaluate(
        "[...document.querySelectorAll('.backward .layer')].map((each) =>"
        " [...each.querySelectorAll('h3 .number')].map((number) => number.textContent).join(' '))"
    )
    assert sides == ["0 3", "1 4", "2 5", "6", "7"]


def test_a_truncated_trace_says_so_and_leads_on(page, url):
    page.go(f"{url}#/app/{APP}/trace?node=10&partition=1&offset=0&direction=backward&limit=5")
    page.until_text("Truncated: at most 5 records of each operation are listed here.")
    page.until_text("24 records, 5 listed")
    page.click("a", "Next page")
    page.until("location.hash.includes('cursor=5')")
    page.until_text("First page")


def test_an_incomplete_application_says_so(page, url):
    page.go(f"{url}#/app/{RUNNING}/trace?node=1&partition=0&offset=0")
    page.until_text("Incomplete: ")
    page.until_text("no text to show")
    page.click("summary", "Its values on the way")
    page.evaluate("document.querySelector('details').open = true")
    page.until_text("spark.lineage.detailed=true")


def test_records_are_searched_and_paged(page, url):
    page.go(f"{url}#/app/{APP}/nodes/0")
    page.until_text("261 records, 50 on this page")
    page.click("a", "Next page")
    page.until_text("read#0#50")
    page.evaluate("document.querySelector('input[name=text]').value = 'UA1001,'")
    page.click("button", "Search")
    page.until_text("1 match, 1 on this page")
    assert "text=UA1001" in page.evaluate("location.hash")


def test_a_trace_goes_into_neo4j_from_the_page(page, url):
    page.go(f"{url}#/app/{APP}/trace?node=8&partition=0&offset=0")
    page.click("button", "Put into Neo4j")
    page.until_text("9 records and 8 links stand in Neo4j")
    page.until_text("MATCH (f:LineageFlow")


def test_pointing_at_a_record_lights_up_its_way(page, url):
    page.go(f"{url}#/app/{APP}/trace?node=6&partition=0&offset=0")
    page.until("document.querySelectorAll('tr[data-hash]').length > 6")
    page.evaluate(
        "document.querySelector('tr[data-hash*=\"#0#read\"]')"
        ".dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))"
    )
    lit = page.evaluate("[...document.querySelectorAll('tr.lit')].map((each) => each.dataset.hash)")
    assert any(each.startswith(f"{APP}#8#write") for each in lit)
    assert not any(each.startswith(f"{APP}#3#read") for each in lit)


def test_markup_in_the_data_stays_text(page, url):
    page.go(f"{url}#/app/{APP}/nodes/3")
    page.until_text(MARKUP)
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    page.go(f"{url}#/app/{quote(MARKUP, safe='')}")
    page.until_text("there is no application")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert (
        page.errors == ["Failed to load resource: the server responded with a status of 404 (Not Found)"] * 2
    )
    page.errors.clear()


def test_failures_are_told_and_can_be_tried_again(page, url):
    page.go(url)
    page.until_text("delays.py")
    page.evaluate("window.real = fetch; window.fetch = () => Promise.reject(new TypeError('down')); 0")
    page.click("td a", "delays.py")
    page.until_text("The service does not answer")
    page.evaluate("window.fetch = window.real; 0")
    page.click("button", "Try again")
    page.until("document.querySelectorAll('svg .node').length === 11")
    page.evaluate("location.hash = '#/nowhere'")
    page.until_text("This page has no such view.")


def test_the_page_asks_for_the_token_once(page):
    token, unauthorized = "the-token-of-a-test", "the server responded with a status of 401 (Unauthorized)"
    with served(create_app(questions(), materialize=materialize, access=Access.of(token))) as url:

        def give(text: str) -> None:
            page.until_text("This service asks for its token")
            page.evaluate(f"document.querySelector('input[name=token]').value = '{text}'")
            page.click("button", "Go on")

        page.go(f"{url}#/app/{APP}/trace?node=8&partition=0&offset=0")
        give("another-token-than-that")
        page.until_text("That is not this service's token.")
        give(f" {token} ")
        page.until_text("Where it came from")
        page.click("button", "Put into Neo4j")
        page.until_text("9 records and 8 links stand in Neo4j")
        page.go(f"{url}#/")
        page.until_text("delays.py")
        assert token not in page.evaluate("location.href + document.cookie + JSON.stringify(localStorage)")
    assert len(page.errors) >= 2
    assert all(unauthorized in each for each in page.errors)
    page.errors.clear()
