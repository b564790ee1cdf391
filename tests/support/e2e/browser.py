"""Debian's Chromium driven by Playwright, and what tests of the page ask it.

Everything that the console calls an error, or that nothing has caught, fails the test, unless the test says
that it has seen it. The page has to be built (`make page`).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, expect

from lineage_api.limits import MAX_HEADER_BYTES, MAX_TARGET

ROOT = Path(__file__).parents[3]
AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
#: A laptop's.
SIZE = {"width": 1366, "height": 768}
DEADLINE_MS = 60_000
expect.set_options(timeout=DEADLINE_MS)

#: Collects tasks of more than 50 ms, from before the page's first script on.
_LONG_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longTasks.push({ at: task.startTime, took: task.duration });
}).observe({ type: "longtask", buffered: true });
"""


def is_page_built() -> bool:
    return (ROOT / "ui" / "lineage_page" / "dist" / "index.html").is_file()


def launch(playwright: Playwright, path: str) -> Browser:
    # The sandbox of Chromium refuses to run for root.
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-quic"])


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page of its own, with nothing kept from others. `page.errors` is what went wrong in it."""
    context = browser.new_context(viewport=SIZE, **{"locale": "en-GB", **options})
    context.set_default_timeout(DEADLINE_MS)
    page = context.new_page()
    page.add_init_script(_LONG_TASKS)
    errors: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.errors = errors  # type: ignore[attr-defined]  # one object for a test to hold
    try:
        yield page
    finally:
        context.close()


def long_tasks(page: Page) -> list[float]:
    """How long each task of more than 50 ms took, in milliseconds."""
    return [task["took"] for task in page.evaluate("window.longTasks")]


def violations(page: Page) -> list[str]:
    """What axe finds serious or critical, in words, once nothing on the page is paler for being asked for."""
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: "
        + "; ".join(f"{node['html'][:200]} {node['failureSummary'][:300]}" for node in each["nodes"][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The address of the application, over HTTP, while the block lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app,
            log_level="warning",
            log_config=None,
            h11_max_incomplete_event_size=2 * (MAX_TARGET + MAX_HEADER_BYTES),  # as `lineage serve`
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()
