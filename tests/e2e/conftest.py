"""The browser of the page's tests: one for a module, a page of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


# Of a module, not of the session: its loop runs in this thread, and other tests start loops of their own.
@pytest.fixture(scope="module")
def browser(without: Callable[[str, str], NoReturn]) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    from scripts.screenshots import chromium
    from tests.e2e.browser import AXE, is_page_built, launch

    path = chromium()
    if path is None:
        without("CHROMIUM", "no Chromium: apt-get install chromium")
    if not is_page_built() or not AXE.is_file():
        without("NODE", "the page is not built: make page (it needs Node.js)")
    with sync_playwright() as playwright:
        made = launch(playwright, path)
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    from tests.e2e.browser import opened

    with opened(browser) as made:
        yield made
        assert made.errors == []  # type: ignore[attr-defined]  # as `opened` makes it
