"""Links of the documentation lead to files that are there, and to headings that are in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from scripts.structure import ROOT, pages

pytestmark = pytest.mark.unit


def prose(page: Path) -> str:
    return re.sub(
        r"^ *(```+).*?^ *\1 *$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to headings: small letters, no marks, a hyphen for each space."""
    headings = re.findall(r"^#{1,6} (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@cache
def source_files() -> set[str]:
    """All source files, and each end of their paths: a page may leave out the first folders."""
    return {
        "/".join(path.relative_to(ROOT).parts[first:])
        for folder in (
            "api",
            "cypher",
            "examples",
            "lineage_service",
            "perf",
            "scripts",
            "spark_agent",
            "tests",
            "ui/src",
        )
        for path in (ROOT / folder).rglob("*.*")
        for first in range(len(path.relative_to(ROOT).parts))
    } | {path.name for path in ROOT.glob("*.py")}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_modules_that_a_page_names_are_there(page: Path) -> None:
    named = set(re.findall(r"`([\w/.-]+\.(?:py|ts|java|cypher))`", prose(page)))
    assert named - source_files() == set(), "the page names modules that were moved or renamed"
