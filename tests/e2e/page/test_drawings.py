"""A real browser on the page: drawings as files, the map of them, equal branches; and queries as commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from lineage_service.lineage import Application, Edge, Graph, Node
from lineage_service.testing.queries import MemoryLineage, MemoryQueries
from tests.support.e2e.browser import opened, served, violations
from tests.support.flights_and_weather import APP, materialize, questions


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(questions(), materialize=materialize)) as address:
        yield address


def test_a_drawing_is_saved_as_svg_and_as_png(page, url):
    page.goto(f"{url}#/app/{APP}")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the drawing as SVG").click()
    assert saved.value.suggested_filename == "delays.py-graph.svg"
    drawing = ElementTree.parse(saved.value.path()).getroot()
    texts = {"".join(text.itertext()) for text in drawing.iter("{http://www.w3.org/2000/svg}tspan")}
    assert {"saveAsTextFile", "flights.csv", "Stage 1"} <= texts
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}polyline"))) == 10  # one for each edge
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the drawing as PNG").click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_a_map_shows_where_one_is_while_not_all_is_in_sight(page, url):
    page.goto(f"{url}#/app/{APP}")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    expect(page.locator(".minimap")).to_be_hidden()
    for _ in range(5):
        page.get_by_role("button", name="Zoom in").click()
    expect(page.locator(".minimap")).to_be_visible()
    before = page.locator(".minimap-frame").bounding_box()
    page.locator(".minimap canvas").click(position={"x": 4, "y": 4})
    page.wait_for_function(
        "before => document.querySelector('.minimap-frame').getBoundingClientRect().x < before",
        arg=before["x"],
    )
    page.get_by_role("button", name="Show all of the drawing").click()
    expect(page.locator(".minimap")).to_be_hidden()


@pytest.mark.thorough
def test_equal_branches_are_one_until_each_is_asked_for(page):
    names = ["textFile", "filter", "filter", "filter", "union"]
    nodes = [
        Node(
            node_id=f"branches#{number}",
            node=number,
            name=name,
            description="",
            kind="source" if number == 0 else "operator",
            call_site=f"job.py:{number}",
            exact=True,
            reason="",
            dataset=None,
            records=number,
            has_values=False,
        )
        for number, name in enumerate(names)
    ]
    pairs = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
    edges = [
        Edge(source=f"branches#{source}", target=f"branches#{target}", flows=1, shuffle=False)
        for source, target in pairs
    ]
    application = Application(
        application_id="branches",
        name="Branches",
        state="ended",
        started=0,
        ended=1,
        complete=True,
        missing_blocks=0,
        counters={},
    )
    graph = Graph(application_id="branches", nodes=tuple(nodes), edges=tuple(edges))
    lineage = MemoryLineage(application=application, graph=graph, records={})
    with served(create_app(MemoryQueries([lineage]))) as url:
        page.goto(f"{url}#/app/branches")
        canvas = page.locator(".canvas[data-elements]")
        expect(canvas).to_have_attribute("data-elements", "6")  # a stage, three operations, two lines
        expect(page.locator("main")).to_contain_text("a box with ×3 stands for as many operations")
        expect(page.locator(".operations tbody tr")).to_have_count(5)
        page.get_by_role("button", name="Show each branch").click()
        expect(canvas).to_have_attribute("data-elements", "12")
        expect(page).to_have_url(re.compile("branches=all"))
        page.get_by_role("button", name="Equal branches as one").click()
        expect(canvas).to_have_attribute("data-elements", "6")


@pytest.mark.thorough
def test_what_is_shown_can_be_copied_as_a_command(browser, url):
    with opened(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(f"{url}#/app/{APP}/nodes/0?text=UA1001")
        expect(page.locator("main")).to_contain_text("match")
        page.get_by_text("Copy command").click()
        page.get_by_role("button", name="Copy the command line").click()
        expect(page.get_by_text("Copied").first).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == f"lineage show {APP} 0 --text UA1001"
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator("#commands .commands")).to_be_hidden()
