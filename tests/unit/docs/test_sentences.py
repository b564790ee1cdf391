"""Sentences of the documentation are short: at most 25 words each, and 17 on average over a page."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from scripts.structure import ROOT, pages, sentences

pytestmark = pytest.mark.unit

AVERAGE = 17
LONGEST = 25


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def too_long(page: Path) -> list[str]:
    """What is wrong with the sentences of a page."""
    found = list(sentences(page.read_text(encoding="utf-8")))
    average = statistics.mean(map(len, found)) if found else 0
    faults = [f"{len(words)} words: {' '.join(words)}" for words in found if len(words) > LONGEST]
    return faults + ([f"{average:.1f} words a sentence on average"] if average > AVERAGE else [])


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_has_short_sentences(page: Path) -> None:
    assert not too_long(page), "divide or rewrite:\n" + "\n".join(too_long(page))


def lengths(text: str) -> list[int]:
    return [len(words) for words in sentences(text)]


def test_a_sentence_ends_at_a_mark_and_a_capital_or_code() -> None:
    assert lengths("One two three. Four five six! `seven` eight nine. [ten.md](ten.md) is eleven.") == [
        3,
        3,
        3,
        3,
    ]


def test_a_colon_and_a_semicolon_end_nothing() -> None:
    assert lengths("One two: Three four; five six.") == [6]


def test_a_version_or_an_abbreviation_ends_nothing() -> None:
    assert lengths("Spark 4.0.5 of e.g. last year runs.") == [7]


def test_a_sentence_may_end_inside_emphasis_or_brackets() -> None:
    assert lengths("**All of it counts.** Even so, more (as one two three.) Then comes this.") == [4, 7, 3]


def test_items_of_a_list_are_sentences_of_their_own() -> None:
    assert lengths(
        "These are some items:\n\n- one two three\n- four five six\n  seven\n1. eight nine ten"
    ) == [4, 3, 4, 3]


def test_code_tables_headings_and_pictures_are_left_out() -> None:
    text = "# One two three\n\n| a | b c d |\n\n![a b](x.png)\n\n```\nof code\n```\n\nThis is counted."
    assert lengths(text) == [3]
    assert lengths("1. An item with code:\n\n   ```\n   one two three four\n   ```\n   It goes on.") == [4, 3]


def test_inline_code_and_addresses_are_one_word_and_targets_of_links_none() -> None:
    assert lengths("Run `lineage trace last backward` now.") == [3]
    assert lengths("See <http://127.0.0.1:8080/a/b.c> for it.") == [4]
    assert lengths("The [long page](docs/a_long-page.md#with-an-anchor) says it.") == [5]
