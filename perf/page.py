"""Measures how long the page blocks its browser, and writes the result as JSON and as Markdown.

    python -m perf.page [--rounds 5] [--note TEXT]

Chromium opens each view over a real flow store: small applications, one of 500 operations closed and as far
open as it is drawn, records, the lag, and ways of records with 100,000 sources and of 500 operations. For
each: the longest task of the page's main thread, which the reader feels as a block, in time on the processor
and in time that passed (the same on a machine with nothing else to do), and how long until the view stood.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Page, sync_playwright

from perf.capture.__main__ import about_machine
from scripts.screenshots import chromium as find_chromium
from tests.support import api_store
from tests.support import wide_application as many_sources
from tests.support.e2e import browser as chromium
from tests.support.large_application import LARGE, tell

RESULTS = Path(__file__).parent / "results"
TARGET_MS = 100


def _drawn(page: Page) -> None:
    page.locator("[data-elements]").wait_for()


def _rows(page: Page) -> None:
    page.locator("tbody tr").first.wait_for()


def _open_all(page: Page) -> None:
    _drawn(page)
    page.get_by_role("button", name="Open all stages").click()
    page.locator(".notice.caution").wait_for()


def _walk(page: Page) -> None:
    _drawn(page)
    page.locator(".canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "+", "+", "-", "0"):
        page.keyboard.press(key)


def _counted(page: Page) -> None:
    _drawn(page)
    page.locator(".trace-panel .endpoints").first.get_by_role("listitem").wait_for()


def _walk_way(page: Page) -> None:
    _counted(page)
    page.get_by_role("application").focus()
    for key in ("ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown", "+", "-", "Escape"):
        page.keyboard.press(key)


def _save(page: Page) -> None:
    page.locator(".trace-table tbody tr").first.wait_for()
    with page.expect_download():
        page.get_by_role("button", name="All as CSV").click()


SOURCES = 100_000
_MANY = f"#/app/{many_sources.MANY}/trace?node={many_sources.GROUP}&partition=0&offset=0"
_SOURCE = quote(f"{many_sources.MANY}#{many_sources.SOURCE}", safe="")

#: (what is done, address, until it stands)
VIEWS: tuple[tuple[str, str, Callable[[Page], None]], ...] = (
    ("the list of applications", "#/applications", _rows),
    ("a graph of 2 operations", f"#/app/{api_store.HALF}", _drawn),
    ("a graph of 500 operations, stages closed", f"#/app/{LARGE}", _drawn),
    ("a graph of 500 operations, 500 elements drawn", f"#/app/{LARGE}", _open_all),
    ("a graph of 500 operations, walked by keys", f"#/app/{LARGE}", _walk),
    ("records of an operation", f"#/app/{LARGE}/nodes/3", _rows),
    ("the lag", "#/lag", _rows),
    ("the way of a record with 100,000 sources", f"{_MANY}&whole=1", _counted),
    ("the same, 200 of them drawn", f"{_MANY}&more={_SOURCE}%3A200", _counted),
    ("the same, walked by keys", f"{_MANY}&more={_SOURCE}%3A200", _walk_way),
    ("the same as a table, saved as CSV", f"{_MANY}&list={_SOURCE}", _save),
    (
        "a way of 500 operations",
        f"#/app/{LARGE}/trace?node=499&partition=0&offset=7&whole=1",
        _counted,
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    path = find_chromium()
    if path is None or not chromium.is_page_built():
        raise SystemExit("perf.page: needs Chromium (apt-get install chromium) and the page (make page)")
    with tempfile.TemporaryDirectory() as name:
        store = api_store.build(Path(name))
        tell(store, Path(name) / "rows.txt")
        many_sources.tell(store, Path(name), SOURCES)
        with chromium.served(api_store.service(store)) as url, sync_playwright() as playwright:
            browser = chromium.launch(playwright, path)
            about = about_machine("perf.page", options.note) | {"Chromium": browser.version}
            measured = [_measure(browser, url, *view, rounds=options.rounds) for view in VIEWS]
            browser.close()
    options.results.mkdir(parents=True, exist_ok=True)
    file = options.results / f"page-{date.today()}"
    result = {"about": about, "rounds": options.rounds, "views": measured}
    file.with_name(f"{file.name}.json").write_text(json.dumps(result, indent=1) + "\n")
    page = file.with_name(f"{file.name}.md")
    page.write_text(_markdown(result))
    print(page.read_text())
    return 0


def _measure(
    browser: Browser, url: str, what: str, address: str, stands: Callable[[Page], None], *, rounds: int
) -> dict[str, Any]:
    busy, passed, took, elements = [], [], [], 0
    for _ in range(rounds):
        with chromium.opened(browser) as page:
            browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline", "-*"])
            began = time.perf_counter()
            page.goto(url + address)
            stands(page)
            took.append(1000 * (time.perf_counter() - began))
            page.wait_for_timeout(300)  # what comes after the view stands counts, too
            tasks = _tasks(browser.stop_tracing(), url)
            busy.append(max(cpu for cpu, _ in tasks))
            passed.append(max(wall for _, wall in tasks))
            drawing = page.locator("[data-elements]")
            if drawing.count():
                elements = int(drawing.get_attribute("data-elements") or 0)
    return {
        "what": what,
        "longest task, processor ms": busy,
        "longest task, passed ms": passed,
        "stands after, ms": took,
        "elements drawn": elements,
    }


def _tasks(trace: bytes, url: str) -> list[tuple[float, float]]:
    """(processor time, time that passed) of each task of the page's main thread, in milliseconds.

    Chromium shows pages of its own (what drops down from its address field) in renderers of their own,
    whenever it likes; their main threads do not hold up ours.
    """
    events = json.loads(trace)["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "CommitLoad" and event["args"]["data"]["url"].startswith(url)
    }
    return [
        (event.get("tdur", 0) / 1000, event["dur"] / 1000)
        for event in events
        if event["ph"] == "X" and event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in mains
    ]


def _markdown(result: dict[str, Any]) -> str:
    about = "\n".join(f"- {name}: {value}" for name, value in result["about"].items())
    rows = "\n".join(
        f"| {view['what']} | {view['elements drawn'] or ''} "
        f"| {median(view['longest task, processor ms']):.0f} | {max(view['longest task, processor ms']):.0f} "
        f"| {median(view['longest task, passed ms']):.0f} | {median(view['stands after, ms']):.0f} |"
        for view in result["views"]
    )
    return f"""# What the page does to a browser

`python -m perf.page`: each view opened {result["rounds"]} times in a headless Chromium, over a real flow
store. Nothing should block the page for longer than {TARGET_MS} ms. The longest task of its main thread
is told in time on the processor, and in time that passed, which is more where other programs run beside it.
Milliseconds; medians of the rounds where nothing else is said.

| view | elements drawn | longest task: processor | most of all rounds | passed | the view stands after |
|---|---|---|---|---|---|
{rows}

{about}
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf.page", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each view is opened")
    parser.add_argument("--note", default="", help="goes into the result")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the result")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
