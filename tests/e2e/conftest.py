"""The browser of the page's tests: one for a module, a page of its own for each test. The clone of those that
install the product: one for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.support.e2e.clone import Clone


# Of a module, not of the session: its loop runs in this thread, and other tests start loops of their own.
@pytest.fixture(scope="module")
def browser(without: Callable[[str, str], NoReturn]) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    from scripts.screenshots import chromium
    from tests.support.e2e.browser import AXE, is_page_built, launch

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
    from tests.support.e2e.browser import opened

    with opened(browser) as made:
        yield made
        assert made.errors == []  # type: ignore[attr-defined]  # as `opened` makes it


@pytest.fixture(scope="session")
def clone(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, without: Callable[[str, str], NoReturn]
) -> Clone:
    """A clean clone whose wheel is installed with PySpark into an empty environment."""
    from scripts import jvm, page
    from tests.support.e2e.clone import installed_clone

    try:
        jvm.check_tools()
    except jvm.JarNotBuilt as error:
        without("JVM", str(error))
    try:
        page.check_tools()
    except page.PageNotBuilt as error:
        without("NODE", str(error))
    base = tmp_path_factory.getbasetemp()
    return installed_clone(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base, jar_folder)
