"""Neo4j Browser itself: it takes the style and the saved queries that are dropped on it, and uses them."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Page, expect

import lineage_cypher
from lineage_cypher import browser as browser_files
from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.devstack.errors import DownloadError, JavaError
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.graph.trace_rows import GraphRecord
from lineage_service.settings import Settings
from scripts.screenshots import chromium, opened_pages, run_in_browser
from tests.support.graphs import node, started

pytestmark = pytest.mark.thorough

DEADLINE_MS = 60_000
#: What a page does when a file is let go over it.
DROP = """
([name, text]) => {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name));
  const place = document.querySelector('.filedrop');
  for (const type of ['dragenter', 'dragover', 'drop'])
    place.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: data}));
}
"""


@pytest.fixture(scope="module")
def addresses(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[dict[str, str]]:
    """The local stack's Neo4j: a Neo4j that tests are given may have no Browser."""
    home = tmp_path_factory.mktemp("browser") / "home"
    try:
        yield dict(start(Settings(home=home), only="neo4j", jars=jar_folder).servers["neo4j"].addresses)
    except (DownloadError, JavaError) as error:
        cannot_have(str(error))
    finally:
        stop(home)


@pytest.fixture(scope="module")
def page(addresses: dict[str, str], without: Callable[[str, str], NoReturn]) -> Iterator[Page]:
    """Browser, connected: without authentication it connects by itself."""
    path = chromium()
    if path is None:
        without("CHROMIUM", "no Chromium: apt-get install chromium")
    with opened_pages(path) as opened:
        page = opened()
        page.set_default_timeout(DEADLINE_MS)
        page.goto(addresses["browser"])
        yield page


@pytest.fixture(scope="module")
def app(addresses: dict[str, str]) -> Iterator[str]:
    """A line that is read, changed, and written."""
    app, store = f"app-{uuid.uuid4().hex}", Neo4jGraph(addresses["bolt"])
    ids = [f"{app}#0#read#0#0", f"{app}#1#0#0", f"{app}#2#write#0#0"]
    records = [
        GraphRecord(flow_id=each, node=number, hash_in=None, hash_out=each, val=f"value {number}")
        for number, each in enumerate(ids)
    ]
    kinds = {0: ("textFile", "source"), 1: ("map", "operator"), 2: ("saveAsTextFile", "sink")}
    events = [node(app, number, name, kind=kind) for number, (name, kind) in kinds.items()]
    store.write_events([started(app), *events])
    store.write_trace(app, records, [(ids[0], ids[1]), (ids[1], ids[2])])
    yield app
    store.close()


def drop(page: Page, name: str, content: bytes) -> None:
    page.evaluate(DROP, [name, base64.b64encode(content).decode()])


def drawn(page: Page) -> dict[str, str]:
    """The colour of each node that is drawn, by its caption."""
    found: dict[str, str] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('svg.neod3viz g.node')].map((each) => [
          [...each.querySelectorAll('text.caption')].map((line) => line.textContent.trim()).join(' '),
          each.querySelector('circle.b-outline').getAttribute('fill')]))"""
    )
    return found


def colour_of(label: str) -> str:
    return browser_files.rules()[f"node.{label}"]["color"]


def test_the_local_stacks_browser_connects_and_has_the_style_by_itself(page: Page, app: str) -> None:
    page.get_by_text("node.LineageFlow").first.wait_for()
    run_in_browser(page, lineage_cypher.pasted("show/backward", flowId=f"{app}#2#write#0#0"))
    expect(page.locator("g.node")).to_have_count(3, timeout=DEADLINE_MS)
    assert drawn(page) == {
        "textFile value 0": colour_of("LineageSource"),
        "map value 1": colour_of("LineageFlow"),
        "saveAsTextFile value 2": colour_of("LineageSink"),
    }


def test_a_style_that_is_dropped_is_taken(page: Page, app: str) -> None:
    run_in_browser(page, ":clear")
    run_in_browser(page, ":style reset")
    page.get_by_text("No styles yet").wait_for()
    drop(page, browser_files.STYLE_NAME, browser_files.style_sheet().encode())
    for selector in browser_files.rules():
        page.get_by_text(f"{selector} {{").first.wait_for()


def test_saved_queries_that_are_dropped_can_be_run(page: Page, app: str) -> None:
    drop(page, browser_files.QUERIES_NAME, browser_files.saved_queries())
    page.get_by_test_id("navigationFavorites").click()
    page.get_by_test_id(f"expandFolder-{browser_files.FOLDER}").click()
    for query in browser_files.SAVED_QUERIES:
        page.get_by_test_id(f"scriptTitle-{query.title}").wait_for()
    [backward] = [query for query in browser_files.SAVED_QUERIES if query.statement == "show/backward"]
    page.get_by_test_id(f"scriptTitle-{backward.title}").click()
    page.get_by_test_id("editor-Run").click()
    # The parameter and the statement; the example's record is none of this graph.
    expect(page.get_by_test_id("multi-statement-list-title")).to_have_count(2, timeout=DEADLINE_MS)
